// Package slurm runs Slurm clusters as an app of the platform.
//
// [App] puts the app together and refuses impossible dispatches. Package operation carries operations out, package
// calls answers what is read at once, package daemons starts what runs on members, package people makes the people who
// use a cluster known in it, package backup copies its state and brings it back, package report reads what Slurm's
// commands print, package accounts meters what jobs have used, package mend replaces workers that Slurm has given up,
// and package layout holds a cluster and its slurm.conf.
//
// # Layout of a cluster
//
// One member of component "controller" runs munged, slurmctld and, for accounting, slurmdbd with a
// MariaDB of its own. Each member of component "worker" runs munged and slurmd, each of component "login" munged and an
// sshd: see package login. Members have a mount and PID namespace each, and where the members' network is off they
// share their node's network and host name. So every member has its own
// /etc/slurm, /run/munge and munged, and several members, also of several clusters, fit on one node.
//
// What must then differ is ports and node names. A cluster owns a block of 128 ports: the first is
// slurmctld's, the last slurmdbd's, the others belong to its workers by slot. The block is chosen when
// the cluster is created, and the port of a worker when the worker is added, by what listens on the
// nodes then. A worker's Slurm name is w and its slot, which is its member's index as long as that fits.
//
// # The record
//
// slurm.conf on the controller is the cluster's record: it states which member is which node, and every
// operation reads it there. It is replaced only if it is still what was read, and operations of one
// instance take turns. Workers are configless: they fetch it from slurmctld, so there is one copy to
// keep right.
//
// # What outlasts a member
//
// What a cluster must not lose lies in one folder of the controller, with a copy of the record. Where that is a volume,
// the controller may be replaced: the new one starts over what is there, see moveController in package operation.
// Members know such a controller by name and not by address, so that slurm.conf and every program that runs by it find
// the new one. Package backup copies that folder while nothing writes to it, and puts a copy back; slurm.conf then says
// from which number on jobs are counted, so that none gets one that another had.
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
// Slurm refuses or holds jobs as InvalidAccount when slurmctld does not know an association yet. Here
// it always does: mariadbd answers before slurmdbd starts, slurmdbd answers before the associations are
// created, of users that exist, and all that before slurmctld starts, which counts as up only when
// slurmdbd knows where it is. An upgrade stops slurmctld before slurmdbd, so that nothing is owed to a
// slurmdbd that is down, and starts them in the opposite order.
//
// # When a worker counts as drained
//
// A worker is drained when Slurm reports "drained" and lists no job there, and never because nothing
// answered. There is one exception: a worker that is to leave counts as empty too when slurmctld does
// not reach it and lists no job on it, and its node reports that its slurmd does not run. Force waits
// for neither.
//
// # What it does by itself
//
// Where the project has chosen an account for the instance, a worker that slurmctld has given up as it does not
// respond is replaced: see package mend.
//
// # GPUs
//
// A worker offers Slurm, as the generic resource "gpu", its part of the GPUs that its allocation has on its node: the
// device nodes that it sees. Workers of one allocation on a node share them out evenly when they come, and keep what
// they have; a worker that replaces another on its node takes over its part, and an upgrade gives those that are free.
// slurm.conf remains the one record: gres.conf is written from its lines "# gres.conf:".
//
// CUDA_VISIBLE_DEVICES (or ROCR_VISIBLE_DEVICES) names a job's GPUs. A task prolog turns it from Slurm's numbers into
// identities where the driver publishes them, and else into places among all devices that the member sees. Slurm fails
// a job on a worker that lacks the prolog, so slurm.conf names it only once every worker has it; those of before
// version 1.4 get it by an upgrade. The variable is a convention between jobs that mean well, and isolates nothing: a
// job can open any device that its worker sees. What isolates is the member's list of devices, which the node's agent
// enforces: nothing of another allocation is in reach. Members have no control groups of their own, so Slurm cannot
// constrain the devices of a step.
//
// # Secrets
//
// The munge key of a cluster and the password of its database are derived from a master key, which
// lies with the controller program, and the instance's id. They leave the program only sealed to the
// nodes.
//
// # Jobs
//
// Jobs run as the account of their submitter, in that person's home, and are charged to the project that the request
// comes from: see package people. Their output lies where Slurm says, in the home unless the job chose another place,
// on the worker that ran the batch step, standard error apart where the job was submitted so; the action queue.list
// returns its end, and job.output any part of it. Both read as the job's user: a job may have put a link there. A job
// is its owner's: Slurm itself refuses others', since the adapter calls it as the requester. Actions that end with
// ".any" call it as Slurm's administrator, and have the permission key of operators: an adapter receives who the
// requester is, and not what they may.
//
// The jobs of a requester without an account, as from an older platform, run as the user nobody: a member's root is not
// for its tenants' scripts. Who submitted a job is noted in its comment, which proves nothing: within the cluster it
// can be changed.
//
// An instance of an earlier version is answered as its manifest says, by the commands that its manifest
// names: see detail in package calls.
package slurm
