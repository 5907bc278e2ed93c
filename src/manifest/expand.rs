//! `$(NAME)` in commands, arguments and environment, as Kubernetes resolves it.

/// Replaces every `$(NAME)` by what `value` knows of it. An unknown name stays as it is written, and
/// so does a `$(` without an end; `$$` is one `$`, so that `$$(NAME)` is the text `$(NAME)`
/// (Kubernetes 1.36 `third_party/forked/golang/expansion`).
///
/// `None` if the result has more than `most` bytes.
pub fn expand<'v>(
    text: &str,
    value: impl Fn(&str) -> Option<&'v str>,
    most: usize,
) -> Option<String> {
    let mut expanded = String::new();
    let mut rest = text;
    // Looked for once: a text of nothing but `$(` is not searched again at each of them.
    let mut has_end = true;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            expanded.push('$');
            rest = after;
        } else if let Some(inner) = rest.strip_prefix('(').filter(|_| has_end) {
            if let Some((name, after)) = inner.split_once(')') {
                match value(name) {
                    Some(value) => expanded.push_str(value),
                    None => expanded.extend(["$(", name, ")"]),
                }
                rest = after;
            } else {
                has_end = false;
                expanded.push('$');
            }
        } else {
            expanded.push('$');
        }
        if expanded.len() > most {
            return None;
        }
    }
    expanded.push_str(rest);
    (expanded.len() <= most).then_some(expanded)
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn references_are_resolved_once_and_unknown_ones_stay() {
        let value = |name: &str| match name {
            "A" => Some("1"),
            "B" => Some("$(A)"),
            "" => Some("empty"),
            _ => None,
        };
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("$(A)", "1"),
            ("x$(A)y$(A)", "x1y1"),
            ("$(B)", "$(A)"),
            ("$(C)", "$(C)"),
            ("$()", "empty"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$$$$(A)", "$$(A)"),
            ("$A", "$A"),
            ("$", "$"),
            ("$$", "$"),
            ("$(A", "$(A"),
            ("$($(A)", "$($(A)"),
            ("$(A)$", "1$"),
            ("100%$(A) ü$(A)", "100%1 ü1"),
        ] {
            assert_eq!(expand(text, value, 99).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(expand("ab$(A)", value, 2), None);
    }
}
