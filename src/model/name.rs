//! The spellings Kubernetes allows for names.
//!
//! Decides whether a text is a label, a subdomain or a qualified name, and says in Kubernetes' words
//! (1.36 `apimachinery/pkg/util/validation`) why it is not. It must never decide which of them a
//! field wants.

/// Greatest length of a DNS label and of the name part of a qualified name, in bytes.
pub const MAX_LABEL: usize = 63;
/// Greatest length of a DNS subdomain, in bytes.
pub const MAX_SUBDOMAIN: usize = 253;

/// Why this is not a DNS label (RFC 1123); empty if it is one.
pub fn dns_label(text: &str) -> Vec<String> {
    let mut problems = too_long(text, MAX_LABEL);
    if !is_label(text) {
        problems.push(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
             and must start and end with an alphanumeric character (e.g. 'my-name', or '123-abc')"
                .to_owned(),
        );
    }
    problems
}

/// Why this is not a DNS label that begins with a letter (RFC 1035); empty if it is one.
pub fn dns_1035_label(text: &str) -> Vec<String> {
    let mut problems = too_long(text, MAX_LABEL);
    if !is_label(text) || text.starts_with(|c: char| c.is_ascii_digit()) {
        problems.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with \
             an alphabetic character, and end with an alphanumeric character (e.g. 'my-name', or \
             'abc-123')"
                .to_owned(),
        );
    }
    problems
}

/// Why this is not a DNS subdomain (RFC 1123); empty if it is one.
pub fn dns_subdomain(text: &str) -> Vec<String> {
    let mut problems = too_long(text, MAX_SUBDOMAIN);
    if !text.split('.').all(is_label) {
        problems.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
             or '.', and must start and end with an alphanumeric character (e.g. 'example.com')"
                .to_owned(),
        );
    }
    problems
}

/// Why this cannot be one segment of a path; empty if it can.
pub fn path_segment(text: &str) -> Vec<String> {
    let mut problems = too_long(text, MAX_SUBDOMAIN);
    if matches!(text, "" | "." | "..") {
        problems.push(format!("may not be '{text}'"));
    }
    for c in ['/', '%'].into_iter().filter(|c| text.contains(*c)) {
        problems.push(format!("may not contain '{c}'"));
    }
    if text.contains(char::is_control) {
        problems.push("may not contain control characters".to_owned());
    }
    problems
}

/// Why this is not a qualified name, `[SUBDOMAIN/]NAME`; empty if it is one.
pub fn qualified_name(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let mut problems = Vec::new();
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => problems.extend(
            dns_subdomain(prefix)
                .iter()
                .map(|p| format!("prefix part {p}")),
        ),
        None => {}
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
        return problems;
    }
    problems.extend(
        too_long(name, MAX_LABEL)
            .iter()
            .map(|p| format!("name part {p}")),
    );
    if !is_name_part(name) {
        problems.push(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and \
             end with an alphanumeric character (e.g. 'MyName', or 'my.name', or '123-abc')"
                .to_owned(),
        );
    }
    problems
}

/// Why this is not the value of a label; empty if it is one.
pub fn label_value(text: &str) -> Vec<String> {
    let mut problems = too_long(text, MAX_LABEL);
    if !text.is_empty() && !is_name_part(text) {
        problems.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
             '.', and must start and end with an alphanumeric character (e.g. 'MyValue', or \
             'my_value', or '12345')"
                .to_owned(),
        );
    }
    problems
}

fn too_long(text: &str, most: usize) -> Vec<String> {
    if text.len() > most {
        vec![format!("must be no more than {most} bytes")]
    } else {
        Vec::new()
    }
}

/// The form of a label, whatever its length.
fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    ends_are(text, inner) && text.bytes().all(|b| inner(b) || b == b'-')
}

/// The form of a qualified name's last part, whatever its length.
fn is_name_part(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric();
    ends_are(text, inner) && text.bytes().all(|b| inner(b) || b"-_.".contains(&b))
}

fn ends_are(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    [bytes.first(), bytes.last()]
        .iter()
        .all(|end| end.is_some_and(|b| allowed(*b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kubernetes() {
        type Check = fn(&str) -> Vec<String>;
        let good: [(Check, &[&str]); 6] = [
            (dns_1035_label, &["a", "my-name", "a1"]),
            (path_segment, &["a", "system:node", "A b", "..."]),
            (dns_label, &["a", "0", "my-name", "123-abc"]),
            (dns_subdomain, &["a", "a.b-c.d", "1.2.3"]),
            (qualified_name, &["A", "a_b.c-D", "example.com/Foo", "1/2"]),
            (label_value, &["", "A", "a_b.c-D"]),
        ];
        let bad: [(Check, &[&str]); 6] = [
            (dns_1035_label, &["", "1", "1a", "A", "a.b", "a-"]),
            (path_segment, &["", ".", "..", "a/b", "a%2Fb", "a\nb"]),
            (
                dns_label,
                &["", "-a", "a-", "A", "a.b", "a_b", "ä", "a/b", ".."],
            ),
            (
                dns_subdomain,
                &["", ".", "..", "a..b", "a.", "-a.b", "A.b", "a/b"],
            ),
            (
                qualified_name,
                &["", "/", "a/", "/a", "a/b/c", "A.b/c", "-a", "a b", "ä"],
            ),
            (label_value, &["-a", "a-", "a b", "a/b"]),
        ];
        for (check, texts) in good {
            for text in texts {
                assert_eq!(check(text), Vec::<String>::new(), "{text:?}");
            }
        }
        for (check, texts) in bad {
            for text in texts {
                assert_ne!(check(text), Vec::<String>::new(), "{text:?}");
            }
        }
    }

    #[test]
    fn lengths_are_bounded() {
        let long = |n| "a".repeat(n);
        assert!(dns_label(&long(63)).is_empty());
        assert_eq!(dns_label(&long(64)), ["must be no more than 63 bytes"]);
        assert!(dns_subdomain(&long(253)).is_empty());
        assert_eq!(
            dns_subdomain(&long(254)),
            ["must be no more than 253 bytes"]
        );
        assert!(qualified_name(&format!("{}/{}", long(253), long(63))).is_empty());
        assert_eq!(
            qualified_name(&format!("{}/{}", long(254), long(64))),
            [
                "prefix part must be no more than 253 bytes",
                "name part must be no more than 63 bytes"
            ]
        );
        assert_eq!(label_value(&long(64)), ["must be no more than 63 bytes"]);
    }
}
