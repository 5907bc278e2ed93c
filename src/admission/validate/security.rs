//! As whom containers run, and what they ask for beyond that.

use crate::admission::Reason;
use crate::model::Container;
use crate::model::security::{ADDABLE, addable, names};

/// Every rule that a container at this place breaks.
pub(super) fn check(path: &str, container: &Container) -> Vec<Reason> {
    let security = &container.security;
    let place = format!("{path}.securityContext");
    let mut reasons = Vec::new();
    if security.must_not_be_root {
        let field = format!("{place}.runAsUser");
        match security.user {
            None => reasons.push(Reason::required(
                field,
                "runAsNonRoot is set, and without a user programs of the host run as root",
            )),
            Some(0) => reasons.push(Reason::invalid(
                field,
                0,
                "runAsNonRoot is set, and 0 is root",
            )),
            Some(_) => {}
        }
    }
    let excess = security.added & !addable();
    if excess != 0 {
        let field = format!("{place}.capabilities.add");
        let names = names(excess);
        let shown = if security.added == u64::MAX {
            "ALL".to_owned()
        } else {
            names.join(", ")
        };
        let detail = format!(
            "a container may ask for {} only; what is not dropped, root has anyway",
            ADDABLE.join(", ")
        );
        reasons.push(Reason::invalid(field, shown, detail));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::pod::ResizePolicy;
    use crate::model::security::{Security, capability};
    use crate::model::{ContainerKind, Resources};

    fn told(security: Security) -> Vec<String> {
        let container = Container {
            name: "c".to_owned(),
            kind: ContainerKind::App,
            image: String::new(),
            command: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
            working_dir: None,
            mounts: Vec::new(),
            resources: Resources::default(),
            resize_policy: ResizePolicy::default(),
            probes: crate::model::probe::Probes::default(),
            security,
        };
        let reasons = check("spec.containers[0]", &container).into_iter();
        reasons
            .map(|reason| format!("{}: {}", reason.field, reason.message))
            .collect()
    }

    #[test]
    fn one_that_must_not_be_root_says_who_it_is() {
        let of = |user| {
            told(Security {
                user,
                must_not_be_root: true,
                ..Security::default()
            })
        };
        assert_eq!(of(Some(1000)), [""; 0]);
        for user in [None, Some(0)] {
            let told = of(user);
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(told[0].starts_with("spec.containers[0].securityContext.runAsUser: "));
        }
        assert_eq!(told(Security::default()), [""; 0]);
    }

    #[test]
    fn no_more_is_asked_for_than_the_standard_allows() {
        let of = |names: &[&str]| {
            let bits = names.iter().map(|name| capability(name).unwrap());
            told(Security {
                added: bits.fold(0, |bits, bit| bits | bit),
                ..Security::default()
            })
        };
        assert_eq!(of(&["CHOWN", "NET_BIND_SERVICE"]), [""; 0]);
        for (names, shown) in [
            (
                &["CHOWN", "SYS_ADMIN", "NET_RAW"][..],
                "\"NET_RAW, SYS_ADMIN\"",
            ),
            (&["ALL"][..], "\"ALL\""),
        ] {
            let told = of(names);
            assert_eq!(told.len(), 1, "{told:?}");
            let begins = format!(
                "spec.containers[0].securityContext.capabilities.add: Invalid value: {shown}: "
            );
            assert!(told[0].starts_with(&begins), "{told:?}");
        }
    }
}
