//! Shares, weights and quotas.

use allotd::model::policy::CpuWeightFormula::{Linear, Quadratic};
use allotd::model::{Policy, QosClass};
use allotd::translation::cpu::{quota, shares, weight};
use allotd::translation::memory::Protection;
use allotd::translation::{Share, Totals, levels, qos_path};
use allotd::units::{CpuMax, CpuWeight, Limit, Micros, MilliCpu};
use serde_json::json;

use crate::vectors::{Row, each_row, number};
use crate::{of_container, of_pod, pods, translated, value};

#[test]
fn shares_and_weights() {
    each_row("cpu_milli_to_shares_and_weight", |name, input, expected| {
        let shares = shares(MilliCpu(number(&input["milliCPU"])));
        assert_eq!(shares, number::<u32>(&expected["shares"]), "{name}");
        for (formula, field) in [
            (Linear, "weight_old_linear"),
            (Quadratic, "weight_new_quadratic"),
        ] {
            let weight = weight(shares, formula).get();
            assert_eq!(weight, number::<u16>(&expected[field]), "{name} {field}");
        }
        Row::Compared
    });
    each_row("cpu_milli_to_shares", |name, input, expected| {
        let shares = shares(MilliCpu(number(&input["milliCPU"])));
        assert_eq!(shares, number::<u32>(&expected["shares"]), "{name}");
        Row::Compared
    });
    each_row("cpu_shares_to_weight_new", |name, input, expected| {
        let shares = number(&input["shares"]);
        if shares == 0 {
            // Upstream's weight 0 means that the file is left alone; here a weight is never unset.
            assert_eq!(weight(0, Quadratic), CpuWeight::MIN);
            return Row::PassedOver("no shares is no weight of ours");
        }
        assert_eq!(
            weight(shares, Quadratic).get(),
            number::<u16>(&expected["weight"]),
            "{name}"
        );
        Row::Compared
    });
    each_row("cpu_shares_to_weight_old", |name, input, expected| {
        let weight = weight(number(&input["shares"]), Linear).get();
        assert_eq!(weight, number::<u16>(&expected["weight"]), "{name}");
        Row::Compared
    });
}

#[test]
fn quotas() {
    each_row("cpu_milli_to_quota", |name, input, expected| {
        let quota = quota(
            MilliCpu(number(&input["milliCPU"])),
            Micros(number(&input["periodUs"])),
        );
        // Upstream's quota 0 is none.
        let expected = match number(&expected["quotaUs"]) {
            0 => Limit::Max,
            quota => Limit::At(Micros(quota)),
        };
        assert_eq!(quota, expected, "{name}");
        Row::Compared
    });
    each_row("cpu_max_string", |name, input, expected| {
        let period = Micros(number(&input["periodUs"]));
        let quota = quota(MilliCpu(number(&input["milliCPULimit"])), period);
        let max = CpuMax { quota, period }.to_string();
        assert_eq!(max, expected["cpu.max"].as_str().unwrap(), "{name}");
        // The same by way of a pod with this limit.
        let policy = Policy {
            cpu_cfs_quota_period: period,
            ..Policy::default()
        };
        let limit = format!("{}m", input["milliCPULimit"]);
        let pod = pods::pod(&json!({"containers": [{"resources": {"limits": {"cpu": limit}}}]}));
        let pod = translated(pod, &pods::big_node(), &policy);
        assert_eq!(of_container(&pod, "c0", "cpu.max"), max, "{name}");
        assert_eq!(of_pod(&pod, "cpu.max"), max, "{name}");
        Row::Compared
    });
}

/// The weight above the Burstable pods is that of the sum of their requests, on the one curve that
/// holds for the whole tree; upstream takes the linear one here and the other at the containers.
#[test]
fn the_burstable_level_weighs_as_its_pods_together() {
    each_row("qos_cpu_shares", |name, input, expected| {
        let requests = input["burstablePodMilliCPURequests"].as_array().unwrap();
        let pods: Vec<Share> = requests
            .iter()
            .map(|request| (QosClass::Burstable, number(request)))
            // Guaranteed pods stand beside that level and add nothing to it.
            .chain([(QosClass::Guaranteed, 4000)])
            .map(|(qos, cpu)| Share {
                qos,
                cpu: MilliCpu(cpu),
                protection: Protection::default(),
            })
            .collect();
        let totals: Totals = pods.iter().collect();
        for (formula, field) in [
            (Linear, "burstableWeightOld"),
            (Quadratic, "burstableWeightNew"),
        ] {
            let policy = Policy {
                cpu_weight_formula: formula,
                ..Policy::default()
            };
            let tree = levels(&totals, &pods::big_node(), &policy).tree;
            let of = |qos| value(&tree, &qos_path(qos), "cpu.weight");
            assert_eq!(
                of(QosClass::Burstable),
                expected[field].to_string(),
                "{name}"
            );
            assert_eq!(expected["besteffortShares"], 2);
            assert_eq!(of(QosClass::BestEffort), "1", "{name}");
        }
        Row::Compared
    });
}
