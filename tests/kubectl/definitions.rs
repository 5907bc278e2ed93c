//! Kinds that somebody defines, as real kubectl sees them: the example of Kubernetes' documentation.

use super::{each, rows};

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crontabs.stable.example.com
spec:
  group: stable.example.com
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                cronSpec:
                  type: string
                image:
                  type: string
                replicas:
                  type: integer
  scope: Namespaced
  names:
    plural: crontabs
    singular: crontab
    kind: CronTab
    shortNames:
    - ct
    categories:
    - all
";

const QUOTA: &str = "
apiVersion: v1
kind: ResourceQuota
metadata:
  name: tabs
spec:
  hard:
    count/crontabs.stable.example.com: 1
";

fn crontab(name: &str) -> String {
    format!(
        "
apiVersion: stable.example.com/v1
kind: CronTab
metadata:
  name: {name}
spec:
  cronSpec: '* * * * */5'
  image: my-awesome-cron-image
"
    )
}

#[test]
fn a_defined_kind_is_kept_counted_and_gone_with_its_definition() {
    each(|kubectl| {
        let unknown = kubectl.bad("apply -f -", &crontab("first"));
        assert!(
            unknown.contains("no matches for kind \"CronTab\""),
            "{unknown}"
        );
        let made = kubectl.good("apply -f -", DEFINITION);
        let name = "customresourcedefinition.apiextensions.k8s.io/crontabs.stable.example.com";
        assert_eq!(made, format!("{name} created\n"));
        assert_eq!(
            kubectl.good("apply -f -", DEFINITION),
            format!("{name} unchanged\n")
        );
        let waited = kubectl.good(
            "wait --for=condition=Established crd/crontabs.stable.example.com",
            "",
        );
        assert_eq!(waited, format!("{name} condition met\n"));
        kubectl.good("apply -f -", QUOTA);
        let path = "crontab.stable.example.com/first";
        assert_eq!(
            kubectl.good("apply -f -", &crontab("first")),
            format!("{path} created\n")
        );
        assert_eq!(
            kubectl.good("apply -f -", &crontab("first")),
            format!("{path} unchanged\n")
        );
        let changed = crontab("first").replace("awesome", "boring");
        assert_eq!(
            kubectl.good("apply -f -", &changed),
            format!("{path} configured\n")
        );
        for words in [
            "get crontabs",
            "get ct",
            "get crontab first",
            "get crontabs.v1.stable.example.com",
        ] {
            let listed = rows(&kubectl.good(words, ""));
            assert_eq!(listed[0], "NAME AGE", "{words}: {listed:?}");
            assert!(listed[1].starts_with("first "), "{words}: {listed:?}");
        }
        assert!(kubectl.good("get all", "").contains(path));
        let image = kubectl.good("get ct first -o jsonpath={.spec.image}", "");
        assert_eq!(image, "my-boring-cron-image");
        kubectl.good("label ct first tier=one", "");
        kubectl.good(
            "patch ct first --type=merge --patch={\"spec\":{\"replicas\":2}}",
            "",
        );
        let strategic = kubectl.bad("patch ct first --patch={\"spec\":{\"replicas\":3}}", "");
        assert!(strategic.contains("merge-patch"), "{strategic}");
        let described = kubectl.good("describe ct first", "");
        assert!(described.contains("Replicas:"), "{described}");
        let refused = kubectl.bad("create -f -", &crontab("second"));
        let expected = "crontabs.stable.example.com \"second\" is forbidden: exceeded quota: tabs, requested: count/crontabs.stable.example.com=1, used: count/crontabs.stable.example.com=1, limited: count/crontabs.stable.example.com=1";
        assert!(refused.contains(expected), "{refused}");
        let listed = rows(&kubectl.good("get crd", ""));
        assert_eq!(listed[0], "NAME CREATED AT");
        assert!(
            listed[1].starts_with("crontabs.stable.example.com 2"),
            "{listed:?}"
        );

        let wrong = kubectl.bad(
            "apply -f -",
            &DEFINITION.replace("scope: Namespaced", "scope: Cluster"),
        );
        assert!(
            wrong.contains("spec.scope: Invalid value: \"Cluster\": field is immutable"),
            "{wrong}"
        );
        kubectl.good("delete crd crontabs.stable.example.com", "");
        // What it has cached of discovery may name the kind for a while.
        let gone = kubectl.bad("get crontabs", "");
        let nothing = "Unable to list \"stable.example.com/v1, Resource=crontabs\"";
        assert!(gone.contains(nothing), "{gone}");
        kubectl.good("apply -f -", DEFINITION);
        assert_eq!(
            kubectl.good("get crontabs", ""),
            "No resources found in default namespace.\n"
        );
        kubectl.good("apply -f -", &crontab("second"));
        kubectl.good("delete ct second", "");
    });
}
