//! A quota, beside the LimitRanges of its namespace.

use super::{Finding, Lint, MAX_FINDINGS, Owner, amounts};
use crate::admission::limit_range::defaults;
use crate::admission::quota::{STORAGE_CLASS, Traits};
use crate::model::{LimitRange, LimitType, List, ResourceName, ResourceQuota, Scope};
use crate::units::Quantity;

/// What is odd about a quota. `ranges` are the LimitRanges of its namespace by name; `None`: it counts
/// several namespaces, or they are not known.
pub fn quota(quota: &ResourceQuota, ranges: Option<&[&LimitRange]>) -> Vec<Finding> {
    let lint = Linted {
        quota,
        owner: Owner::Policy(kind(quota), quota.name.clone()),
        path: match kind(quota) {
            "ResourceQuota" => "spec",
            _ => "spec.quota",
        },
    };
    let mut findings = Vec::from_iter(lint.empty_scope());
    for (key, hard) in quota.hard.iter() {
        findings.extend(lint.key(key, hard, ranges.unwrap_or_default()));
    }
    findings.extend(ranges.and_then(|ranges| lint.undefaulted(ranges)));
    findings.truncate(MAX_FINDINGS);
    findings
}

fn kind(quota: &ResourceQuota) -> &'static str {
    match quota.namespace.as_str() {
        "" => "ClusterResourceQuota",
        _ => "ResourceQuota",
    }
}

/// The amounts of pods that a key counts; `None`: it counts something else.
fn counted(key: &ResourceName) -> Option<(List, ResourceName)> {
    let text = key.to_string();
    let (list, name) = match (text.strip_prefix("requests."), text.strip_prefix("limits.")) {
        (Some(name), _) => (List::Requests, name),
        (None, Some(name)) => (List::Limits, name),
        (None, None) => (List::Requests, text.as_str()),
    };
    Some((list, ResourceName::from(name))).filter(|(_, name)| {
        matches!(
            name,
            ResourceName::Cpu | ResourceName::Memory | ResourceName::EphemeralStorage
        )
    })
}

struct Linted<'a> {
    quota: &'a ResourceQuota,
    owner: Owner,
    path: &'static str,
}

