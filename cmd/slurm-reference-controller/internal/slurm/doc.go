// Package slurm runs Slurm clusters as an app of the platform.
//
// # Layout of a cluster
//
// One member of component "controller" runs munged and slurmctld; each member of component
// "worker" runs munged and slurmd. Members share their node's network and host name but have a
// mount and PID namespace each, so that every member has its own /etc/slurm, /run/munge and
// munged, and several members, also of several clusters, fit on one node.
//
// What must then differ is ports and node names. A cluster owns a block of 128 ports: the first
// is slurmctld's, the others belong to its workers by index. Block and clash are settled when the
// cluster is created, by looking at what listens on its nodes. A worker's Slurm name is w and its
// index.
//
// # Why every possible worker is in slurm.conf from the start
//
// slurmctld 22.05 ends fatally when the number of nodes changes on reconfigure, and its dynamic
// nodes all listen on one port, which rules out two workers on a node. Its CLOUD nodes turn up as
// idle after a restart although nobody is there. So slurm.conf names w0 to w126 at once, each with
// its port: those that exist with their address, the others as State=FUTURE, which Slurm keeps out
// of sight. A worker is added without restarting anything: give its line an address, "scontrol
// reconfigure", start its slurmd. Workers are configless: they fetch slurm.conf from slurmctld, so
// there is one copy to be right, and after a crash slurmctld knows all addresses from it.
//
// # Secrets
//
// The munge key of a cluster is derived from a master key, which lies with the controller
// program, and the instance's id. It leaves the program only sealed to the nodes.
//
// # Jobs
//
// Jobs that are submitted by the action queue.submit run as the user nobody: a member's root is
// not for its tenants' scripts. Their output lies on the worker that ran the batch step; the
// action queue.list brings its end back.
package slurm
