//! Pods and their containers.
//!
//! Decides numbers, names and types of their fields; must never say more than Kubernetes' own types.

use super::meta::{LabelSelector, LocalObjectReference, ObjectMeta};
use super::volume::Volume;
use super::{Field, Message};

messages! {
    Pod { 1 metadata: ObjectMeta, 2 spec: PodSpec, 3 status: skipped, }
    PodSpec {
        1 volumes: [Volume], 2 containers: [Container], 3 restartPolicy: text,
        4 terminationGracePeriodSeconds: (int), 5 activeDeadlineSeconds: (int), 6 dnsPolicy: text,
        7 nodeSelector: {text}, 8 serviceAccountName: text, 9 serviceAccount: text,
        10 nodeName: text, 11 hostNetwork: bool, 12 hostPID: bool, 13 hostIPC: bool,
        14 securityContext: PodSecurityContext, 15 imagePullSecrets: [LocalObjectReference],
        16 hostname: text, 17 subdomain: text, 18 affinity: Affinity, 19 schedulerName: text,
        20 initContainers: [Container], 21 automountServiceAccountToken: (bool),
        22 tolerations: [Toleration], 23 hostAliases: [HostAlias], 24 priorityClassName: text,
        25 priority: (int), 26 dnsConfig: PodDNSConfig, 27 shareProcessNamespace: (bool),
        28 readinessGates: [PodReadinessGate], 29 runtimeClassName: (text),
        30 enableServiceLinks: (bool), 31 preemptionPolicy: (text), 32 overhead: {quantity},
        33 topologySpreadConstraints: [TopologySpreadConstraint],
        34 ephemeralContainers: [EphemeralContainer], 35 setHostnameAsFQDN: (bool), 36 os: PodOS,
        37 hostUsers: (bool), 38 schedulingGates: [PodSchedulingGate],
        39 resourceClaims: [PodResourceClaim], 40 resources: ResourceRequirements,
        41 hostnameOverride: (text),
    }
    ObjectFieldSelector { 1 apiVersion: text, 2 fieldPath: text, }
    ResourceFieldSelector { 1 containerName: text, 2 resource: text, 3 divisor: quantity, }
    Container {
        1 name: text, 2 image: text, 3 command: [text], 4 args: [text], 5 workingDir: text,
        6 ports: [ContainerPort], 7 env: [EnvVar], 8 resources: ResourceRequirements,
        9 volumeMounts: [VolumeMount], 10 livenessProbe: Probe, 11 readinessProbe: Probe,
        12 lifecycle: Lifecycle, 13 terminationMessagePath: text, 14 imagePullPolicy: text,
        15 securityContext: SecurityContext, 16 stdin: bool, 17 stdinOnce: bool, 18 tty: bool,
        19 envFrom: [EnvFromSource], 20 terminationMessagePolicy: text,
        21 volumeDevices: [VolumeDevice], 22 startupProbe: Probe,
        23 resizePolicy: [ContainerResizePolicy], 24 restartPolicy: (text),
        25 restartPolicyRules: [ContainerRestartRule],
    }
    ContainerPort {
        1 name: text, 2 hostPort: int, 3 containerPort: int, 4 protocol: text, 5 hostIP: text,
    }
    EnvFromSource {
        1 prefix: text, 2 configMapRef: ConfigMapEnvSource, 3 secretRef: SecretEnvSource,
    }
    ConfigMapEnvSource { 1 inline: LocalObjectReference, 2 optional: (bool), }
    SecretEnvSource { 1 inline: LocalObjectReference, 2 optional: (bool), }
    EnvVar { 1 name: text, 2 value: text, 3 valueFrom: EnvVarSource, }
    EnvVarSource {
        1 fieldRef: ObjectFieldSelector, 2 resourceFieldRef: ResourceFieldSelector,
        3 configMapKeyRef: ConfigMapKeySelector, 4 secretKeyRef: SecretKeySelector,
        5 fileKeyRef: FileKeySelector,
    }
    ConfigMapKeySelector { 1 inline: LocalObjectReference, 2 key: text, 3 optional: (bool), }
    SecretKeySelector { 1 inline: LocalObjectReference, 2 key: text, 3 optional: (bool), }
    ResourceRequirements {
        1 limits: {quantity}, 2 requests: {quantity}, 3 claims: [ResourceClaim],
    }
    ResourceClaim { 1 name: text, 2 request: text, }
    ContainerResizePolicy { 1 resourceName: text, 2 restartPolicy: text, }
    VolumeMount {
        1 name: text, 2 readOnly: bool, 3 mountPath: text, 4 subPath: text,
        5 mountPropagation: (text), 6 subPathExpr: text, 7 recursiveReadOnly: (text),
    }
    VolumeDevice { 1 name: text, 2 devicePath: text, }
    Probe {
        1 inline: ProbeHandler, 2 initialDelaySeconds: int, 3 timeoutSeconds: int,
        4 periodSeconds: int, 5 successThreshold: int, 6 failureThreshold: int,
        7 terminationGracePeriodSeconds: (int),
    }
    ProbeHandler {
        1 exec: ExecAction, 2 httpGet: HTTPGetAction, 3 tcpSocket: TCPSocketAction,
        4 grpc: GRPCAction,
    }
    ExecAction { 1 command: [text], }
    HTTPGetAction {
        1 path: text, 2 port: int_or_text, 3 host: text, 4 scheme: text,
        5 httpHeaders: [HTTPHeader],
    }
    HTTPHeader { 1 name: text, 2 value: text, }
    TCPSocketAction { 1 port: int_or_text, 2 host: text, }
    GRPCAction { 1 port: int, 2 service: (text), }
    Lifecycle { 1 postStart: LifecycleHandler, 2 preStop: LifecycleHandler, 3 stopSignal: (text), }
    LifecycleHandler {
        1 exec: ExecAction, 2 httpGet: HTTPGetAction, 3 tcpSocket: TCPSocketAction,
        4 sleep: SleepAction,
    }
    SleepAction { 1 seconds: int, }
    SecurityContext {
        1 capabilities: Capabilities, 2 privileged: (bool), 3 seLinuxOptions: SELinuxOptions,
        4 runAsUser: (int), 5 runAsNonRoot: (bool), 6 readOnlyRootFilesystem: (bool),
        7 allowPrivilegeEscalation: (bool), 8 runAsGroup: (int), 9 procMount: (text),
        10 windowsOptions: WindowsSecurityContextOptions, 11 seccompProfile: SeccompProfile,
        12 appArmorProfile: AppArmorProfile,
    }
    Capabilities { 1 add: [text], 2 drop: [text], }
    SELinuxOptions { 1 user: text, 2 role: text, 3 type: text, 4 level: text, }
    WindowsSecurityContextOptions {
        1 gmsaCredentialSpecName: (text), 2 gmsaCredentialSpec: (text), 3 runAsUserName: (text),
        4 hostProcess: (bool),
    }
    SeccompProfile { 1 type: text, 2 localhostProfile: (text), }
    AppArmorProfile { 1 type: text, 2 localhostProfile: (text), }
    EphemeralContainer { 1 inline: EphemeralContainerCommon, 2 targetContainerName: text, }
    EphemeralContainerCommon {
        1 name: text, 2 image: text, 3 command: [text], 4 args: [text], 5 workingDir: text,
        6 ports: [ContainerPort], 7 env: [EnvVar], 8 resources: ResourceRequirements,
        9 volumeMounts: [VolumeMount], 10 livenessProbe: Probe, 11 readinessProbe: Probe,
        12 lifecycle: Lifecycle, 13 terminationMessagePath: text, 14 imagePullPolicy: text,
        15 securityContext: SecurityContext, 16 stdin: bool, 17 stdinOnce: bool, 18 tty: bool,
        19 envFrom: [EnvFromSource], 20 terminationMessagePolicy: text,
        21 volumeDevices: [VolumeDevice], 22 startupProbe: Probe,
        23 resizePolicy: [ContainerResizePolicy], 24 restartPolicy: (text),
        25 restartPolicyRules: [ContainerRestartRule],
    }
    PodSecurityContext {
        1 seLinuxOptions: SELinuxOptions, 2 runAsUser: (int), 3 runAsNonRoot: (bool),
        4 supplementalGroups: [int], 5 fsGroup: (int), 6 runAsGroup: (int), 7 sysctls: [Sysctl],
        8 windowsOptions: WindowsSecurityContextOptions, 9 fsGroupChangePolicy: (text),
        10 seccompProfile: SeccompProfile, 11 appArmorProfile: AppArmorProfile,
        12 supplementalGroupsPolicy: (text), 13 seLinuxChangePolicy: (text),
    }
    Sysctl { 1 name: text, 2 value: text, }
    Affinity {
        1 nodeAffinity: NodeAffinity, 2 podAffinity: PodAffinity,
        3 podAntiAffinity: PodAntiAffinity,
    }
    NodeAffinity {
        1 requiredDuringSchedulingIgnoredDuringExecution: NodeSelector,
        2 preferredDuringSchedulingIgnoredDuringExecution: [PreferredSchedulingTerm],
    }
    NodeSelector { 1 nodeSelectorTerms: [NodeSelectorTerm], }
    NodeSelectorTerm {
        1 matchExpressions: [NodeSelectorRequirement], 2 matchFields: [NodeSelectorRequirement],
    }
    NodeSelectorRequirement { 1 key: text, 2 operator: text, 3 values: [text], }
    PreferredSchedulingTerm { 1 weight: int, 2 preference: NodeSelectorTerm, }
    PodAffinity {
        1 requiredDuringSchedulingIgnoredDuringExecution: [PodAffinityTerm],
        2 preferredDuringSchedulingIgnoredDuringExecution: [WeightedPodAffinityTerm],
    }
    PodAffinityTerm {
        1 labelSelector: LabelSelector, 2 namespaces: [text], 3 topologyKey: text,
        4 namespaceSelector: LabelSelector, 5 matchLabelKeys: [text], 6 mismatchLabelKeys: [text],
    }
    WeightedPodAffinityTerm { 1 weight: int, 2 podAffinityTerm: PodAffinityTerm, }
    PodAntiAffinity {
        1 requiredDuringSchedulingIgnoredDuringExecution: [PodAffinityTerm],
        2 preferredDuringSchedulingIgnoredDuringExecution: [WeightedPodAffinityTerm],
    }
    Toleration {
        1 key: text, 2 operator: text, 3 value: text, 4 effect: text, 5 tolerationSeconds: (int),
    }
    HostAlias { 1 ip: text, 2 hostnames: [text], }
    PodDNSConfig { 1 nameservers: [text], 2 searches: [text], 3 options: [PodDNSConfigOption], }
    PodDNSConfigOption { 1 name: text, 2 value: (text), }
    PodReadinessGate { 1 conditionType: text, }
    TopologySpreadConstraint {
        1 maxSkew: int, 2 topologyKey: text, 3 whenUnsatisfiable: text,
        4 labelSelector: LabelSelector, 5 minDomains: (int), 6 nodeAffinityPolicy: (text),
        7 nodeTaintsPolicy: (text), 8 matchLabelKeys: [text],
    }
    PodOS { 1 name: text, }
    PodSchedulingGate { 1 name: text, }
    PodResourceClaim {
        1 name: text, 3 resourceClaimName: (text), 4 resourceClaimTemplateName: (text),
    }
    FileKeySelector { 1 volumeName: text, 2 path: text, 3 key: text, 4 optional: (bool), }
    ContainerRestartRule { 1 action: text, 2 exitCodes: ContainerRestartRuleOnExitCodes, }
    ContainerRestartRuleOnExitCodes { 1 operator: text, 2 values: [int], }
}
