//! A thousand resizes under load, which take minutes: only on request, by
//! `scripts/vm --timeout 1800 --filter node::storm_long::a_thousand_resizes_kill_nobody`.

use std::time::Duration;

use super::storm::storm;
use crate::Outcome;

tests![a_thousand_resizes_kill_nobody];

const RESIZES: u32 = 1000;

fn a_thousand_resizes_kill_nobody() -> Outcome {
    let sent = storm(RESIZES, Duration::from_mins(25))?;
    assert_eq!(sent, RESIZES);
    Ok(())
}
