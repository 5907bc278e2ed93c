//! Thresholds over time: one victim, then a newer look; graces, minimum reclaim, conditions that last.

use proptest::prelude::*;

use super::*;
use crate::model::node::EvictionThreshold;
use crate::observation::eviction::Figures;

const MIB: u64 = 1 << 20;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn threshold(signal: Signal, least: &str, grace: Option<u64>, reclaim: &str) -> Threshold {
    Threshold {
        signal,
        least: least.parse().unwrap(),
        grace: grace.map(seconds),
        reclaim: reclaim.parse().unwrap(),
    }
}

fn decider(thresholds: Vec<Threshold>) -> Decider {
    Decider::new(Eviction {
        thresholds,
        max_pod_grace_seconds: 60,
        transition: seconds(300),
    })
}

fn hard(reclaim: &str) -> Decider {
    decider(vec![threshold(Signal::Memory, "100Mi", None, reclaim)])
}

fn of(signal: Signal, available: u64) -> Reading {
    Reading {
        signal,
        place: String::new(),
        state: State::Known(Figures {
            available,
            capacity: 1000 * MIB,
            decides: String::new(),
            others: Vec::new(),
        }),
    }
}

fn memory(mib: u64) -> Vec<Reading> {
    vec![of(Signal::Memory, mib * MIB)]
}

fn unknown(why: &str) -> Vec<Reading> {
    vec![Reading {
        state: State::Unknown(why.to_owned()),
        ..of(Signal::Memory, 0)
    }]
}

