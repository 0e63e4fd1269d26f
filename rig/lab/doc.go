// Package lab builds small clusters of local nodes on one machine.
//
//	                      root namespaces of the machine: no bridge, no route, no address of the lab
//	lab process ──────────────────────────────────────────────────────────────────────────────────
//	  │ control socket (one per node)          │ listeners and dials, opened inside the switch
//	  ▼                                        ▼
//	┌ node a ───────────┐   veth      ┌ switch ──────────┐      veth   ┌ node b ───────────┐
//	│ net pid uts mnt ipc├────────────┤ net: bridge .254 ├─────────────┤                   │
//	│ 1 init             │  10.77.0.1 └──────────────────┘  10.77.0.2  │ 1 init            │
//	│ └ node agent       │                                             │ └ node agent      │
//	└────────────────────┘                                             └───────────────────┘
//
// A Node has network, PID, UTS, IPC and mount namespaces of its own, an address and a host name. Its root is an overlay
// over the machine's root: every installed program is there, every write goes to a bounded tmpfs and vanishes with the
// node. Its process 1 is a tiny init, this very program started again (see MaybeRunInit), which spawns what the lab
// requests and reaps orphans. Long-lived programs on a node are supervised by package supervise from the outside, so
// killing one does not kill the node.
//
// Everything hangs on the lab process. The init of each node dies with it (parent-death signal, and the end of the
// control socket); with a PID namespace's init the kernel ends every process in it, and with the last process the
// namespaces, veths and mounts. Nothing is pinned by a name or a bind mount, so that even kill -9 leaves one empty
// folder, which Sweep removes.
//
// Without root, a plain Node is a process tree on the machine itself: its init is a child subreaper that ends all
// descendants when it is stopped or when the lab dies.
package lab
