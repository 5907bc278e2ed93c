//! Where each known surprise is told, in which words, and the nearest input in which it is not.

use allotd::admission::Lint;

/// Lint, where it is told, the words, where it is not.
pub type Case = (Lint, String, &'static str, String);

/// A pod of one container.
fn pod(resources: &str) -> String {
    pod_with(&format!("command: [sleep], resources: {resources}"), "")
}

fn pod_with(container: &str, metadata: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: pod{metadata}}}\nspec:\n  containers:\n  \
         - {{name: app, {container}}}\n"
    )
}

fn range(name: &str, items: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: LimitRange\nmetadata: {{name: {name}}}\nspec: {{limits: [{items}]}}\n"
    )
}

fn quota(spec: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: quota}}\nspec: {{{spec}}}\n"
    )
}

fn cluster_quota() -> String {
    "---\napiVersion: quota.openshift.io/v1\nkind: ClusterResourceQuota\nmetadata: {name: team}\n\
     spec: {selector: {labels: {matchLabels: {team: a}}}, quota: {hard: {pods: 9}}}\n"
        .to_owned()
}

const DEFAULTS: &str =
    "{type: Container, default: {cpu: 1, memory: 1Gi}, defaultRequest: {cpu: 500m, memory: 1Gi}}";

/// Of pods and claims.
#[allow(clippy::too_many_lines, reason = "a table")]
pub fn of_pods() -> Vec<Case> {
    let full = "{requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 1, memory: 64Mi}}";
    vec![
        (
            Lint::FractionOfByte,
            pod("{limits: {memory: 400m}}"),
            "pod spec.containers[0].resources.limits[memory]: limits.memory of 400m is 0.4 bytes; did you mean 400Mi?",
            pod("{limits: {memory: 400Mi}}"),
        ),
        (
            Lint::FractionOfByte,
            range("range", "{type: Container, max: {memory: 400m}}"),
            "range spec.limits[0].max[memory]: max 400m of memory is 0.4 bytes; did you mean 400Mi?",
            range("range", "{type: Container, max: {cpu: 400m}}"),
        ),
        (
            Lint::MissingSuffix,
            quota("hard: {requests.memory: 1000}"),
            "quota spec.hard[requests.memory]: requests.memory of 1k is 1000 bytes; did you mean 1000Mi?",
            quota("hard: {requests.memory: 1000Mi, requests.cpu: 1, secrets: 100}"),
        ),
        (
            Lint::MissingSuffix,
            "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: disk}\n\
             spec: {resources: {requests: {storage: 10}}}\n"
                .to_owned(),
            "disk spec.resources.requests[storage]: requests.storage of 10 is 10 bytes; did you mean 10Mi?",
            "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: disk}\n\
             spec: {resources: {requests: {storage: 10Gi}}}\n"
                .to_owned(),
        ),
        (
            Lint::LittleMemory,
            pod("{limits: {memory: 4Ki}}"),
            "pod spec.containers[0].resources.limits[memory]: limits.memory of 4Ki is less than any process needs",
            pod("{limits: {memory: 1Mi, ephemeral-storage: 4Ki}}"),
        ),
        (
            Lint::ManyCpus,
            pod("{requests: {cpu: 500Mi}}"),
            "pod spec.containers[0].resources.requests[cpu]: requests.cpu of 500Mi is 524288000 CPUs; did you mean 500m?",
            pod("{requests: {cpu: 500}}"),
        ),
        (
            Lint::SmallCpuLimit,
            pod("{limits: {cpu: 9m}}"),
            "pod spec.containers[0].resources.limits[cpu]: limits.cpu of 9m is kept as 10m: the kernel takes no less than 1 ms in each 100 ms",
            pod("{limits: {cpu: 10m}, requests: {cpu: 1m}}"),
        ),
        (
            Lint::ZeroLimit,
            pod("{limits: {cpu: 0}}"),
            "pod spec.containers[0].resources.limits[cpu]: limits.cpu of 0 is no limit: leave it out if that is meant",
            pod("{requests: {cpu: 0}}"),
        ),
        (
            Lint::AboveNode,
            pod("{requests: {cpu: 500}}"),
            "pod spec.containers[0].resources.requests[cpu]: requests.cpu of 500 is more than the 2 of node node; did you mean 500m?",
            pod("{requests: {cpu: 500m}}"),
        ),
        (
            Lint::AboveNode,
            pod("{requests: {memory: 1Gi}, limits: {memory: 9Gi}}"),
            "pod spec.containers[0].resources.limits[memory]: limits.memory of 9Gi is more than the 8Gi of node node, so it bounds nothing",
            pod("{requests: {memory: 1Gi}, limits: {memory: 8Gi, cpu: 2}}"),
        ),
        (
            Lint::RequestFromLimit,
            pod("{limits: {cpu: 1, memory: 1Gi}}"),
            "pod spec.containers[0].resources.requests: limits without requests: all of it is asked for and kept from others: cpu 1, memory 1Gi; requests that are less leave the rest to them",
            pod(full),
        ),
        (
            Lint::NoLimit,
            pod("{requests: {cpu: 100m, memory: 64Mi}}"),
            "pod spec.containers[0].resources.limits: requests without limits: nothing but the node bounds its cpu and memory; limits.cpu and limits.memory would",
            pod(full),
        ),
        (
            Lint::NoLimit,
            pod("{requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 64Mi}}"),
            "pod spec.containers[0].resources.limits: requests without limits: nothing but the node bounds its cpu; limits.cpu would",
            // What the LimitRange gives is a limit.
            pod("{requests: {cpu: 100m, memory: 64Mi}}") + &range("range", DEFAULTS),
        ),
        (
            Lint::UnusedArgs,
            pod_with("args: [-v]", ""),
            "pod spec.containers[0].args: args are not used without a command",
            pod_with("command: [sleep], args: [inf]", ""),
        ),
        (
            Lint::UnknownAnnotation,
            pod_with(
                "command: [sleep]",
                ", annotations: {allotd.dev/pid-limit: \"5\"}",
            ),
            "pod metadata.annotations[allotd.dev/pid-limit]: annotation allotd.dev/pid-limit is not known: allotd.dev/pids-limit, allotd.dev/oom-policy, allotd.dev/storage-policy, allotd.dev/cpu-burst are",
            pod_with(
                "command: [sleep]",
                ", annotations: {allotd.dev/pids-limit: \"5\"}",
            ),
        ),
        (
            Lint::NoEffect,
            pod_with("command: [sleep], envFrom: [{configMapRef: {name: x}}]", ""),
            "pod spec.containers[0].envFrom: ",
            pod_with("command: [sleep], workingDir: /tmp", ""),
        ),
        (
            Lint::UnknownNamespace,
            pod(full) + &cluster_quota(),
            "pod metadata.namespace: Namespace shop is not in the input: it is taken to have no annotation, and no label but its name",
            pod(full)
                + &cluster_quota()
                + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
        ),
    ]
}

