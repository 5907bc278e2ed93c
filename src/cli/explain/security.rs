//! Who the containers of a pod are, in a table.

use crate::cli::render::Page;
use crate::model::security::CAPABILITIES;
use crate::report::explain::PodExplanation;

/// A line for each container whose program the node starts.
pub fn table(page: &mut Page, pod: &PodExplanation) {
    let own = pod.containers.iter();
    let own: Vec<_> = own
        .filter_map(|container| Some((container.name.as_str(), container.security.as_ref()?)))
        .collect();
    if own.is_empty() {
        return;
    }
    page.texts(0, &["Security:"]);
    page.heading(
        1,
        &[
            "Of",
            "User",
            "Group",
            "Groups",
            "no_new_privs",
            "Capabilities",
            "Dropped",
            "Root FS",
            "By default",
        ],
    );
    for (name, security) in own {
        let user = match security.user {
            0 => "0 (root)".to_owned(),
            user => user.to_string(),
        };
        let group = security.group.map(|group| group.to_string());
        let groups = security.groups.iter().map(ToString::to_string);
        let groups = groups.collect::<Vec<_>>().join(",");
        page.texts(
            1,
            &[
                name,
                &user,
                group.as_deref().unwrap_or("of /etc/passwd, or 65534"),
                if groups.is_empty() { "-" } else { &groups },
                if security.no_new_privileges {
                    "yes"
                } else {
                    "no"
                },
                &capabilities(&security.capabilities),
                &capabilities(&security.dropped),
                if security.read_only_root_filesystem {
                    "read-only"
                } else {
                    "-"
                },
                &by_default(pod, name),
            ],
        );
    }
}

/// Many are told by those that are not among them.
fn capabilities(names: &[String]) -> String {
    let others = CAPABILITIES.iter().copied();
    let others: Vec<_> = others
        .filter(|known| !names.iter().any(|name| name == known))
        .collect();
    match (names.len(), others.as_slice()) {
        (0, _) => "-".to_owned(),
        (_, []) => "all".to_owned(),
        (had, others) if others.len() < had => format!("all but {}", others.join(", ")),
        _ => names.join(", "),
    }
}

/// The fields that were filled in, and why.
fn by_default(pod: &PodExplanation, container: &str) -> String {
    let rows = pod.defaults.iter();
    let rows: Vec<_> = rows
        .filter(|row| row.is_of_security() && row.container.as_deref() == Some(container))
        .collect();
    let fields: Vec<_> = rows.iter().map(|row| row.resource.as_str()).collect();
    match rows.first() {
        Some(row) => format!("{}: {}", fields.join(", "), row.rule),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_capabilities_are_told_by_the_few_that_lack() {
        let all = || CAPABILITIES.iter().map(ToString::to_string);
        let of = |names: Vec<String>| capabilities(&names);
        assert_eq!(of(Vec::new()), "-");
        assert_eq!(of(all().collect()), "all");
        assert_eq!(of(all().take(2).collect()), "CHOWN, DAC_OVERRIDE");
        let but_one = all().filter(|name| name != "NET_RAW").collect();
        assert_eq!(of(but_one), "all but NET_RAW");
    }
}