fn need(step: Step) -> Need {
    match step {
        Step::Choose(need) => need,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hard_threshold_is_acted_on_at_once_and_only_below() {
    let mut decider = hard("0");
    decider.see(memory(100), seconds(1));
    assert_eq!(decider.step(seconds(1)), Step::Rest, "not below");
    decider.see(memory(80), seconds(2));
    let need = need(decider.step(seconds(2)));
    assert_eq!(
        (need.least, need.available, need.missing),
        (100 * MIB, 80 * MIB, 20 * MIB)
    );
    assert_eq!((need.grace_seconds, need.soft), (1, false));
}

/// kubernetes#73572 and #39124: rounds with no fall in use end one pod in each time of waiting, not
/// one each.
#[test]
fn one_victim_in_each_time_of_waiting() {
    let mut decider = hard("0");
    let mut victims = Vec::new();
    for second in 1..=90 {
        decider.see(memory(50), seconds(second));
        if let Step::Choose(need) = decider.step(seconds(second)) {
            victims.push(second);
            decider.chosen(need.soft, seconds(second));
        }
    }
    assert_eq!(victims, [1, 31, 61]);
}

#[test]
fn a_victim_that_is_gone_makes_way_but_only_for_a_newer_look() {
    let mut decider = hard("0");
    decider.see(memory(50), seconds(1));
    decider.chosen(false, seconds(1));
    decider.see(memory(50), seconds(2));
    assert!(decider.is_waiting(seconds(2)));
    decider.gone(seconds(3));
    assert_eq!(
        decider.step(seconds(3)),
        Step::Rest,
        "seen before it was gone"
    );
    decider.see(memory(50), seconds(4));
    assert!(matches!(decider.step(seconds(4)), Step::Choose(_)));
    decider.see(memory(500), seconds(5));
    assert_eq!(decider.step(seconds(5)), Step::Rest);
}

#[test]
fn minimum_reclaim_is_what_must_come_back_once_it_was_met() {
    let mut decider = hard("50Mi");
    decider.see(memory(120), seconds(1));
    assert!(!decider.is_met(), "never met so far");
    decider.see(memory(99), seconds(2));
    assert_eq!(need(decider.step(seconds(2))).missing, 51 * MIB);
    decider.see(memory(149), seconds(3));
    assert!(decider.is_met());
    decider.see(memory(150), seconds(4));
    assert!(!decider.is_met());
    decider.see(memory(120), seconds(5));
    assert!(!decider.is_met());
}

#[test]
fn a_soft_threshold_must_be_met_for_its_grace_without_a_break() {
    let mut decider = decider(vec![threshold(Signal::Memory, "300Mi", Some(10), "0")]);
    for (at, mib, acts) in [
        (1, 200, false),
        (10, 200, false),
        (10, 400, false),
        (11, 200, false),
        (12, 400, false),
        (13, 200, false),
        (22, 200, false),
        (23, 200, true),
    ] {
        decider.see(memory(mib), Duration::from_millis(at * 1000 + mib));
        let step = decider.step(Duration::from_millis(at * 1000 + mib));
        assert_eq!(matches!(step, Step::Choose(_)), acts, "at {at}: {step:?}");
    }
    let need = need(decider.step(seconds(23) + Duration::from_millis(200)));
    assert_eq!((need.soft, need.grace_seconds), (true, 60));
}

/// A pod that takes its time after a soft threshold does not keep a hard one waiting.
#[test]
fn a_hard_threshold_hurries_a_soft_victim_once() {
    let mut decider = decider(vec![
        threshold(Signal::Memory, "100Mi", None, "0"),
        threshold(Signal::Memory, "300Mi", Some(0), "0"),
    ]);
    decider.see(memory(200), seconds(1));
    assert!(need(decider.step(seconds(1))).soft);
    decider.chosen(true, seconds(1));
    decider.see(memory(200), seconds(2));
    assert_eq!(decider.step(seconds(2)), Step::Rest);
    decider.see(memory(50), seconds(3));
    assert_eq!(decider.step(seconds(3)), Step::Hurry);
    decider.see(memory(50), seconds(4));
    assert_eq!(decider.step(seconds(4)), Step::Rest, "once");
}

#[test]
fn memory_goes_before_disk_and_hard_before_soft() {
    let mut decider = decider(vec![
        threshold(Signal::Memory, "300Mi", Some(0), "0"),
        threshold(Signal::AllocatableMemory, "100Mi", None, "0"),
        threshold(Signal::NodeFs, "20%", Some(0), "0"),
        threshold(Signal::Pids, "20%", None, "0"),
    ]);
    let mut at = 0;
    let mut first = |memory: u64, allocatable: u64, disk: u64, pids: u64| {
        at += 1;
        let readings = [
            (Signal::Memory, memory),
            (Signal::AllocatableMemory, allocatable),
            (Signal::NodeFs, disk),
            (Signal::Pids, pids),
        ];
        decider.see(
            readings.map(|(signal, mib)| of(signal, mib * MIB)).to_vec(),
            seconds(at),
        );
        need(decider.step(seconds(at))).signal
    };
    assert_eq!(first(200, 500, 100, 100), Signal::Memory);
    assert_eq!(first(200, 50, 100, 100), Signal::AllocatableMemory);
    assert_eq!(first(500, 500, 100, 100), Signal::Pids);
    assert_eq!(first(500, 500, 100, 500), Signal::NodeFs);
}

/// kubernetes#114332: no pod goes for a figure that cannot be true, or for an old one; and it is told.
#[test]
fn nothing_is_done_by_figures_that_are_unknown_or_stale() {
    let mut decider = hard("0");
    decider.see(unknown("use is above capacity"), seconds(1));
    assert_eq!(decider.step(seconds(1)), Step::Rest);
    assert_eq!(
        decider.faults(seconds(1)),
        ["memory.available is unknown, so no pod is evicted for it: use is above capacity"]
    );
    decider.see(memory(50), seconds(2));
    assert!(decider.faults(seconds(2)).is_empty());
    assert_eq!(decider.step(seconds(5)), Step::Rest, "seen 3 s ago");
    assert!(decider.faults(seconds(32)).is_empty());
    assert_eq!(
        decider.faults(seconds(33)).len(),
        1,
        "older than three intervals"
    );
    assert_eq!(decider.step(seconds(33)), Step::Rest);
    decider.see(memory(50), seconds(34));
    assert!(
        matches!(decider.step(seconds(34)), Step::Choose(_)),
        "plausible and low"
    );
    decider.see(memory(50), seconds(34));
    assert_eq!(decider.step(seconds(34)), Step::Rest, "the clock stands");
    assert_eq!(decider.faults(seconds(34)).len(), 1);
    decider.see(memory(50), seconds(20));
    assert_eq!(decider.step(seconds(34)), Step::Rest, "the clock goes back");
    decider.see(memory(50), seconds(35));
    assert!(matches!(decider.step(seconds(35)), Step::Choose(_)));
}

#[test]
fn a_condition_lasts_for_the_transition_after_its_cause() {
    let mut decider = hard("0");
    decider.see(memory(500), seconds(1));
    assert!(decider.conditions(seconds(1)).is_empty());
    decider.see(memory(50), seconds(2));
    assert!(decider.conditions(seconds(2)).contains(&Pressure::Memory));
    assert_eq!(
        decider.next_end(seconds(2)),
        None,
        "as long as its cause is there"
    );
    assert!(!decider.conditions(seconds(1000)).is_empty());
    decider.see(memory(50), seconds(1001));
    decider.see(memory(500), seconds(1002));
    assert_eq!(decider.next_end(seconds(1002)), Some(seconds(1301)));
    assert!(!decider.conditions(seconds(1300)).is_empty());
    assert!(decider.conditions(seconds(1301)).is_empty());
    assert_eq!(decider.next_end(seconds(1301)), None);
}

#[test]
fn where_nobody_can_go_it_is_not_tried_at_every_look() {
    let mut decider = hard("0");
    decider.see(memory(50), seconds(1));
    assert!(matches!(decider.step(seconds(1)), Step::Choose(_)));
    decider.nobody(seconds(1));
    decider.see(memory(50), seconds(2));
    assert_eq!(decider.step(seconds(2)), Step::Rest);
    assert!(
        decider.conditions(seconds(2)).contains(&Pressure::Memory),
        "still so"
    );
    decider.see(memory(50), seconds(6));
    assert!(matches!(decider.step(seconds(6)), Step::Choose(_)));
}

#[test]
fn a_need_that_has_gone_while_the_order_was_found_is_none() {
    let mut decider = hard("0");
    decider.see(memory(50), seconds(1));
    let first = need(decider.step(seconds(1)));
    decider.see(memory(60), seconds(2));
    assert_eq!(
        decider.still(&first, seconds(2)).map(|need| need.available),
        Some(60 * MIB)
    );
    decider.see(memory(600), seconds(3));
    assert_eq!(decider.still(&first, seconds(3)), None);
}

proptest! {
    /// Whatever is seen and whenever victims end: never two victims at once, none without a threshold
    /// that is met by what was just seen, none for an unknown figure.
    #[test]
    fn no_pod_goes_without_need(script in proptest::collection::vec((0..4_u8, 0..400_u64, 0..3000_u64), 1..60)) {
        let reclaim = EvictionThreshold::Amount("30Mi".parse().unwrap());
        let mut decider = hard("30Mi");
        prop_assert_eq!(decider.settings().thresholds[0].reclaim, reclaim);
        let (mut now, mut alive) = (Duration::from_secs(1), None::<Duration>);
        let (mut seen, mut met) = (None::<(u64, Duration)>, false);
        for (what, mib, millis) in script {
            now += Duration::from_millis(millis + 1);
            match what {
                0 | 1 => {
                    decider.see(memory(mib), now);
                    met = mib < if met { 130 } else { 100 };
                    seen = Some((mib, now));
                }
                2 => {
                    decider.see(unknown("?"), now);
                    (seen, met) = (None, false);
                }
                _ => if alive.take().is_some() { decider.gone(now) },
            }
            if let Step::Choose(need) = decider.step(now) {
                let (mib, at) = seen.unwrap();
                prop_assert!(met && now <= at + FRESH);
                prop_assert_eq!(need.available, mib * MIB);
                prop_assert!(need.missing > 0);
                prop_assert!(alive.is_none_or(|since| now >= since + WAIT));
                decider.chosen(need.soft, now);
                alive = Some(now);
            }
            prop_assert_eq!(decider.is_met(), met);
        }
    }
}
