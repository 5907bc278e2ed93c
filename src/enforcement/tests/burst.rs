//! A quota and its burst: each can be in the way of the other, so the order of writes follows the direction.

use proptest::prelude::*;

use super::*;
use crate::units::{CpuMax, Micros};

fn settings((quota, period, share): (Option<u64>, u64, u64)) -> [Setting; 2] {
    let burst = quota.unwrap_or(200_000) * share / 100;
    let quota = quota.map(Micros).into();
    let period = Micros(period);
    [
        Setting::CpuMax(CpuMax { quota, period }),
        Setting::CpuMaxBurst(Micros(burst)),
    ]
}

fn any() -> impl Strategy<Value = (Option<u64>, u64, u64)> {
    let quota = proptest::option::weighted(0.9, 1000..200_000_u64);
    let period = prop::sample::select(vec![10_000, 100_000, 1_000_000_u64]);
    (quota, period, 0..=100_u64)
}

proptest! {
    #[test]
    fn one_pass_leads_from_any_pair_to_any_other(one in any(), other in any()) {
        let mut owner = Owner::default();
        for settings in [settings(one), settings(other)] {
            let tree = pod(&settings, &settings);
            let outcome = owner.pass(&tree);
            prop_assert!(outcome.is_complete(), "{:?} {:?}: {:?}", one, other, outcome);
        }
    }
}

#[test]
fn a_quota_goes_down_after_its_burst_and_up_before_it() {
    let mut owner = Owner::default();
    let small = settings((Some(10_000), 100_000, 100));
    let large = settings((Some(50_000), 100_000, 100));
    let texts = |owner: &mut Owner, settings: &[Setting]| {
        owner.kernel.take_performed();
        assert!(owner.pass(&pod(&[], settings)).is_complete());
        let performed = owner.kernel.take_performed();
        let writes = performed.iter().filter(|op| matches!(op, Op::Write(..)));
        writes.map(ToString::to_string).collect::<Vec<_>>()
    };
    texts(&mut owner, &small);
    assert_eq!(
        texts(&mut owner, &large),
        [
            "write pod/a cpu.max = 50000 100000",
            "write pod/a cpu.max.burst = 50000"
        ]
    );
    assert_eq!(
        texts(&mut owner, &small),
        [
            "write pod/a cpu.max.burst = 10000",
            "write pod/a cpu.max = 10000 100000"
        ]
    );
}

#[test]
fn the_model_refuses_what_the_kernel_refuses() {
    let mut kernel = ModelKernel::default();
    kernel
        .perform(&Op::Enable(path(""), ControllerSet::all()))
        .unwrap();
    kernel.perform(&Op::Create(path("a"))).unwrap();
    let quota = |us| settings((Some(us), 100_000, 0))[0];
    let burst = |us| Setting::CpuMaxBurst(Micros(us));
    for (setting, is_taken) in [
        (burst(1_000_000), true),
        (quota(20_000), false),
        (burst(20_000), true),
        (quota(20_000), true),
        (burst(20_001), false),
        (quota(19_999), false),
        (quota(40_000), true),
        (burst(u64::MAX), false),
    ] {
        let answer = kernel.perform(&Op::Write(path("a"), setting));
        let kind = answer.err().map(|error| error.kind);
        assert_eq!(kind, (!is_taken).then_some(ErrorKind::Invalid), "{setting}");
    }
}
