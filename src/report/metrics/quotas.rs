//! What quotas bound and what is used of them, under the name that kube-state-metrics has for it.

use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use serde_json::Value;

use super::encode::{Figure, Labels, Shape, family};
use crate::units::Quantity;

/// One bound of one quota, or what is used of it.
#[derive(Debug)]
struct Amount {
    namespace: String,
    quota: String,
    resource: String,
    kind: &'static str,
    figure: Figure,
}

/// The amounts of all quotas.
#[derive(Debug)]
pub(super) struct Quotas(Vec<Amount>);

impl Quotas {
    /// Taken from quotas as readers of the API see them; an amount that cannot be read is left out.
    pub fn of<'a>(objects: impl Iterator<Item = &'a Value>) -> Self {
        let mut all = Vec::new();
        for object in objects {
            let text = |pointer: &str| {
                let found = object.pointer(pointer).and_then(Value::as_str);
                found.unwrap_or_default().to_owned()
            };
            for kind in ["hard", "used"] {
                let list = object.get("status").and_then(|status| status.get(kind));
                let list = list.and_then(Value::as_object).into_iter().flatten();
                all.extend(list.filter_map(|(resource, amount)| {
                    Some(Amount {
                        namespace: text("/metadata/namespace"),
                        quota: text("/metadata/name"),
                        resource: resource.clone(),
                        kind,
                        figure: figure(amount.as_str()?)?,
                    })
                }));
            }
        }
        Self(all)
    }
}

/// An amount in cores, bytes or objects.
fn figure(text: &str) -> Option<Figure> {
    let amount: Quantity = text.parse().ok()?;
    let exact = amount.exact();
    let whole = exact.parse().map(Figure::Whole);
    whole.or_else(|_| exact.parse().map(Figure::Fraction)).ok()
}

impl Collector for Quotas {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let series = self.0.iter().map(|amount| {
            let labels: Labels<'_> = vec![
                ("namespace", &amount.namespace),
                ("resourcequota", &amount.quota),
                ("resource", &amount.resource),
                ("type", amount.kind),
            ];
            (labels, amount.figure)
        });
        let (name, help) = (
            "kube_resourcequota",
            "bounds of quotas and what is used of them",
        );
        family(&mut encoder, name, help, Shape::Gauge, series)
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_cores_bytes_and_objects() {
        let quota = json!({
            "metadata": {"namespace": "shop", "name": "few"},
            "status": {
                "hard": {"requests.cpu": "1500m", "limits.memory": "1Gi", "pods": "3", "odd": "x"},
                "used": {"requests.cpu": "100m", "limits.memory": "0", "pods": "1"},
            },
        });
        let fresh = json!({"metadata": {"namespace": "shop", "name": "new"}});
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Quotas::of([&quota, &fresh].into_iter())));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let series: Vec<_> = text
            .lines()
            .filter_map(|line| {
                let rest = line.strip_prefix("kube_resourcequota{namespace=\"shop\",");
                rest?.strip_prefix("resourcequota=\"few\",")
            })
            .collect();
        assert_eq!(
            series,
            [
                "resource=\"requests.cpu\",type=\"hard\"} 1.5",
                "resource=\"limits.memory\",type=\"hard\"} 1073741824",
                "resource=\"pods\",type=\"hard\"} 3",
                "resource=\"requests.cpu\",type=\"used\"} 0.1",
                "resource=\"limits.memory\",type=\"used\"} 0",
                "resource=\"pods\",type=\"used\"} 1",
            ],
            "{text}"
        );
    }
}
