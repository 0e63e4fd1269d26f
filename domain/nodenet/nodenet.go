// Package nodenet states what a node's agent is given of the members' network: which addresses belong to members, who
// may reach whom, and by which node.
package nodenet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/gpuaas/app-platform/domain/ids"
)

// Range is a block of addresses that is routed to one member.
type Range struct {
	// Name is the manifest's.
	Name string `json:"name"`
	// CIDR is the block, such as "100.96.4.0/24".
	CIDR string `json:"cidr"`
}

// Port is one that a manifest declares as an endpoint: it may be reached by more than the instance's own members.
type Port struct {
	// Protocol is "tcp" or "udp".
	Protocol string `json:"protocol"`
	Number   int    `json:"number"`
}

// Member is one member as the network sees it.
type Member struct {
	ID ids.ID `json:"id"`
	// Address is its own, or its node's where members have the node's network.
	Address string  `json:"address"`
	Ranges  []Range `json:"ranges"`
	NodeID  ids.ID  `json:"nodeId"`
	// NodeAddress is where other nodes reach its node.
	NodeAddress string `json:"nodeAddress"`
	// Open are its declared endpoints.
	Open []Port `json:"open"`
}

// Instance is a group of members that reach each other.
type Instance struct {
	ID ids.ID `json:"id"`
	// Reaches are instances whose members these may reach too: control planes whose share was accepted.
	Reaches []ids.ID `json:"reaches"`
	Members []Member `json:"members"`
}

// View is what one node's agent needs: the instances with a member there, and those that reach them or are reached.
type View struct {
	// Version changes with everything else: 24 hexadecimal digits; empty in what is stored.
	Version string `json:"version,omitempty"`
	// Pools hold every member's address and range.
	Pools []string `json:"pools"`
	// Nodes are the addresses of the installation's nodes, whose services are shut to members.
	Nodes     []string   `json:"nodes"`
	Instances []Instance `json:"instances"`
}

// Versioned returns the view with the version that belongs to its content.
func (v View) Versioned() View {
	v.Version = ""
	text, _ := json.Marshal(v) // strings, numbers and lists of them always encode
	sum := sha256.Sum256(text)
	v.Version = hex.EncodeToString(sum[:12])
	return v
}
