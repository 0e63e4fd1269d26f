// Package memberinit is the first process of a member on its node, and a member's container is built round it. It
// outlives the agent: it owns the member's processes, and the agent only sends requests.
//
//	agent ──OCI runtime──▶ container ──process 1──▶ init ──▶ shim ──▶ command of a run
//	agent ──unix socket───────────────────────────▶ init ──▶ supervised process
//
// Init is the agent's own binary, bound into the container. It inherits the socket as a descriptor, so that no path of
// the member leads to it, and has a folder of the node for results and logs.
//
// Without root, members have no containers: boot opens the socket and the state directory of a plain directory and
// executes init, a child subreaper. What it runs comes back to it however often it forks, as long as init lives.
//
// A run is one command, executed once per key and fence. Its shim is a subreaper of its own, so that a
// timeout finds and kills whatever the command left, in whatever session. When the command ends by
// itself, what it put into the background stays, as on any machine. Results are kept on disk until
// they are acknowledged: an agent that was killed attaches again by key.
//
// What runs as root in a member can disturb its own init; it cannot make the agent believe that the member has ended,
// because for that the agent reads the node's process table and mounts.
package memberinit
