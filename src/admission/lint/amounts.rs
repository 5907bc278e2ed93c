//! Amounts that are slips of the notation.

use super::{Finding, Lint, Owner};
use crate::model::{List, ResourceName};
use crate::units::{Format, Quantity};

/// Less memory than any process needs.
const LITTLE_MEMORY: u64 = 1 << 20;
/// More CPUs than a kernel can have (`NR_CPUS` is at most 8192 on x86-64).
pub(super) const MANY_CPUS: u64 = 8192;
/// The least CPU limit that is kept at the usual period: the kernel takes no quota below 1 ms.
const LEAST_CPU_LIMIT: i64 = 10;

/// What is odd about the amount of a container in one of its lists.
pub(super) fn of_container(
    list: List,
    name: &ResourceName,
    amount: Quantity,
) -> Option<(Lint, String)> {
    let is_limit = list == List::Limits;
    match name {
        _ if amount.is_negative() => None,
        ResourceName::Cpu | ResourceName::Memory if amount.is_zero() => is_limit.then(|| {
            let what = "is no limit: leave it out if that is meant".to_owned();
            (Lint::ZeroLimit, what)
        }),
        ResourceName::Cpu if is_limit && amount < Quantity::from_milli(LEAST_CPU_LIMIT) => {
            let kept = format!(
                "is kept as {LEAST_CPU_LIMIT}m: the kernel takes no less than 1 ms in each 100 ms"
            );
            Some((Lint::SmallCpuLimit, kept))
        }
        _ => of_policy(name, amount),
    }
}

/// What is odd about an amount wherever it stands, in a policy too.
pub(super) fn of_policy(name: &ResourceName, amount: Quantity) -> Option<(Lint, String)> {
    match name {
        ResourceName::Cpu => many_cpus(amount),
        ResourceName::Memory | ResourceName::EphemeralStorage => few_bytes(name, amount),
        ResourceName::Other(text) if text == "storage" => few_bytes(name, amount),
        _ => None,
    }
}

/// What is odd about what a claim asks for.
pub fn claim(storage: Quantity) -> Option<Finding> {
    let name = ResourceName::from("storage");
    let (lint, odd) = of_policy(&name, storage)?;
    let field = "spec.resources.requests[storage]";
    let message = format!("requests.storage of {storage} {odd}");
    Some(Finding::new(lint, &Owner::Object, field, &message))
}

fn many_cpus(amount: Quantity) -> Option<(Lint, String)> {
    if amount <= Quantity::from_units(MANY_CPUS, Format::DecimalSi) {
        return None;
    }
    let text = amount.to_string();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let exact = amount.exact();
    Some((
        Lint::ManyCpus,
        format!("is {exact} CPUs; did you mean {number}m?"),
    ))
}

/// `400m` is four tenths of a byte: the best-known slip of the notation.
fn few_bytes(name: &ResourceName, amount: Quantity) -> Option<(Lint, String)> {
    let little = Quantity::from_units(LITTLE_MEMORY, Format::BinarySi);
    if amount <= Quantity::ZERO || amount >= little {
        return None;
    }
    let exact = amount.exact();
    let unit = if exact == "1" { "byte" } else { "bytes" };
    if let Some(number) = amount.to_string().strip_suffix('m') {
        let what = format!("is {exact} {unit}; did you mean {number}Mi?");
        return Some((Lint::FractionOfByte, what));
    }
    if amount < Quantity::from_units(1024, Format::BinarySi) {
        let what = format!("is {exact} {unit}; did you mean {exact}Mi?");
        return Some((Lint::MissingSuffix, what));
    }
    (*name == ResourceName::Memory).then(|| {
        let what = "is less than any process needs".to_owned();
        (Lint::LittleMemory, what)
    })
}
