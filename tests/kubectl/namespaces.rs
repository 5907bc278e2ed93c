//! Namespaces and the quotas of several of them, as real kubectl sees them.

use super::{each, rows};

const NAMESPACES: &str = "
apiVersion: v1
kind: Namespace
metadata:
  name: red
  labels: {team: colours}
---
apiVersion: v1
kind: Namespace
metadata:
  name: blue
  labels: {team: colours}
";

const QUOTA: &str = "
apiVersion: quota.openshift.io/v1
kind: ClusterResourceQuota
metadata:
  name: colours
spec:
  selector:
    labels:
      matchLabels:
        team: colours
  quota:
    hard:
      configmaps: 2
";

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

#[test]
fn a_quota_of_several_namespaces_bounds_them_together() {
    each(|kubectl| {
        kubectl.good("apply -f -", &format!("{NAMESPACES}---{QUOTA}"));
        kubectl.good("create -n red -f -", &config_map("one"));
        kubectl.good("create -n blue -f -", &config_map("one"));
        let refused = kubectl.bad("create -n red -f -", &config_map("two"));
        let expected = "configmaps \"two\" is forbidden: exceeded quota: colours, requested: configmaps=1, used: configmaps=2, limited: configmaps=2";
        assert!(refused.contains(expected), "{refused}");
        let listed = kubectl.good("get clusterquota", "");
        let listed = rows(&listed);
        assert_eq!(
            listed[0],
            "NAME LABELS SELECTOR ANNOTATIONS SELECTOR REQUEST LIMIT AGE"
        );
        assert!(
            listed[1].starts_with("colours team=colours <none> configmaps: 2/2"),
            "{listed:?}"
        );
        let own = "jsonpath={.items[*].status.namespaces[*].status.used.configmaps}";
        let own = kubectl.good(&format!("get appliedclusterquota -n red -o {own}"), "");
        assert_eq!(own, "1", "what the others use is not shown");
        let none = kubectl.good("get appliedclusterquota -n default", "");
        assert_eq!(none, "No resources found in default namespace.\n");
        let fixed = kubectl.bad("delete appliedclusterquota colours -n red", "");
        assert!(fixed.contains("allotd makes them"), "{fixed}");
        // A namespace that is chosen no more takes what it uses with it.
        kubectl.good("label namespace blue team-", "");
        kubectl.good("create -n red -f -", &config_map("two"));
        let wrong = kubectl.bad(
            "apply -f -",
            &QUOTA.replace("configmaps: 2", "configmaps: -2"),
        );
        assert!(wrong.contains("spec.quota.hard[configmaps]"), "{wrong}");
    });
}

#[test]
fn a_namespace_ends_with_all_that_it_holds() {
    each(|kubectl| {
        kubectl.good("apply -f -", NAMESPACES);
        kubectl.good("create -n red -f -", &config_map("one"));
        let listed = rows(&kubectl.good("get ns", ""));
        let names: Vec<_> = listed
            .iter()
            .filter_map(|row| row.rsplit_once(' '))
            .map(|(row, _)| row)
            .collect();
        assert_eq!(
            names,
            ["NAME STATUS", "blue Active", "default Active", "red Active"]
        );
        kubectl.good("delete namespace red", "");
        assert!(kubectl.bad("get ns red", "").contains("not found"));
        assert!(kubectl.bad("get cm one -n red", "").contains("not found"));
        let fixed = kubectl.bad("delete namespace default", "");
        assert!(
            fixed
                .contains("namespaces \"default\" is forbidden: this namespace may not be deleted"),
            "{fixed}"
        );
        // Nobody has to make a namespace first.
        kubectl.good("create -n green -f -", &config_map("one"));
        let described = kubectl.good("describe ns green", "");
        assert!(described.contains("No resource quota."), "{described}");
    });
}
