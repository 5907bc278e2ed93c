//! Services, ingresses and network policies.
//!
//! Decides numbers, names and types of their fields; must never say more than Kubernetes' own types.

use super::meta::{LabelSelector, ObjectMeta, TypedLocalObjectReference};
use super::{Field, Message};

messages! {
    Service { 1 metadata: ObjectMeta, 2 spec: ServiceSpec, 3 status: skipped, }
    ServiceSpec {
        1 ports: [ServicePort], 2 selector: {text}, 3 clusterIP: text, 4 type: text,
        5 externalIPs: [text], 7 sessionAffinity: text, 8 loadBalancerIP: text,
        9 loadBalancerSourceRanges: [text], 10 externalName: text, 11 externalTrafficPolicy: text,
        12 healthCheckNodePort: int, 13 publishNotReadyAddresses: bool,
        14 sessionAffinityConfig: SessionAffinityConfig, 17 ipFamilyPolicy: (text),
        18 clusterIPs: [text], 19 ipFamilies: [text], 20 allocateLoadBalancerNodePorts: (bool),
        21 loadBalancerClass: (text), 22 internalTrafficPolicy: (text),
        23 trafficDistribution: (text),
    }
    ServicePort {
        1 name: text, 2 protocol: text, 3 port: int, 4 targetPort: int_or_text, 5 nodePort: int,
        6 appProtocol: (text),
    }
    SessionAffinityConfig { 1 clientIP: ClientIPConfig, }
    ClientIPConfig { 1 timeoutSeconds: (int), }
    Ingress { 1 metadata: ObjectMeta, 2 spec: IngressSpec, 3 status: skipped, }
    IngressSpec {
        1 defaultBackend: IngressBackend, 2 tls: [IngressTLS], 3 rules: [IngressRule],
        4 ingressClassName: (text),
    }
    IngressBackend { 3 resource: TypedLocalObjectReference, 4 service: IngressServiceBackend, }
    IngressServiceBackend { 1 name: text, 2 port: ServiceBackendPort, }
    ServiceBackendPort { 1 name: text, 2 number: int, }
    IngressTLS { 1 hosts: [text], 2 secretName: text, }
    IngressRule { 1 host: text, 2 inline: IngressRuleValue, }
    IngressRuleValue { 1 http: HTTPIngressRuleValue, }
    HTTPIngressRuleValue { 1 paths: [HTTPIngressPath], }
    HTTPIngressPath { 1 path: text, 2 backend: IngressBackend, 3 pathType: (text), }
    NetworkPolicy { 1 metadata: ObjectMeta, 2 spec: NetworkPolicySpec, }
    NetworkPolicySpec {
        1 podSelector: LabelSelector, 2 ingress: [NetworkPolicyIngressRule],
        3 egress: [NetworkPolicyEgressRule], 4 policyTypes: [text],
    }
    NetworkPolicyIngressRule { 1 ports: [NetworkPolicyPort], 2 from: [NetworkPolicyPeer], }
    NetworkPolicyPort { 1 protocol: (text), 2 port: int_or_text, 3 endPort: (int), }
    NetworkPolicyPeer {
        1 podSelector: LabelSelector, 2 namespaceSelector: LabelSelector, 3 ipBlock: IPBlock,
    }
    IPBlock { 1 cidr: text, 2 except: [text], }
    NetworkPolicyEgressRule { 1 ports: [NetworkPolicyPort], 2 to: [NetworkPolicyPeer], }
}
