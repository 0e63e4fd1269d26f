// Package slurm runs Slurm clusters as an app of the platform.
//
// # Layout of a cluster
//
// One member of component "controller" runs munged, slurmctld and, for accounting, slurmdbd with a
// MariaDB of its own; each member of component "worker" runs munged and slurmd. Members share their
// node's network and host name but have a mount and PID namespace each, so that every member has its
// own /etc/slurm, /run/munge and munged, and several members, also of several clusters, fit on one
// node.
//
// What must then differ is ports and node names. A cluster owns a block of 128 ports: the first is
// slurmctld's, the last slurmdbd's, the others belong to its workers by slot. Block and clash are
// settled when the cluster is created, and for the port of a worker that is added when it is added, by
// looking at what listens on its nodes. A worker's Slurm name is w and its slot, which is its member's
// index as long as that fits.
//
// # The record
//
// slurm.conf on the controller is the cluster's record: it says which member is which node, and every
// operation reads it there. It is replaced only if it is still what was read, and operations of one
// instance take turns. Workers are configless: they fetch it from slurmctld, so there is one copy to
// be right.
//
// # How workers come and go
//
// slurmctld 22.05 ends fatally when the number of nodes changes on a reconfigure. Nodes that are kept
// in reserve as State=FUTURE do not help: a reconfigure that gives one of them other processors than
// its line in reserve had is refused half-way, and workers are not sent the new file. Its dynamic nodes
// all listen on one port, which rules out two workers on a node. So slurmctld is stopped in good order,
// which saves its state, and started with the new file: two to three seconds in which jobs run on, and
// sbatch waits for its answer. Drains, reasons and the queue outlive it.
//
// # Accounts without a race
//
// Slurm refuses or holds jobs as InvalidAccount when slurmctld has not heard of an association. Here
// it always has: mariadbd answers before slurmdbd starts, slurmdbd answers before the associations are
// made, of users that exist, and all that before slurmctld starts, which is up only when slurmdbd knows
// where it is. An upgrade stops slurmctld before slurmdbd, so that nothing is owed to a slurmdbd that
// is down, and starts them in that order again.
//
// # What an operation takes for true
//
// A worker is drained when Slurm says "drained" and lists no job there, and never because nobody
// answered. Only a worker that is to leave, that slurmctld does not hear and lists no job on, and whose
// node says that its slurmd does not run, counts as empty too. Force waits for neither.
//
// # Secrets
//
// The munge key of a cluster and the password of its database are derived from a master key, which
// lies with the controller program, and the instance's id. They leave the program only sealed to the
// nodes.
//
// # Jobs
//
// Jobs that are submitted by the action queue.submit run as the user nobody: a member's root is
// not for its tenants' scripts. Their output lies on the worker that ran the batch step; the
// action queue.list brings its end back.
package slurm