/// Of LimitRanges.
#[allow(clippy::too_many_lines, reason = "a table")]
pub fn of_limit_ranges() -> Vec<Case> {
    vec![
        (
            Lint::ContradictingBounds,
            range("a", "{type: Pod, max: {cpu: 100m}}")
                + &range("b", "{type: Pod, min: {cpu: 200m}}"),
            "b spec.limits[0].min[cpu]: min 200m of cpu is greater than max 100m of LimitRange a, so no Pod can keep both",
            range("a", "{type: Pod, max: {cpu: 200m}}")
                + &range("b", "{type: Pod, min: {cpu: 200m}}"),
        ),
        (
            Lint::BrokenDefault,
            range(
                "range",
                "{type: Container, default: {cpu: 1}, defaultRequest: {cpu: 100m}, maxLimitRequestRatio: {cpu: 4}}",
            ),
            "range spec.limits[0]: a container that gives no amounts itself is refused: cpu max limit to request ratio per Container is 4, but provided ratio is 10.000000",
            range(
                "range",
                "{type: Container, default: {cpu: 1}, defaultRequest: {cpu: 250m}, maxLimitRequestRatio: {cpu: 4}}",
            ),
        ),
        (
            Lint::BrokenDefault,
            range("a", DEFAULTS) + &range("b", "{type: Container, max: {memory: 512Mi}}"),
            "b spec.limits[0]: a container that gives no amounts itself is refused: maximum memory usage per Container is 512Mi, but limit is 1Gi",
            range("a", DEFAULTS) + &range("b", "{type: Container, max: {memory: 1Gi}}"),
        ),
        (
            Lint::BrokenDefault,
            range(
                "range",
                &format!("{DEFAULTS}, {{type: Pod, min: {{cpu: 1}}}}"),
            ),
            "range spec.limits[1]: a pod of one container that gives no amounts itself is refused: minimum cpu usage per Pod is 1, but request is 500m",
            range(
                "range",
                &format!("{DEFAULTS}, {{type: Pod, min: {{cpu: 500m}}}}"),
            ),
        ),
        (
            Lint::TiedDefaults,
            range("b", DEFAULTS)
                + &range(
                    "a",
                    "{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 500m}}",
                ),
            "b spec.limits[0].default[cpu]: default 1 of cpu is never the default of limits: LimitRange a is the first by name, so its 2 holds",
            range("b", DEFAULTS) + &range("a", DEFAULTS),
        ),
        (
            Lint::DefaultFromMax,
            range("range", "{type: Container, max: {cpu: 2}}"),
            "range spec.limits[0].max[cpu]: max 2 of cpu is also the default limit and the default request: a container that gives nothing gets the most there is; default and defaultRequest say what it shall get",
            range(
                "range",
                "{type: Container, max: {cpu: 2}, default: {cpu: 1}}",
            ),
        ),
        (
            Lint::DefaultFromMax,
            range(
                "range",
                "{type: Container, max: {cpu: 2}, defaultRequest: {cpu: 1}}",
            ),
            "range spec.limits[0].max[cpu]: max 2 of cpu is also the default limit: a container that gives nothing gets the most there is; default says what it shall get",
            range("range", "{type: Pod, max: {cpu: 2}}"),
        ),
        (
            Lint::RequestFromDefault,
            range("range", "{type: Container, default: {cpu: 1}}"),
            "range spec.limits[0].default[cpu]: default 1 of cpu is also the default request: all of it is kept from others; defaultRequest says how much shall be",
            range("range", DEFAULTS),
        ),
    ]
}

