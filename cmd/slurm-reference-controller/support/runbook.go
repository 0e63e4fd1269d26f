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
			Ask: "    appctl triage OPERATION                 # begin with the correlation id, the operation or the instance\n" +
				"    appctl action run NAME node.list        # how Slurm sees its nodes\n" +
				"    appctl logs NAME/controller/0   # slurmctld, slurmdbd and the database\n" +
				"    appctl logs NAME/worker/0       # slurmd\n" +
				"    appctl logs NAME/login/0        # sshd",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []runbook.Edge{
				{
					Key:   "packages",
					When:  []runbook.Condition{runbook.Is("code", "PACKAGES_MISSING", "VERSION_MISMATCH")},
					Seen:  "`PACKAGES_MISSING`, `VERSION_MISMATCH`",
					Means: "a node lacks Slurm's packages, or has others than the controller",
					Do:    "install the same version on every node; then launch or recover again",
					Act:   runbook.Outside("install the packages", "recoverMember", "retryOperation"),
				},
				{
					Key:   "plain-node",
					When:  []runbook.Condition{runbook.Is("code", "NAMESPACES_MISSING")},
					Seen:  "`NAMESPACES_MISSING`",
					Means: "the node starts plain processes, and Slurm needs members with walls",
					Do:    "take an allocation on a node with walls",
					Act:   runbook.Calls("decommissionInstance", "launchInstance"),
				},
				{
					Key: "topology",
					When: []runbook.Condition{runbook.Is("code", "TOPOLOGY_INVALID", "TOO_MANY_WORKERS", "NO_FREE_SLOT",
						"GPUS_MISSING")},
					Seen:  "`TOPOLOGY_INVALID`, `TOO_MANY_WORKERS`",
					Means: "one controller and at least one worker are needed, and not more workers than its slots",
					Do:    "correct the counts",
					Act:   runbook.Calls("launchInstance", "addMembers"),
				},
				{
					Key:   "controller-fixed",
					When:  []runbook.Condition{runbook.Is("code", "CONTROLLER_IS_FIXED", "CLUSTER_NAME_FIXED")},
					Seen:  "`CONTROLLER_IS_FIXED`, `CLUSTER_NAME_FIXED`",
					Means: "the controller keeps the queue and the accounts: without a volume in the slot `state` it is only recovered",
					Do:    "`recoverMember`; for another name launch another cluster",
					Act:   runbook.Calls("recoverMember", "launchInstance"),
				},
				{
					Key:   "first-job",
					When:  []runbook.Condition{runbook.Is("code", "FIRST_JOB_FAILED")},
					Seen:  "`FIRST_JOB_FAILED`",
					Means: "Slurm took the workers, and a job does not run on all of them",
					Do:    "the workers' logs: munge, clocks, or the network between members",
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
					Means: "somebody edits `slurm.conf` on the controller by hand",
					Do:    "end that: the adapter writes it; then `recoverMember` of the controller",
					Act:   runbook.Outside("stop editing by hand", "recoverMember"),
				},
				{
					Key:   "no-controller",
					When:  []runbook.Condition{runbook.Is("code", "NO_CONTROLLER")},
					Seen:  "`NO_CONTROLLER`",
					Means: "the controller's member is gone",
					Do: "with a volume in the slot `state` replace it; else its queue and accounts are on its node: recover it, and " +
						"without the node launch anew",
					Act: runbook.Calls("replaceMember", "recoverMember", "launchInstance"),
				},
				{
					Key:   "state-gone",
					When:  []runbook.Condition{runbook.Is("code", "STATE_GONE")},
					Seen:  "`STATE_GONE`",
					Means: "the volume or folder of the controller's state does not have the cluster's record any more",
					Do:    "bind the volume that has it; where the cluster runs on, restore a backup by `state.restore`; else launch anew",
					Act:   runbook.Outside("restore the volume", "recoverMember", "invokeAction", "launchInstance"),
				},
				{
					Key: "backup",
					When: []runbook.Condition{runbook.Is("code", "BACKUP_MISSING", "BACKUP_DAMAGED", "BACKUP_NO_SPACE",
						"BACKUP_FAILED", "RESTORE_FAILED")},
					Seen:  "`BACKUP_MISSING`, `BACKUP_DAMAGED`, `BACKUP_NO_SPACE`, `BACKUP_FAILED`, `RESTORE_FAILED`",
					Means: "a backup is not made or not restored; the message says why, and what runs now",
					Do:    "list them by `state.backups` and restore another, or give the volume more space",
					Act:   runbook.Calls("invokeAction"),
				},
				{
					Key:   "controller-down",
					When:  []runbook.Condition{runbook.Is("code", "CONTROLLER_DOWN")},
					Seen:  "`CONTROLLER_DOWN`",
					Means: "slurmctld does not answer, and is not backed up so",
					Do:    "`recoverMember` of the controller; where its state is gone, `state.restore`",
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
					Means: "what the job has written is not there, or is not to be read by its user; the message says where and why",
					Do: "read the other stream, or have the job write to a file below its home; with a volume in the slot `home` output " +
						"outlasts the worker",
					Act: runbook.Calls("invokeAction"),
				},
				{
					Key:   "others-job",
					When:  []runbook.Condition{runbook.Is("code", "JOB_NOT_YOURS")},
					Seen:  "`JOB_NOT_YOURS`",
					Means: "the job is somebody else's; the message says whose",
					Do:    "its owner changes it, or an operator by the action that ends with `.any`",
					Act:   runbook.Calls("invokeAction"),
				},
				{
					Key:   "no-login",
					When:  []runbook.Condition{runbook.Is("code", "NO_LOGIN", "NO_ACCOUNT")},
					Seen:  "`NO_LOGIN`, `NO_ACCOUNT`",
					Means: "the cluster has no login, or whoever asks is neither a person nor a service account",
					Do:    "add a member of the component `login`; log in as a person or a service account",
					Act:   runbook.Calls("addMembers", "invokeAction"),
				},
				{
					Key:   "account-taken",
					When:  []runbook.Condition{runbook.Is("code", "ACCOUNT_TAKEN")},
					Seen:  "`ACCOUNT_TAKEN`",
					Means: "a member's system has an account with the person's name or id",
					Do:    "remove that account from the member, then try again",
					Act:   runbook.Outside("remove the account in the member", "invokeAction"),
				},
				{
					Key: "worker-lost",
					When: []runbook.Condition{runbook.Is("member.failure", "INIT_GONE", "OUT_OF_MEMORY", "RESTARTS_SPENT",
						"REPORTED")},
					Seen:  "a worker or the controller is FAILED",
					Means: "its processes ended on its node",
					Do:    "`recoverMember`; jobs that ran there are requeued by Slurm",
					Act:   runbook.Calls("recoverMember"),
				},
			},
		},
	},
}
