// Package tunnel is the way to a node that nobody can dial. The node's agent connects out to the platform, once; over
// that connection the platform opens streams to what runs on the node, each with its own flow control, so that a slow
// reader stops only itself.
//
//	person ── platform ── stream ──┐
//	person ── platform ── stream ──┼── one connection that the agent opened ── agent ── member
//	person ── platform ── stream ──┘
//
// The connection is an HTTP request that is upgraded to Protocol; after that it speaks yamux
// (github.com/hashicorp/yamux). A stream begins with one line of JSON each way: what is asked for (Open), and whether
// it was granted. What follows are the bytes of what was asked for.
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

// KindPort asks for a TCP connection to a port of a member; its Spec is a Port.
const KindPort = "port"

// KindNode asks another process of the platform for a stream to the agent of a node, whose tunnel it holds; its Spec is
// a Node. What the stream is to be is asked of the agent, on the same stream.
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
	// Window is how many bytes of a stream may be under way unread, so that a stream takes at most this much memory on
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
