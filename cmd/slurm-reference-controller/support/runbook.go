// Package support has what to do when something is wrong with the app, as a value that its page is printed from.
package support

import "github.com/gpuaas/app-platform/sdk/runbook"

// Runbook is the runbook in runbook.md, beside the program.
var Runbook = runbook.Runbook{
	Name:     "slurm",
	Title:    "Slurm",
	Incident: "Slurm Incident",
	Symptom:  "the cluster does not start, a worker does not join or leave, jobs do not run",
	Checks: []runbook.Check{
		{
			Key: "start",
			Ask: "    appctl triage OPERATION                 # begin with the correlation id, the operation or the " +
				"instance\n    appctl action run NAME node.list        # how Slurm sees its nodes\n" +
				"    appctl logs NAME/controller/0   # slurmctld, slurmdbd and the database\n" +
				"    appctl logs NAME/worker/0       # slurmd\n" +
				"    appctl logs NAME/login/0        # sshd",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []runbook.Edge{
				{
					Key:   "packages",
					When:  []runbook.Condition{runbook.Is("code", "PACKAGES_MISSING", "VERSION_MISMATCH")},
					Seen:  "`PACKAGES_MISSING`, `VERSION_MISMATCH`",
					Means: "a node lacks Slurm's packages, or has another version than the controller",
					Do:    "install the same version on every node; then launch or recover again",
					Act:   runbook.Outside("install the packages", "recoverMember", "retryOperation"),
				},
				{
					Key:   "plain-node",
					When:  []runbook.Condition{runbook.Is("code", "NAMESPACES_MISSING")},
					Seen:  "`NAMESPACES_MISSING`",
					Means: "the node starts plain processes, and Slurm needs isolated members",
					Do:    "take an allocation on a node that isolates members",
					Act:   runbook.Calls("decommissionInstance", "launchInstance"),
				},
				{
					Key: "topology",
					When: []runbook.Condition{runbook.Is("code", "TOPOLOGY_INVALID", "TOO_MANY_WORKERS", "NO_FREE_SLOT",
						"GPUS_MISSING")},
					Seen:  "`TOPOLOGY_INVALID`, `TOO_MANY_WORKERS`",
					Means: "one controller and at least one worker are needed, and not more workers than slots",
					Do:    "correct the counts",
					Act:   runbook.Calls("launchInstance", "addMembers"),
				},
				{
					Key:  "controller-fixed",
					When: []runbook.Condition{runbook.Is("code", "CONTROLLER_IS_FIXED", "CLUSTER_NAME_FIXED")},
					Seen: "`CONTROLLER_IS_FIXED`, `CLUSTER_NAME_FIXED`",
					Means: "the controller keeps the queue and the accounts: without a volume in the slot `state` it " +
						"is only recovered",
					Do:  "`recoverMember`; for another name launch another cluster",
					Act: runbook.Calls("recoverMember", "launchInstance"),
				},
				{
					Key:   "first-job",
					When:  []runbook.Condition{runbook.Is("code", "FIRST_JOB_FAILED")},
					Seen:  "`FIRST_JOB_FAILED`",
					Means: "Slurm accepted the workers, but a job does not run on all of them",
					Do:    "look in the workers' logs for errors of munge, clocks, or the network between members",
					Act:   runbook.Outside("repair the worker", "retryOperation", "replaceMember"),
				},
				{
					Key:   "not-in-cluster",
					When:  []runbook.Condition{runbook.Is("code", "NOT_IN_CLUSTER")},
					Seen:  "`NOT_IN_CLUSTER`, or a worker is FAILED as `REPORTED`",
					Means: "Slurm does not know the worker any more",
					Do:    "recover it, or remove it",
					Act:   runbook.Calls("recoverMember", "removeMember"),
				},
				{
					Key:   "jobs-run",
					When:  []runbook.Condition{runbook.Is("code", "WORK_RUNNING", "JOBS_LOST", "PARTITION_IN_USE")},
					Seen:  "`WORK_RUNNING`, `PARTITION_IN_USE`",
					Means: "jobs run on what would leave; they are listed",
					Do:    "wait, cancel them with `queue.cancel`, or force, which loses them",
					Act:   runbook.Action{Wait: "the jobs end", Calls: []string{"invokeAction"}},
				},
				{
					Key:   "record",
					When:  []runbook.Condition{runbook.Is("code", "RECORD_CONTESTED", "RECORD_UNREADABLE")},
					Seen:  "`RECORD_CONTESTED`, `RECORD_UNREADABLE`",
					Means: "a person or a program edits `slurm.conf` on the controller",
					Do:    "stop that, as the adapter writes the file; then `recoverMember` of the controller",
					Act:   runbook.Outside("stop editing slurm.conf", "recoverMember"),
				},
				{
					Key:   "no-controller",
					When:  []runbook.Condition{runbook.Is("code", "NO_CONTROLLER")},
					Seen:  "`NO_CONTROLLER`",
					Means: "the controller's member was deleted",
					Do: "with a volume in the slot `state` replace it; else its queue and accounts are on its node: " +
						"recover it, or launch another cluster if the node is lost",
					Act: runbook.Calls("replaceMember", "recoverMember", "launchInstance"),
				},
				{
					Key:   "state-gone",
					When:  []runbook.Condition{runbook.Is("code", "STATE_GONE")},
					Seen:  "`STATE_GONE`",
					Means: "the volume or folder of the controller's state no longer has the cluster's record",
					Do: "bind the volume that has it; where the cluster still runs, restore a backup by " +
						"`state.restore`; else launch again",
					Act: runbook.Outside("restore the volume", "recoverMember", "invokeAction", "launchInstance"),
				},
				{
					Key: "backup",
					When: []runbook.Condition{runbook.Is("code", "BACKUP_MISSING", "BACKUP_DAMAGED", "BACKUP_NO_SPACE",
						"BACKUP_FAILED", "RESTORE_FAILED")},
					Seen:  "`BACKUP_MISSING`, `BACKUP_DAMAGED`, `BACKUP_NO_SPACE`, `BACKUP_FAILED`, `RESTORE_FAILED`",
					Means: "a backup was not saved or not restored; the message gives the reason, and what runs now",
					Do:    "list them by `state.backups` and restore another, or give the volume more space",
					Act:   runbook.Calls("invokeAction"),
				},
				{
					Key:   "controller-down",
					When:  []runbook.Condition{runbook.Is("code", "CONTROLLER_DOWN")},
					Seen:  "`CONTROLLER_DOWN`",
					Means: "slurmctld does not answer: no backup can be saved, or it did not start after one",
					Do:    "`recoverMember` of the controller; where its state is lost, `state.restore`",
					Act:   runbook.Calls("recoverMember", "invokeAction"),
				},
				{
					Key: "submit",
					When: []runbook.Condition{runbook.Is("code", "SUBMIT_REFUSED", "SCRIPT_INVALID", "JOB_STATE",
						"JOB_NOT_FOUND")},
					Seen:  "`SUBMIT_REFUSED`, `SCRIPT_INVALID`, `JOB_STATE`, `JOB_NOT_FOUND`",
					Means: "Slurm refuses the job or its change, or does not have it any more; the message says why",
					Do:    "correct the script or the request",
					Act:   runbook.Calls("invokeAction"),
				},
				{
					Key:   "output",
					When:  []runbook.Condition{runbook.Is("code", "OUTPUT_GONE", "OUTPUT_UNREADABLE", "NO_OUTPUT")},
					Seen:  "`OUTPUT_GONE`, `OUTPUT_UNREADABLE`, `NO_OUTPUT`",
					Means: "the output does not exist, or the job's user may not read it; the message says why",
					Do: "read the other stream, or have the job write to a file below its home; with a volume in the " +
						"slot `home` output outlasts the worker",
					Act: runbook.Calls("invokeAction"),
				},
				{
					Key:   "others-job",
					When:  []runbook.Condition{runbook.Is("code", "JOB_NOT_YOURS")},
					Seen:  "`JOB_NOT_YOURS`",
					Means: "the job belongs to another person; the message names the owner",
					Do:    "its owner changes it, or an operator by the action that ends with `.any`",
					Act:   runbook.Calls("invokeAction"),
				},
				{
					Key:   "no-login",
					When:  []runbook.Condition{runbook.Is("code", "NO_LOGIN", "NO_ACCOUNT")},
					Seen:  "`NO_LOGIN`, `NO_ACCOUNT`",
					Means: "the cluster has no login, or the caller is neither a person nor a service account",
					Do:    "add a member of the component `login`; log in as a person or a service account",
					Act:   runbook.Calls("addMembers", "invokeAction"),
				},
				{
					Key:   "account-taken",
					When:  []runbook.Condition{runbook.Is("code", "ACCOUNT_TAKEN")},
					Seen:  "`ACCOUNT_TAKEN`",
					Means: "a member's system has an account with the person's name or id",
					Do:    "delete that account in the member, then try again",
					Act:   runbook.Outside("delete the account in the member", "invokeAction"),
				},
				{
					Key: "worker-lost",
					When: []runbook.Condition{runbook.Is("member.failure", "INIT_GONE", "OUT_OF_MEMORY",
						"RESTARTS_SPENT", "REPORTED")},
					Seen:  "a worker or the controller is FAILED",
					Means: "its processes ended on its node",
					Do:    "`recoverMember`; jobs that ran there are requeued by Slurm",
					Act:   runbook.Calls("recoverMember"),
				},
			},
		},
	},
}
