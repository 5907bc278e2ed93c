//! `allot quota`: who is charged what, and the proof that the accounts are true.

use std::collections::BTreeMap;
use std::io::Write;

use super::error::CliError;
use super::render::{Page, clean};
use super::target::Target;
use super::{Context, OutputForm};
use crate::exit;
use crate::report::accounts::{AccountsReport, QuotaCharges};

/// See what quotas are charged, and for which objects
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Show which object of a namespace is charged what by each quota
    Explain {
        /// The namespace [default: that of -n]
        #[arg(value_name = "NAMESPACE")]
        of: Option<String>,
        /// How to print it
        #[arg(short, long, value_enum, default_value_t)]
        output: OutputForm,
    },
    /// Count everything anew and compare it with the accounts
    ///
    /// Exit codes: 0 all accounts are true; 1 one is not.
    Verify {
        /// How to print it
        #[arg(short, long, value_enum, default_value_t)]
        output: OutputForm,
    },
}

/// Runs one of the two.
///
/// # Errors
/// No daemon, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    match &args.command {
        Command::Explain { of, output } => {
            let namespace = match (of.as_deref(), context.global.namespace.as_deref()) {
                (Some(here), Some(there)) if here != there => {
                    return Err(CliError::Usage(format!(
                        "the namespace is {here}, but --namespace says {there}"
                    )));
                }
                (Some(namespace), _) => namespace,
                (None, _) => context.namespace(),
            };
            explain(namespace, *output, context, out)
        }
        Command::Verify { output } => verify(*output, context, out),
    }
}

fn explain(
    namespace: &str,
    output: OutputForm,
    context: &Context,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let target = Target::new(&[
        "apis",
        "allotd.dev",
        "v1",
        "namespaces",
        namespace,
        "charges",
    ]);
    let quotas: Vec<QuotaCharges> = context.client()?.get(&target)?;
    if output.write(&quotas, out)? {
        return Ok(exit::OK);
    }
    if quotas.is_empty() {
        context.say(&format!("No quota counts namespace {namespace}."));
    }
    let pages: Vec<_> = quotas.iter().map(charges).collect();
    write!(out, "{}", pages.join("\n"))?;
    Ok(exit::OK)
}

/// Objects below each other, resources beside each other: each column adds up to what is used.
fn charges(quota: &QuotaCharges) -> String {
    let mut page = Page::table();
    let resources: Vec<_> = quota.hard.keys().collect();
    let line = |page: &mut Page, head: &str, amounts: &BTreeMap<String, String>, none: &str| {
        let mut cells = vec![head];
        let amount = |name: &&String| amounts.get(*name).map_or(none, String::as_str);
        cells.extend(resources.iter().map(amount));
        page.texts(0, &cells);
    };
    let mut heads = vec!["OBJECT"];
    heads.extend(resources.iter().map(|name| name.as_str()));
    page.texts(0, &heads);
    for charge in &quota.charges {
        line(&mut page, &charge.object, &charge.amounts, "-");
    }
    if !quota.elsewhere.is_empty() {
        line(&mut page, "(other namespaces)", &quota.elsewhere, "-");
    }
    line(&mut page, "used", &quota.used, "0");
    line(&mut page, "hard", &quota.hard, "0");
    let kind = if quota.is_cluster {
        "ClusterResourceQuota"
    } else {
        "ResourceQuota"
    };
    format!("{kind} {}\n{page}", clean(&quota.quota))
}

fn verify(output: OutputForm, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let target = Target::new(&["apis", "allotd.dev", "v1", "accounts"]);
    let report: AccountsReport = context.client()?.get(&target)?;
    if !output.write(&report, out)? {
        let AccountsReport {
            objects,
            accounts,
            mismatches,
        } = &report;
        let wrong = mismatches.len();
        writeln!(
            out,
            "{accounts} accounts counted anew over {objects} objects: {wrong} differ"
        )?;
        for mismatch in mismatches {
            writeln!(
                out,
                "{}: {} is kept, {} is counted",
                clean(&mismatch.account),
                list(&mismatch.kept),
                list(&mismatch.counted)
            )?;
        }
    }
    Ok(if report.mismatches.is_empty() {
        exit::OK
    } else {
        exit::ERROR
    })
}

fn list(amounts: &BTreeMap<String, String>) -> String {
    if amounts.is_empty() {
        return "nothing".to_owned();
    }
    let amounts = amounts.iter();
    let amounts: Vec<_> = amounts
        .map(|(name, amount)| format!("{}={}", clean(name), clean(amount)))
        .collect();
    amounts.join(",")
}
