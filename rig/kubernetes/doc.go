// Package kubernetes holds the test of the RKE2 controller on a real Kubernetes: the built programs, whole nodes in
// namespaces, and on them the stand-in of RKE2, which runs the real etcd, API server, kubelet and containerd. It has no
// code of its own, and runs by make test-kubernetes alone.
package kubernetes
