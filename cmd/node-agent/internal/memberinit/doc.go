// Package memberinit is the first process of a member on its node. The node agent starts it by
// re-executing its own binary, and it outlives the agent: it owns the member's processes, the agent
// only asks.
//
//	agent ──clone(PID, mount, IPC namespaces)──▶ boot ──exec──▶ init ──▶ shim ──▶ command of a run
//	agent ──unix socket──────────────────────────────────────▶ init ──▶ supervised process
//
// Boot (root only) builds the member's root: an overlay over the node's root with a fresh /proc, /dev,
// /run, /tmp; the agent's own state is hidden by a whiteout. It opens the socket and the state
// directory before it leaves the node's root, drops the capabilities by which root would reach the
// kernel itself, and executes init, which inherits both as descriptors.
//
// Without root there are no namespaces: init is a child subreaper in a plain directory. What it runs
// comes back to it however often it forks, as long as init lives.
//
// A run is one command, executed once per key and fence. Its shim is a subreaper of its own, so that a
// timeout finds and kills whatever the command left, in whatever session. When the command ends by
// itself, what it put into the background stays, as on any machine. Results are kept on disk until
// they are acknowledged: an agent that was killed attaches again by key.
//
// What runs as root in a member can disturb its own init; it cannot make the agent believe that the
// member is gone, because the agent looks at the node's process table and mounts for that.
package memberinit
