package stack

import _ "embed"

// wholePrefix begins the names of whole nodes.
const wholePrefix = "whole-"

func skuOf(whole bool) string {
	if whole {
		return WholeSKU
	}
	return nodeSKU
}

// wholeScript makes a node of the lab what a machine is to a kubelet, and then is the node's agent. Mounts are shared.
// Every hierarchy of cgroups is there, with the group in $1 as its root, so that the nodes' groups do not collide. The
// settings of the kernel, which all nodes share, are read-only; those that a kubelet would change have the values that
// it wants already. The kernel's log is there too, and is empty.
//
//go:embed whole.sh
var wholeScript string
