// Package tunnel is the way to a node that accepts no connections. The node's agent dials the platform, once; over
// that connection the platform opens streams to what runs on the node, each with its own flow control, so that a slow
// reader stops only itself.
//
//	person ── platform ── stream ──┐
//	person ── platform ── stream ──┼── one connection that the agent opened ── agent ── member
//	person ── platform ── stream ──┘
//
// The connection is an HTTP request that is upgraded to Protocol; after that it speaks yamux
// (github.com/hashicorp/yamux). A stream begins with one line of JSON each way: the request (Open), and whether it was
// granted. The bytes of what was requested follow.
package tunnel

import "time"

// Protocol is what an HTTP request is upgraded to.
const Protocol = "app-platform-tunnel"

// Paths of the platform.
const (
	// NodePath takes the connections of agents; the credential is the node's.
	NodePath = "/v1/node/tunnel"
	// PeerPath takes the connections of the platform's other processes.
	PeerPath = "/v1/peer/tunnel"
	// ConnectPath takes people's connections to endpoints: one request is one stream. The query names `instance` and
	// `endpoint`, and may name `member`.
	ConnectPath = "/v1/connect"
)

// KindPort requests a TCP connection to a port of a member; its Spec is a Port.
const KindPort = "port"

// KindNode requests a stream to the agent of a node from the platform's process that has the node's tunnel; its Spec is
// a Node. The request to the agent follows on the same stream.
const KindNode = "node"

// Node is the Spec of KindNode.
type Node struct {
	// NodeID is the node.
	NodeID string `json:"nodeId"`
}

// Port is the Spec of KindPort.
type Port struct {
	// Port is 1 to 65535.
	Port int `json:"port"`
}

// The bounds of a connection.
const (
	// MaxStreams is how many streams an agent serves at once.
	MaxStreams = 4_096
	// Window is how many unread bytes of a stream may be under way, so that a stream takes at most this much memory on
	// each side.
	Window = 256 << 10
	// maxLine bounds the line that begins a stream, in bytes.
	maxLine = 16 << 10
	// keepAlive is how often a connection is tried while nothing passes; one that does not answer is closed.
	keepAlive = 10 * time.Second
	// writePatience is how long a connection may take no bytes before it is closed.
	writePatience = 15 * time.Second
	// openPatience is how long a stream may take to begin.
	openPatience = 15 * time.Second
)
