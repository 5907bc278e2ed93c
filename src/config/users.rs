//! Who containers may be.
//!
//! Decides what of these settings goes together; what a pod says of itself is judged by `admission`.

use super::Config;
use crate::model::security::{ADDABLE, MAX_ID, NonRoot, addable, bits, capability};

impl Config {
    /// What holds for new pods where no container may be root; `None`: any may.
    pub fn non_root(&self) -> Option<NonRoot> {
        let allowed = self.allowed_capabilities.iter().map(String::as_str);
        (!self.allow_root_containers).then(|| NonRoot {
            user: self.default_run_as_user,
            group: self.default_run_as_group,
            allowed: bits(allowed) & addable(),
        })
    }

    /// What is out of bounds.
    pub(super) fn user_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, id) in [
            ("defaultRunAsUser", self.default_run_as_user),
            ("defaultRunAsGroup", self.default_run_as_group),
        ] {
            if id == 0 && !self.allow_root_containers {
                problems.push(format!(
                    "{name} is 0, which is root's: 1 to {MAX_ID} is right as long as allowRootContainers is false"
                ));
            }
            if id > MAX_ID {
                problems.push(format!("{name} is {id}: 1 to {MAX_ID} is right"));
            }
        }
        for (index, name) in self.allowed_capabilities.iter().enumerate() {
            if capability(name).is_none_or(|bit| bit & !addable() != 0) {
                problems.push(format!(
                    "allowedCapabilities[{index}] is {name:?}: {} are right",
                    ADDABLE.join(", ")
                ));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_root_unless_it_is_allowed() {
        let rule = Config::default().non_root().unwrap();
        assert_eq!((rule.user, rule.group, rule.allowed), (65534, 65534, 0));
        for (text, expected) in [
            ("allowRootContainers: true", Ok(None)),
            (
                "allowRootContainers: true\ndefaultRunAsUser: 0\ndefaultRunAsGroup: 0",
                Ok(None),
            ),
            (
                "defaultRunAsUser: 1000\ndefaultRunAsGroup: 50\nallowedCapabilities: [NET_BIND_SERVICE, cap_chown]",
                Ok(Some((1000, 50, 1 << 10 | 1))),
            ),
            ("defaultRunAsUser: 0", Err("defaultRunAsUser is 0")),
            ("defaultRunAsGroup: 0", Err("defaultRunAsGroup is 0")),
            (
                "defaultRunAsGroup: 2147483648",
                Err("1 to 2147483647 is right"),
            ),
            ("defaultRunAsUser: -1", Err("defaultRunAsUser")),
            (
                "allowedCapabilities: [CHOWN, SYS_ADMIN]",
                Err("allowedCapabilities[1] is \"SYS_ADMIN\": AUDIT_WRITE, CHOWN"),
            ),
            (
                "allowedCapabilities: [ALL]",
                Err("allowedCapabilities[0] is \"ALL\""),
            ),
            (
                "allowedCapabilities: [FLY]",
                Err("allowedCapabilities[0] is \"FLY\""),
            ),
        ] {
            match (Config::parse(text), expected) {
                (Ok(config), Ok(expected)) => {
                    let rule = config.non_root();
                    let rule = rule.map(|rule| (rule.user, rule.group, rule.allowed));
                    assert_eq!(rule, expected, "{text}");
                }
                (Err(error), Err(expected)) => {
                    assert!(error.to_string().contains(expected), "{text}: {error}");
                }
                (read, expected) => panic!("{text}: {read:?}, {expected:?}"),
            }
        }
    }
}
