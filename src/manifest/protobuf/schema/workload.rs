//! What makes pods from a template.
//!
//! Decides numbers, names and types of their fields; must never say more than Kubernetes' own types.

use super::meta::{LabelSelector, ObjectMeta};
use super::pod::PodSpec;
use super::volume::PersistentVolumeClaim;
use super::{Field, Message};

messages! {
    ReplicationController {
        1 metadata: ObjectMeta, 2 spec: ReplicationControllerSpec, 3 status: skipped,
    }
    ReplicationControllerSpec {
        1 replicas: (int), 2 selector: {text}, 3 template: PodTemplateSpec, 4 minReadySeconds: int,
    }
    PodTemplateSpec { 1 metadata: ObjectMeta, 2 spec: PodSpec, }
    Deployment { 1 metadata: ObjectMeta, 2 spec: DeploymentSpec, 3 status: skipped, }
    DeploymentSpec {
        1 replicas: (int), 2 selector: LabelSelector, 3 template: PodTemplateSpec,
        4 strategy: DeploymentStrategy, 5 minReadySeconds: int, 6 revisionHistoryLimit: (int),
        7 paused: bool, 9 progressDeadlineSeconds: (int),
    }
    DeploymentStrategy { 1 type: text, 2 rollingUpdate: RollingUpdateDeployment, }
    RollingUpdateDeployment { 1 maxUnavailable: int_or_text, 2 maxSurge: int_or_text, }
    ReplicaSet { 1 metadata: ObjectMeta, 2 spec: ReplicaSetSpec, 3 status: skipped, }
    ReplicaSetSpec {
        1 replicas: (int), 2 selector: LabelSelector, 3 template: PodTemplateSpec,
        4 minReadySeconds: int,
    }
    StatefulSet { 1 metadata: ObjectMeta, 2 spec: StatefulSetSpec, 3 status: skipped, }
    StatefulSetSpec {
        1 replicas: (int), 2 selector: LabelSelector, 3 template: PodTemplateSpec,
        4 volumeClaimTemplates: [PersistentVolumeClaim], 5 serviceName: text,
        6 podManagementPolicy: text, 7 updateStrategy: StatefulSetUpdateStrategy,
        8 revisionHistoryLimit: (int), 9 minReadySeconds: int,
        10 persistentVolumeClaimRetentionPolicy: StatefulSetPersistentVolumeClaimRetentionPolicy,
        11 ordinals: StatefulSetOrdinals,
    }
    StatefulSetUpdateStrategy { 1 type: text, 2 rollingUpdate: RollingUpdateStatefulSetStrategy, }
    RollingUpdateStatefulSetStrategy { 1 partition: (int), 2 maxUnavailable: int_or_text, }
    StatefulSetPersistentVolumeClaimRetentionPolicy { 1 whenDeleted: text, 2 whenScaled: text, }
    StatefulSetOrdinals { 1 start: int, }
    DaemonSet { 1 metadata: ObjectMeta, 2 spec: DaemonSetSpec, 3 status: skipped, }
    DaemonSetSpec {
        1 selector: LabelSelector, 2 template: PodTemplateSpec,
        3 updateStrategy: DaemonSetUpdateStrategy, 4 minReadySeconds: int,
        6 revisionHistoryLimit: (int),
    }
    DaemonSetUpdateStrategy { 1 type: text, 2 rollingUpdate: RollingUpdateDaemonSet, }
    RollingUpdateDaemonSet { 1 maxUnavailable: int_or_text, 2 maxSurge: int_or_text, }
    Job { 1 metadata: ObjectMeta, 2 spec: JobSpec, 3 status: skipped, }
    JobSpec {
        1 parallelism: (int), 2 completions: (int), 3 activeDeadlineSeconds: (int),
        4 selector: LabelSelector, 5 manualSelector: (bool), 6 template: PodTemplateSpec,
        7 backoffLimit: (int), 8 ttlSecondsAfterFinished: (int), 9 completionMode: (text),
        10 suspend: (bool), 11 podFailurePolicy: PodFailurePolicy, 12 backoffLimitPerIndex: (int),
        13 maxFailedIndexes: (int), 14 podReplacementPolicy: (text), 15 managedBy: (text),
        16 successPolicy: SuccessPolicy,
    }
    PodFailurePolicy { 1 rules: [PodFailurePolicyRule], }
    PodFailurePolicyRule {
        1 action: text, 2 onExitCodes: PodFailurePolicyOnExitCodesRequirement,
        3 onPodConditions: [PodFailurePolicyOnPodConditionsPattern],
    }
    PodFailurePolicyOnExitCodesRequirement {
        1 containerName: (text), 2 operator: text, 3 values: [int],
    }
    PodFailurePolicyOnPodConditionsPattern { 1 type: text, 2 status: text, }
    SuccessPolicy { 1 rules: [SuccessPolicyRule], }
    SuccessPolicyRule { 1 succeededIndexes: (text), 2 succeededCount: (int), }
    CronJob { 1 metadata: ObjectMeta, 2 spec: CronJobSpec, 3 status: skipped, }
    CronJobSpec {
        1 schedule: text, 2 startingDeadlineSeconds: (int), 3 concurrencyPolicy: text,
        4 suspend: (bool), 5 jobTemplate: JobTemplateSpec, 6 successfulJobsHistoryLimit: (int),
        7 failedJobsHistoryLimit: (int), 8 timeZone: (text),
    }
    JobTemplateSpec { 1 metadata: ObjectMeta, 2 spec: JobSpec, }
}
