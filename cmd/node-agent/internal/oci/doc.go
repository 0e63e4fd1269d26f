// Package oci runs members as OCI containers: it writes the runtime's configuration and calls the runtime.
//
//	agent ──▶ namespaces of users and network ──┬──▶ thread with its own mount namespace: layers, devices, group ──▶ run
//	                                            └──▶ (network)
//
// A runtime of which less is known creates the namespaces, and is called with create and start.
//
// The agent calls the runtime, and mounts what it needs, in a mount namespace that ends with the calls. The container
// has a copy of the mounts; the node's own mount table never has any, so that a killed agent leaves none behind and a
// member's end is the end of its mounts. The same place has a view of the cgroups that any runtime understands,
// whatever the node has mounted.
package oci
