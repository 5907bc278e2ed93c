//! Which CPUs stay with the system, and whether containers can have others to themselves.
//!
//! Decides what of these settings goes together. Which CPUs the machine has is not known here.

use super::Config;
use crate::model::policy::CpuManagerPolicy;
use crate::units::{CpuSet, Quantity};

/// The resource.
const CPU: &str = "cpu";

impl Config {
    /// The CPUs that the system keeps by number; empty: so many as its reservations make.
    ///
    /// # Errors
    /// What is wrong with the list.
    pub fn reserved_cpus(&self) -> Result<CpuSet, String> {
        let list: String = self.reserved_system_cpus.split_whitespace().collect();
        list.parse()
            .map_err(|error| format!("reservedSystemCPUs: {error}"))
    }

    /// The CPU that is reserved: that of the list where there is one (as by the kubelet), else the sum of both
    /// reservations.
    pub fn reserved_cpu(&self) -> Quantity {
        let listed = self.reserved_cpus().unwrap_or_default().count();
        if listed > 0 {
            return Quantity::from_units(listed, crate::units::Format::DecimalSi);
        }
        [&self.system_reserved, &self.kube_reserved]
            .into_iter()
            .filter_map(|list| list.get(CPU))
            .fold(Quantity::ZERO, |sum, amount| sum.saturating_add(*amount))
    }

    /// What is out of bounds.
    pub(super) fn cpu_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        problems.extend(self.reserved_cpus().err());
        let is_static = self.cpu_manager_policy == CpuManagerPolicy::Static;
        if is_static && problems.is_empty() && self.reserved_cpu() <= Quantity::ZERO {
            problems.push(
                "cpuManagerPolicy is static and no CPU is reserved: systemReserved.cpu or \
                 kubeReserved.cpu above 0, or CPUs in reservedSystemCPUs, are right, because the system \
                 and all who share need one"
                    .to_owned(),
            );
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_needs_a_cpu_that_nobody_can_have_alone() {
        for (text, expected) in [
            ("cpuManagerPolicy: static", Ok("100m")),
            ("cpuManagerPolicy: none\nsystemReserved: {}", Ok("0")),
            (
                "cpuManagerPolicy: static\nsystemReserved: {}",
                Err("no CPU is reserved"),
            ),
            (
                "cpuManagerPolicy: static\nsystemReserved: {cpu: 0}",
                Err("no CPU is reserved"),
            ),
            (
                "cpuManagerPolicy: static\nsystemReserved: {cpu: 500m}\nkubeReserved: {cpu: 700m}",
                Ok("1200m"),
            ),
            // The list takes the place of the amounts.
            (
                "cpuManagerPolicy: static\nreservedSystemCPUs: 0-1, 4",
                Ok("3"),
            ),
            (
                "reservedSystemCPUs: 3-1",
                Err("reservedSystemCPUs: \"3-1\" is no list of CPUs"),
            ),
            ("reservedSystemCPUs: \"512\"", Err("CPU 512 is beyond 511")),
            ("cpuManagerPolicy: fixed", Err("fixed")),
        ] {
            let read = Config::parse(text);
            match (read, expected) {
                (Ok(config), Ok(reserved)) => {
                    assert_eq!(config.reserved_cpu().to_string(), reserved, "{text}");
                }
                (Err(error), Err(expected)) => {
                    assert!(error.to_string().contains(expected), "{text}: {error}");
                }
                (read, expected) => panic!("{text}: {read:?}, {expected:?}"),
            }
        }
    }
}
