// Package support has what to do when something is wrong with the app, as a value that its page is printed from.
package support

import "github.com/gpuaas/app-platform/sdk/runbook"

// Runbook is the runbook in runbook.md, beside the program.
var Runbook = runbook.Runbook{
	Name:     "rke2",
	Title:    "RKE2 Kubernetes",
	Incident: "RKE2 Incident",
	Symptom:  "the cluster does not come up, a server does not join or leave, pods are not evicted",
	Checks: []runbook.Check{
		{
			Key: "start",
			Ask: "    appctl triage OPERATION                 # begin with the correlation id, the operation or the " +
				"instance\n    appctl logs NAME/server/0       # rke2-server, etcd and the API server\n" +
				"    appctl logs NAME/agent/0        # rke2-agent",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []runbook.Edge{
				{
					Key:   "even-servers",
					When:  []runbook.Condition{runbook.Is("code", "EVEN_SERVERS")},
					Seen:  "`EVEN_SERVERS`",
					Means: "an even number of servers tolerates no more losses than one server fewer",
					Do:    "choose 1, 3 or 5; force where you mean it",
					Act:   runbook.Calls("launchInstance", "addMembers"),
				},
				{
					Key:   "quorum",
					When:  []runbook.Condition{runbook.Is("code", "BELOW_QUORUM", "QUORUM_LOST", "LAST_SERVER")},
					Seen:  "`BELOW_QUORUM`, `QUORUM_LOST`, `LAST_SERVER`",
					Means: "etcd would have no majority; the message has the arithmetic",
					Do:    "recover a server first, or add one; the last one leaves with the instance",
					Act:   runbook.Calls("recoverMember", "addMembers", "decommissionInstance"),
				},
				{
					Key:   "no-server",
					When:  []runbook.Condition{runbook.Is("code", "NO_SERVER")},
					Seen:  "`NO_SERVER`",
					Means: "no server of the cluster answers",
					Do:    "recover one: its data is on its node",
					Act:   runbook.Calls("recoverMember"),
				},
				{
					Key:   "etcd-member-left",
					When:  []runbook.Condition{runbook.Is("code", "ETCD_MEMBER_LEFT")},
					Seen:  "`ETCD_MEMBER_LEFT`",
					Means: "a server left, and etcd still lists it",
					Do:    "repeat the operation: it removes the member",
					Act:   runbook.Calls("retryOperation"),
				},
				{
					Key:   "etcd-silent",
					When:  []runbook.Condition{runbook.Is("code", "ETCD_SILENT", "NO_SUCCESSOR", "CA_UNREADABLE")},
					Seen:  "`ETCD_SILENT`, `NO_SUCCESSOR`",
					Means: "etcd does not answer on the server that was called",
					Do:    "look in its log for errors of disk, clock or memory; then repeat",
					Act:   runbook.Outside("repair the server", "retryOperation", "recoverMember"),
				},
				{
					Key:   "pods-stay",
					When:  []runbook.Condition{runbook.Is("code", "WORK_RUNNING")},
					Seen:  "`WORK_RUNNING`",
					Means: "pods cannot be evicted: their disruption budget allows none",
					Do:    "scale them elsewhere, or force, which loses them",
					Act:   runbook.Action{Wait: "the pods leave", Calls: []string{"drainMember", "removeMember"}},
				},
				{
					Key: "lost",
					When: []runbook.Condition{runbook.Is("member.failure", "INIT_GONE", "OUT_OF_MEMORY",
						"RESTARTS_SPENT", "REPORTED")},
					Seen:  "a server or an agent is FAILED",
					Means: "its processes ended on its node",
					Do:    "`recoverMember`, servers before agents",
					Act:   runbook.Calls("recoverMember"),
				},
			},
		},
	},
}
