// Package standin is a module of its own: a program rke2 that is not RKE2. It keeps RKE2's interface, which is its
// commands, files, ports, the supervisor's API and the static pods, and runs the real etcd, API server, controller
// manager, scheduler, kubelet and containerd underneath. It is for tests and for a demonstration on one machine, where
// no release of RKE2 can be had. The module is apart so that nothing else of this repository depends on Kubernetes.
//
// What it does not do: kube-proxy, DNS, network policies, ingress, admission by pod security, encryption at rest, and
// rotation of certificates. Pods reach each other by routes between the nodes, and no Service has an address that answers.
package standin