/// Of quotas.
#[allow(clippy::too_many_lines, reason = "a table")]
pub fn of_quotas() -> Vec<Case> {
    let used = |number: u32| {
        format!(
            "{}status: {{used: {{pods: {number}}}}}\n",
            quota("hard: {pods: 2}")
        )
    };
    vec![
        (
            Lint::DeadKey,
            quota("hard: {nvidia.com/gpu: 1}"),
            "quota spec.hard[nvidia.com/gpu]: nvidia.com/gpu counts nothing; requests.nvidia.com/gpu counts what is asked for",
            quota("hard: {requests.nvidia.com/gpu: 1}"),
        ),
        (
            Lint::DeadKey,
            quota("hard: {count/secrets: 1}, scopes: [Terminating]"),
            "quota spec.hard[count/secrets]: count/secrets counts nothing here: what it counts has no scope Terminating; a quota without scopes counts it",
            quota("hard: {count/pods: 1}, scopes: [Terminating]"),
        ),
        (
            Lint::EmptyScope,
            quota(
                "hard: {pods: 1}, scopeSelector: {matchExpressions: [\
                 {scopeName: PriorityClass, operator: In, values: [a]}, \
                 {scopeName: PriorityClass, operator: In, values: [b]}]}",
            ),
            "quota spec.scopeSelector: counts nothing: no pod is all of {PriorityClass In [a]} and {PriorityClass In [b]}; names in one expression are alternatives",
            quota(
                "hard: {pods: 1}, scopeSelector: {matchExpressions: [\
                 {scopeName: PriorityClass, operator: In, values: [a, b]}, \
                 {scopeName: PriorityClass, operator: NotIn, values: [b]}]}",
            ),
        ),
        (
            Lint::EmptyScope,
            quota(
                "hard: {pods: 1}, scopeSelector: {matchExpressions: [\
                 {scopeName: PriorityClass, operator: Exists}, \
                 {scopeName: PriorityClass, operator: DoesNotExist}]}",
            ),
            "quota spec.scopeSelector: counts nothing: no pod is all of {PriorityClass Exists []} and {PriorityClass DoesNotExist []}; names in one expression are alternatives",
            quota(
                "hard: {pods: 1}, scopeSelector: {matchExpressions: [\
                 {scopeName: PriorityClass, operator: NotIn, values: [a, b]}]}",
            ),
        ),
        (
            Lint::ZeroQuota,
            quota("hard: {pods: 0}"),
            "quota spec.hard[pods]: 0 of pods: no pod is admitted; without the key there is no bound",
            // This is how pods of a sort are forbidden, and what not every pod needs.
            quota("hard: {pods: 0}, scopes: [Terminating]"),
        ),
        (
            Lint::ZeroQuota,
            quota("hard: {limits.memory: 0}"),
            "quota spec.hard[limits.memory]: 0 of limits.memory: no pod that asks for some is admitted; without the key there is no bound",
            quota("hard: {services.loadbalancers: 0, requests.nvidia.com/gpu: 0}"),
        ),
        (
            Lint::OverusedQuota,
            used(3),
            "quota spec.hard[pods]: 3 of pods are used and 2 are allowed: nothing that asks for some is admitted until more than 1 is given back",
            used(2),
        ),
        (
            Lint::SmallQuota,
            quota("hard: {requests.cpu: 100m}")
                + &range("range", "{type: Container, min: {cpu: 200m}}"),
            "quota spec.hard[requests.cpu]: 100m of requests.cpu is less than the min 200m per Container of LimitRange range, so no pod fits; 200m or more is right",
            quota("hard: {requests.cpu: 200m}")
                + &range("range", "{type: Container, min: {cpu: 200m}}"),
        ),
        (
            Lint::SmallQuota,
            quota("hard: {limits.memory: 512Mi}") + &range("range", DEFAULTS),
            "quota spec.hard[limits.memory]: 512Mi of limits.memory is less than the default 1Gi of LimitRange range, so no pod fits that gives nothing itself; 1Gi or more is right",
            quota("hard: {requests.cpu: 500m, limits.memory: 1Gi}") + &range("range", DEFAULTS),
        ),
        (
            Lint::UndefaultedQuota,
            quota(
                "hard: {limits.cpu: 1, requests.memory: 1Gi, pods: 1, requests.ephemeral-storage: 1Gi}",
            ),
            "quota spec.hard: every container it counts must give limits.cpu, requests.memory, as no LimitRange of namespace shop has a default: a pod that leaves one out is refused",
            quota("hard: {limits.cpu: 1, requests.memory: 1Gi}") + &range("range", DEFAULTS),
        ),
    ]
}