impl Linted<'_> {
    fn finding(&self, lint: Lint, key: &ResourceName, message: &str) -> Finding {
        let field = format!("{}.hard[{key}]", self.path);
        Finding::new(lint, &self.owner, field, message)
    }

    fn has(&self, scope: Scope) -> bool {
        self.quota.terms().any(|term| term.scope == scope)
    }

    /// What is odd about one key.
    fn key(&self, key: &ResourceName, hard: Quantity, ranges: &[&LimitRange]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut find = |lint, message: &str| findings.push(self.finding(lint, key, message));
        if let Some(message) = self.dead(key) {
            find(Lint::DeadKey, &message);
            return findings;
        }
        let of_pods = counted(key);
        let slip = of_pods.as_ref().map(|(_, name)| name.clone());
        let slip = slip.or_else(|| {
            let is_storage = key.to_string().ends_with("requests.storage");
            is_storage.then(|| ResourceName::from("storage"))
        });
        if let Some((lint, odd)) = slip.and_then(|name| amounts::of_policy(&name, hard)) {
            find(lint, &format!("{key} of {hard} {odd}"));
        }
        if let Some(used) = self.quota.used.get(key).filter(|used| *used > hard) {
            let over = used.checked_sub(hard).unwrap_or(Quantity::ZERO);
            find(
                Lint::OverusedQuota,
                &format!(
                    "{used} of {key} are used and {hard} are allowed: nothing that asks for some is \
                     admitted until more than {over} is given back"
                ),
            );
        }
        let is_pods = matches!(key.to_string().as_str(), "pods" | "count/pods");
        if hard.is_zero() {
            // With scopes it is how pods of a sort are forbidden.
            if (is_pods || of_pods.is_some()) && self.quota.terms().next().is_none() {
                let what = if is_pods {
                    "no pod is admitted".to_owned()
                } else {
                    "no pod that asks for some is admitted".to_owned()
                };
                find(
                    Lint::ZeroQuota,
                    &format!("0 of {key}: {what}; without the key there is no bound"),
                );
            }
        } else if let Some((list, name)) = of_pods
            && let Some(message) = too_small(key, hard, list, &name, ranges)
        {
            find(Lint::SmallQuota, &message);
        }
        findings
    }

    /// Why a key counts nothing.
    fn dead(&self, key: &ResourceName) -> Option<String> {
        let text = key.to_string();
        let bare = text.strip_prefix("limits.").unwrap_or(&text);
        let counts_something = text.starts_with("count/")
            || text.starts_with("requests.")
            || text.contains(STORAGE_CLASS)
            || text.ends_with(".deviceclass.resource.k8s.io/devices")
            || text == "openshift.io/imagestreams";
        if ResourceName::from(bare).is_extended() && !counts_something {
            let right = format!("requests.{bare} counts what is asked for");
            return Some(format!("{text} counts nothing; {right}"));
        }
        let term = self.quota.terms().next()?;
        let of_claims = text.contains(STORAGE_CLASS) || text == "count/persistentvolumeclaims";
        let of_others = text == "openshift.io/imagestreams"
            || text.starts_with("count/") && text != "count/pods";
        let is_dead = match term.scope {
            Scope::VolumeAttributesClass => !of_claims && (of_others || text == "count/pods"),
            _ => of_claims || of_others,
        };
        is_dead.then(|| {
            let scope = term.scope;
            format!("{text} counts nothing here: what it counts has no scope {scope}; a quota without scopes counts it")
        })
    }

    /// Names of priority classes that no pod can have.
    fn empty_scope(&self) -> Option<Finding> {
        let scope = Scope::PriorityClass;
        let terms: Vec<_> = self.quota.terms().filter(|it| it.scope == scope).collect();
        // A name that no term knows stands for all others.
        let others = format!(
            "{}-",
            terms.iter().map(ToString::to_string).collect::<String>()
        );
        let mut names: Vec<_> = terms.iter().flat_map(|term| &term.values).collect();
        let none = String::new();
        names.extend([&others, &none]);
        let matches = |name: &String| {
            let traits = Traits::of_class(scope, name.clone());
            terms.iter().all(|term| traits.match_term(term))
        };
        if terms.is_empty() || names.into_iter().any(matches) {
            return None;
        }
        let terms: Vec<_> = terms.iter().map(ToString::to_string).collect();
        let message = format!(
            "counts nothing: no pod is all of {}; names in one expression are alternatives",
            terms.join(" and ")
        );
        let field = format!("{}.scopeSelector", self.path);
        Some(Finding::new(Lint::EmptyScope, &self.owner, field, &message))
    }

    /// Amounts that each container must give, and that nothing gives it.
    fn undefaulted(&self, ranges: &[&LimitRange]) -> Option<Finding> {
        if self.has(Scope::BestEffort) {
            return None;
        }
        let mut missing: Vec<_> = self
            .quota
            .hard
            .iter()
            .filter_map(|(key, _)| {
                let (list, name) = counted(key)?;
                let asked = name != ResourceName::EphemeralStorage;
                let given = defaults(ranges, list).contains_key(&name);
                (asked && !given).then(|| key.to_string())
            })
            .collect();
        missing.sort();
        if missing.is_empty() {
            return None;
        }
        let message = format!(
            "every container it counts must give {}, as no LimitRange of namespace {} has a default: a pod \
             that leaves one out is refused",
            missing.join(", "),
            self.quota.namespace
        );
        let field = format!("{}.hard", self.path);
        Some(Finding::new(
            Lint::UndefaultedQuota,
            &self.owner,
            field,
            &message,
        ))
    }
}

/// Whether a bound of a LimitRange or a default is more than all of a quota.
fn too_small(
    key: &ResourceName,
    hard: Quantity,
    list: List,
    name: &ResourceName,
    ranges: &[&LimitRange],
) -> Option<String> {
    let items = ranges
        .iter()
        .flat_map(|range| range.items.iter().map(move |item| (range, item)));
    // A limit is no less than its request, so a min holds for both.
    let least = items
        .filter(|(_, item)| matches!(item.kind, LimitType::Container | LimitType::Pod))
        .filter_map(|(range, item)| Some((item.min.get(name)?, &item.kind, &range.name)))
        .max_by_key(|(min, ..)| *min);
    if let Some((min, kind, range)) = least.filter(|(min, ..)| *min > hard) {
        return Some(format!(
            "{hard} of {key} is less than the min {min} per {kind} of LimitRange {range}, so no pod fits; \
             {min} or more is right"
        ));
    }
    let defaults = defaults(ranges, list);
    let first = defaults.get(name)?.first()?;
    (first.amount > hard).then(|| {
        format!(
            "{hard} of {key} is less than the {} {} of LimitRange {}, so no pod fits that gives nothing \
             itself; {} or more is right",
            first.bound, first.amount, first.range, first.amount
        )
    })
}
