//! Volumes of pods, and the claims to them.
//!
//! Decides numbers, names and types of their fields; must never say more than Kubernetes' own types.

use super::meta::{
    LabelSelector, LocalObjectReference, ObjectMeta, TypedLocalObjectReference,
    TypedObjectReference,
};
use super::pod::{ObjectFieldSelector, ResourceFieldSelector};
use super::{Field, Message};

messages! {
    PersistentVolumeClaim {
        1 metadata: ObjectMeta, 2 spec: PersistentVolumeClaimSpec, 3 status: skipped,
    }
    PersistentVolumeClaimSpec {
        1 accessModes: [text], 2 resources: VolumeResourceRequirements, 3 volumeName: text,
        4 selector: LabelSelector, 5 storageClassName: (text), 6 volumeMode: (text),
        7 dataSource: TypedLocalObjectReference, 8 dataSourceRef: TypedObjectReference,
        9 volumeAttributesClassName: (text),
    }
    VolumeResourceRequirements { 1 limits: {quantity}, 2 requests: {quantity}, }
    Volume { 1 name: text, 2 inline: VolumeSource, }
    VolumeSource {
        1 hostPath: HostPathVolumeSource, 2 emptyDir: EmptyDirVolumeSource,
        3 gcePersistentDisk: GCEPersistentDiskVolumeSource,
        4 awsElasticBlockStore: AWSElasticBlockStoreVolumeSource, 5 gitRepo: GitRepoVolumeSource,
        6 secret: SecretVolumeSource, 7 nfs: NFSVolumeSource, 8 iscsi: ISCSIVolumeSource,
        9 glusterfs: GlusterfsVolumeSource,
        10 persistentVolumeClaim: PersistentVolumeClaimVolumeSource, 11 rbd: RBDVolumeSource,
        12 flexVolume: FlexVolumeSource, 13 cinder: CinderVolumeSource,
        14 cephfs: CephFSVolumeSource, 15 flocker: FlockerVolumeSource,
        16 downwardAPI: DownwardAPIVolumeSource, 17 fc: FCVolumeSource,
        18 azureFile: AzureFileVolumeSource, 19 configMap: ConfigMapVolumeSource,
        20 vsphereVolume: VsphereVirtualDiskVolumeSource, 21 quobyte: QuobyteVolumeSource,
        22 azureDisk: AzureDiskVolumeSource,
        23 photonPersistentDisk: PhotonPersistentDiskVolumeSource,
        24 portworxVolume: PortworxVolumeSource, 25 scaleIO: ScaleIOVolumeSource,
        26 projected: ProjectedVolumeSource, 27 storageos: StorageOSVolumeSource,
        28 csi: CSIVolumeSource, 29 ephemeral: EphemeralVolumeSource, 30 image: ImageVolumeSource,
    }
    HostPathVolumeSource { 1 path: text, 2 type: (text), }
    EmptyDirVolumeSource { 1 medium: text, 2 sizeLimit: quantity, }
    GCEPersistentDiskVolumeSource {
        1 pdName: text, 2 fsType: text, 3 partition: int, 4 readOnly: bool,
    }
    AWSElasticBlockStoreVolumeSource {
        1 volumeID: text, 2 fsType: text, 3 partition: int, 4 readOnly: bool,
    }
    GitRepoVolumeSource { 1 repository: text, 2 revision: text, 3 directory: text, }
    SecretVolumeSource {
        1 secretName: text, 2 items: [KeyToPath], 3 defaultMode: (int), 4 optional: (bool),
    }
    KeyToPath { 1 key: text, 2 path: text, 3 mode: (int), }
    NFSVolumeSource { 1 server: text, 2 path: text, 3 readOnly: bool, }
    ISCSIVolumeSource {
        1 targetPortal: text, 2 iqn: text, 3 lun: int, 4 iscsiInterface: text, 5 fsType: text,
        6 readOnly: bool, 7 portals: [text], 8 chapAuthDiscovery: bool,
        10 secretRef: LocalObjectReference, 11 chapAuthSession: bool, 12 initiatorName: (text),
    }
    GlusterfsVolumeSource { 1 endpoints: text, 2 path: text, 3 readOnly: bool, }
    PersistentVolumeClaimVolumeSource { 1 claimName: text, 2 readOnly: bool, }
    RBDVolumeSource {
        1 monitors: [text], 2 image: text, 3 fsType: text, 4 pool: text, 5 user: text,
        6 keyring: text, 7 secretRef: LocalObjectReference, 8 readOnly: bool,
    }
    FlexVolumeSource {
        1 driver: text, 2 fsType: text, 3 secretRef: LocalObjectReference, 4 readOnly: bool,
        5 options: {text},
    }
    CinderVolumeSource {
        1 volumeID: text, 2 fsType: text, 3 readOnly: bool, 4 secretRef: LocalObjectReference,
    }
    CephFSVolumeSource {
        1 monitors: [text], 2 path: text, 3 user: text, 4 secretFile: text,
        5 secretRef: LocalObjectReference, 6 readOnly: bool,
    }
    FlockerVolumeSource { 1 datasetName: text, 2 datasetUUID: text, }
    DownwardAPIVolumeSource { 1 items: [DownwardAPIVolumeFile], 2 defaultMode: (int), }
    DownwardAPIVolumeFile {
        1 path: text, 2 fieldRef: ObjectFieldSelector, 3 resourceFieldRef: ResourceFieldSelector,
        4 mode: (int),
    }
    FCVolumeSource {
        1 targetWWNs: [text], 2 lun: (int), 3 fsType: text, 4 readOnly: bool, 5 wwids: [text],
    }
    AzureFileVolumeSource { 1 secretName: text, 2 shareName: text, 3 readOnly: bool, }
    ConfigMapVolumeSource {
        1 inline: LocalObjectReference, 2 items: [KeyToPath], 3 defaultMode: (int),
        4 optional: (bool),
    }
    VsphereVirtualDiskVolumeSource {
        1 volumePath: text, 2 fsType: text, 3 storagePolicyName: text, 4 storagePolicyID: text,
    }
    QuobyteVolumeSource {
        1 registry: text, 2 volume: text, 3 readOnly: bool, 4 user: text, 5 group: text,
        6 tenant: text,
    }
    AzureDiskVolumeSource {
        1 diskName: text, 2 diskURI: text, 3 cachingMode: (text), 4 fsType: (text),
        5 readOnly: (bool), 6 kind: (text),
    }
    PhotonPersistentDiskVolumeSource { 1 pdID: text, 2 fsType: text, }
    ProjectedVolumeSource { 1 sources: [VolumeProjection], 2 defaultMode: (int), }
    VolumeProjection {
        1 secret: SecretProjection, 2 downwardAPI: DownwardAPIProjection,
        3 configMap: ConfigMapProjection, 4 serviceAccountToken: ServiceAccountTokenProjection,
        5 clusterTrustBundle: ClusterTrustBundleProjection,
        6 podCertificate: PodCertificateProjection,
    }
    SecretProjection { 1 inline: LocalObjectReference, 2 items: [KeyToPath], 4 optional: (bool), }
    DownwardAPIProjection { 1 items: [DownwardAPIVolumeFile], }
    ConfigMapProjection {
        1 inline: LocalObjectReference, 2 items: [KeyToPath], 4 optional: (bool),
    }
    ServiceAccountTokenProjection { 1 audience: text, 2 expirationSeconds: (int), 3 path: text, }
    ClusterTrustBundleProjection {
        1 name: (text), 2 signerName: (text), 3 labelSelector: LabelSelector, 4 path: text,
        5 optional: (bool),
    }
    PortworxVolumeSource { 1 volumeID: text, 2 fsType: text, 3 readOnly: bool, }
    ScaleIOVolumeSource {
        1 gateway: text, 2 system: text, 3 secretRef: LocalObjectReference, 4 sslEnabled: bool,
        5 protectionDomain: text, 6 storagePool: text, 7 storageMode: text, 8 volumeName: text,
        9 fsType: text, 10 readOnly: bool,
    }
    StorageOSVolumeSource {
        1 volumeName: text, 2 volumeNamespace: text, 3 fsType: text, 4 readOnly: bool,
        5 secretRef: LocalObjectReference,
    }
    CSIVolumeSource {
        1 driver: text, 2 readOnly: (bool), 3 fsType: (text), 4 volumeAttributes: {text},
        5 nodePublishSecretRef: LocalObjectReference,
    }
    EphemeralVolumeSource { 1 volumeClaimTemplate: PersistentVolumeClaimTemplate, }
    PersistentVolumeClaimTemplate { 1 metadata: ObjectMeta, 2 spec: PersistentVolumeClaimSpec, }
    ImageVolumeSource { 1 reference: text, 2 pullPolicy: text, }
    PodCertificateProjection {
        1 signerName: text, 2 keyType: text, 3 maxExpirationSeconds: (int),
        4 credentialBundlePath: text, 5 keyPath: text, 6 certificateChainPath: text,
        7 userAnnotations: {text},
    }
}
