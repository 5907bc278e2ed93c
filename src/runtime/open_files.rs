//! How many files may be open: the agent keeps one or a few for each container, and where nobody gave it more than
//! the usual 1024 it gives itself what it needs. Containers do not inherit that: what the agent starts itself
//! takes back what was before, of which its environment tells. It must never lower what the agent was given.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for 10,000 pods.
const ENOUGH: u64 = 524_288;
/// In the environment of errands of the agent's own: what was before, as `SOFT HARD`, each a number or `max`.
const BEFORE: &str = "ALLOTD_OPEN_FILES";

static RAISED_FROM: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit of this process, as far as it may.
pub fn raise() {
    let before = getrlimit(Resource::Nofile);
    if before.current.is_none_or(|soft| soft >= ENOUGH) {
        return;
    }
    let wanted = Rlimit {
        current: Some(ENOUGH),
        maximum: before.maximum.map(|hard| hard.max(ENOUGH)),
    };
    let allowed = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    let raised =
        setrlimit(Resource::Nofile, wanted).or_else(|_| setrlimit(Resource::Nofile, allowed));
    match raised {
        Ok(()) => drop(RAISED_FROM.set(before)),
        Err(errno) => tracing::warn!(
            "cannot have more than {:?} files open: {errno}",
            before.current
        ),
    }
}

/// What the environment of an errand has to say of it.
pub(super) fn before() -> Option<(&'static str, String)> {
    let Rlimit { current, maximum } = RAISED_FROM.get()?;
    Some((
        BEFORE,
        format!("{} {}", written(*current), written(*maximum)),
    ))
}

/// Gives this process, an errand, the limit from before it was raised.
pub fn restore() {
    let told = std::env::var(BEFORE).ok();
    if let Some(before) = told.as_deref().and_then(read) {
        // Lowering is always allowed.
        let _ = setrlimit(Resource::Nofile, before);
    }
}

fn written(limit: Option<u64>) -> String {
    limit.map_or_else(|| "max".to_owned(), |limit| limit.to_string())
}

fn read(text: &str) -> Option<Rlimit> {
    let limit = |word: &str| match word {
        "max" => Some(None),
        number => number.parse().ok().map(Some),
    };
    let (soft, hard) = text.split_once(' ')?;
    Some(Rlimit {
        current: limit(soft)?,
        maximum: limit(hard)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_before_is_told_in_words() {
        for (current, maximum, text) in [
            (Some(1024), Some(4096), "1024 4096"),
            (Some(1024), None, "1024 max"),
            (None, None, "max max"),
        ] {
            assert_eq!(format!("{} {}", written(current), written(maximum)), text);
            assert_eq!(read(text), Some(Rlimit { current, maximum }));
        }
        for text in ["", "7", "a b", "1 -1", "1 2 3"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
