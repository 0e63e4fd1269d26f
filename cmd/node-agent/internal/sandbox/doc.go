// Package sandbox is the agent's side of members: it creates their sandboxes, talks to their init,
// finds what is left of them on the node, and removes them.
//
//	STATE/members/MEMBER/
//	    sandbox.json   its ids, its init's process number and start time, its isolation
//	    fs/            upper and work directory of the overlay; a tmpfs where the disk cannot carry one
//	    root/          mount point of the overlay; without namespaces the member's directory itself
//	    run/           the socket (0700)
//	    masks          what is hidden of what its processes print; sealed, see package masks
//	    state/         results not yet acknowledged, logs of supervised processes
//
// Residue is computed from the node's process table, mount table and this directory at the moment of
// the request, never from memory.
package sandbox
