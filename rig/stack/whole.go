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

// wholeScript makes a node of the lab what a machine is to a kubelet, and then is the node's agent: mounts are shared, and
// every hierarchy of cgroups is there, with the group in $1 as its root, so that what nodes make in them does not meet.
// The settings of the one kernel that all nodes have are read-only; a kubelet finds those that it would change as it wants
// them. It finds a log of the kernel too, which is empty.
//
//go:embed whole.sh
var wholeScript string
