//! What must be free below a smaller bound of memory before it is written.

use super::*;

const KIB: u64 = 1 << 10;

fn bound(bytes: u64) -> Setting {
    Setting::MemoryMax(Limit::At(Bytes(bytes)))
}

/// A container that holds so much (bytes), with a bound of 256 MiB.
fn holding(bytes: u64) -> Owner {
    let mut owner = Owner::with(&pod(&[max(256)], &[max(256)]));
    owner.kernel.spawn_in(&path("pod/a"), Pid(1)).unwrap();
    owner.kernel.grow(Pid(1), Bytes(bytes));
    owner.kernel.take_performed();
    owner
}

#[test]
fn a_use_just_below_the_new_bound_waits_and_the_wait_says_what_must_go() {
    let mut owner = holding(127 * MIB);
    let wanted = pod(&[max(128)], &[max(128)]);
    let said = |level: &str| {
        format!(
            "memory.max of {level} stays 268435456: 134217728 is wanted but 133169152 bytes are in use, \
             1048576 in the way: 2097152 must be free below the new bound"
        )
    };
    // It does not grow, and yet it waits, pass after pass, at both levels.
    for _ in 0..2 {
        let outcome = owner.pass(&wanted);
        assert_eq!(text(&outcome.held), [said("pod/a"), said("pod")]);
        assert!(outcome.failed.is_empty());
    }
    // What was said to be in the way is exactly what must go.
    owner.kernel.shrink(Pid(1), Bytes(MIB - 4 * KIB));
    assert_eq!(owner.pass(&wanted).held.len(), 2);
    owner.kernel.shrink(Pid(1), Bytes(4 * KIB));
    assert!(owner.pass(&wanted).is_complete());
    assert!(owner.kernel.is_alive(Pid(1)));
}

#[test]
fn growth_is_throttled_below_what_must_be_free() {
    let mut owner = holding(100 * MIB);
    owner.kernel.set_cache(&path("pod/a"), Bytes(8 * KIB));
    assert!(owner.pass(&pod(&[max(256)], &[max(128)])).is_complete());
    let high = |limit| Op::Write(path("pod/a"), Setting::MemoryHigh(limit));
    assert_eq!(
        owner.kernel.take_performed(),
        [
            // What was protected before is not spared any more (Linux 6.1).
            Op::Reclaim(path("pod"), Bytes(4 * KIB)),
            high(Limit::At(Bytes(126 * MIB))),
            Op::Write(path("pod/a"), max(128)),
            high(Limit::Max),
        ]
    );
}

#[test]
fn a_page_cache_makes_room_for_what_must_be_free() {
    let mut owner = holding(100 * MIB);
    owner.kernel.set_cache(&path("pod/a"), Bytes(156 * MIB));
    assert!(owner.pass(&pod(&[max(256)], &[max(128)])).is_complete());
    let left = owner.kernel.counters(&path("pod/a")).unwrap();
    assert!(left.memory_current.unwrap() <= Bytes(126 * MIB));
    assert!(owner.kernel.is_alive(Pid(1)));
}

#[test]
fn a_small_bound_keeps_whole_pages_free_and_a_tiny_one_none() {
    // The bound, and the most that may be in use for it to be written (bytes).
    for (lower, most) in [
        (32 * MIB, 30 * MIB),
        (16 * MIB, 15 * MIB),
        (1000 * KIB, 940 * KIB),
        (64 * KIB, 60 * KIB),
        (60 * KIB, 60 * KIB),
        (4 * KIB, 4 * KIB),
        (0, 0),
    ] {
        let wanted = pod(&[max(256)], &[bound(lower)]);
        let mut owner = holding(most);
        let outcome = owner.pass(&wanted);
        assert!(outcome.is_complete(), "{lower}: {:?}", text(&outcome.held));

        let mut owner = holding(most + 4 * KIB);
        let outcome = owner.pass(&wanted);
        let spare = lower - most;
        let told = match spare {
            0 => "4096 in the way".to_owned(),
            _ => format!("4096 in the way: {spare} must be free below the new bound"),
        };
        assert_eq!(outcome.held.len(), 1, "{lower}");
        assert!(outcome.held[0].to_string().ends_with(&told), "{told}");
        assert!(owner.kernel.is_alive(Pid(1)));
    }
}

#[test]
fn a_bound_that_grows_needs_nothing_free() {
    let mut owner = holding(256 * MIB);
    assert!(owner.pass(&pod(&[max(257)], &[max(257)])).is_complete());
    let high = |op: &Op| matches!(op, Op::Write(_, Setting::MemoryHigh(_)));
    assert!(!owner.kernel.take_performed().iter().any(high));
}
