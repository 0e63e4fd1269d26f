// Package wsapi serves GraphQL over WebSocket, sub-protocol graphql-transport-ws, for
// many sockets that mostly listen.
//
//	upgraded ──connection_init──▶ acking ──authenticated──▶ ready ──any reason──▶ closing ──▶ closed
//	    └──── init timeout 4408 ────┴── refused 4401/4403 ────────────────────────┘
//
// One goroutine a socket reads frames; nothing else runs for an idle socket. Messages out
// go through a queue that is bounded in messages and bytes; a socket with a non-empty
// queue is on the ready list of one of a few flushers, which join what is queued into one
// write that never blocks. Only when the kernel's buffer is full does a goroutine take the
// rest of that write over, with a deadline. A subscriber whose queue runs over is cut with
// CloseSlowReader and resumes from its cursor: no subscriber waits for another.
//
// The payload of a message is shared by all its subscribers; each frame is put together
// from the operation's own prefix and those bytes when it is written.
//
// The handshake is gorilla/websocket's. Frames are ours, so that every frame to the client
// passes the same queue: control frames cannot fall into the middle of a partial write.
package wsapi
