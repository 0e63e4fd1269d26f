// Package support holds the app's runbook as a value: the steps when something is wrong. Its page is printed from it.
package support

import "github.com/gpuaas/app-platform/sdk/runbook"

// Runbook is the runbook in runbook.md, beside the program.
var Runbook = runbook.Runbook{
	Name:     "hello-cluster",
	Title:    "Hello cluster",
	Incident: "Hello Cluster Incident",
	Symptom:  "a peer does not start, does not work, or does not stop",
	Checks: []runbook.Check{
		{
			Key: "start",
			Ask: "    appctl triage OPERATION                 # begin with the correlation id, the operation or the " +
				"instance\n    appctl events tail NAME\n" +
				"    appctl logs NAME/peer/0         # what a peer prints",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []runbook.Edge{
				{
					Key:   "unknown-peer",
					When:  []runbook.Condition{runbook.Is("code", "NO_SUCH_PEER")},
					Seen:  "`NO_SUCH_PEER` at `input.member`",
					Means: "no peer has this name or member id",
					Do:    "take a name of `work.list`, or leave `member` out",
					Act:   runbook.Calls("invokeAction"),
				},
				{
					Key:   "none-takes-work",
					When:  []runbook.Condition{runbook.Is("code", "NO_PEER_AVAILABLE")},
					Seen:  "`NO_PEER_AVAILABLE`",
					Means: "every peer is drained or cordoned",
					Do:    "uncordon one, or add a peer",
					Act:   runbook.Calls("uncordonMember", "addMembers"),
				},
				{
					Key:   "work-not-started",
					When:  []runbook.Condition{runbook.Is("code", "WORK_NOT_STARTED")},
					Seen:  "`WORK_NOT_STARTED`",
					Means: "the peer's script did not start it: its node is full or its files were deleted",
					Do:    "`recoverMember`, which writes the files again",
					Act:   runbook.Calls("recoverMember"),
				},
				{
					Key:   "below-minimum",
					When:  []runbook.Condition{runbook.Is("code", "BELOW_MINIMUM")},
					Seen:  "`BELOW_MINIMUM`",
					Means: "fewer peers would be left than the app needs",
					Do:    "add one first, or decommission the instance",
					Act:   runbook.Calls("addMembers", "decommissionInstance"),
				},
				{
					Key: "above-maximum",
					When: []runbook.Condition{runbook.Is("code", "ABOVE_MAXIMUM", "COUNT_OUT_OF_BOUNDS",
						"LIMIT_EXCEEDED")},
					Seen:  "`ABOVE_MAXIMUM`",
					Means: "an instance has at most 16 peers",
					Do:    "ask for fewer, or launch another instance",
					Act:   runbook.Calls("launchInstance"),
				},
				{
					Key: "peer-lost",
					When: []runbook.Condition{runbook.Is("member.failure", "INIT_GONE", "OUT_OF_MEMORY",
						"RESTARTS_SPENT", "REPORTED")},
					Seen:  "a peer is FAILED",
					Means: "its process ended on its node",
					Do:    "`recoverMember`: its files are still there",
					Act:   runbook.Calls("recoverMember"),
				},
			},
		},
	},
}
