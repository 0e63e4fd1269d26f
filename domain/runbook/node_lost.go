package runbook

import "github.com/gpuaas/app-platform/sdk/runbook"

// nodeLost is the runbook in docs/runbooks/node-lost.md.
var nodeLost = Runbook{
	Name:     "node-lost",
	Title:    "A node is lost",
	Incident: "Platform Node Incident",
	Symptom:  "a machine is silent, is lost for good, has rebooted, or takes no members",
	Checks: []Check{
		{
			Key: "start",
			Ask: "    appctl nodes                            # which are OFFLINE, and since when\n" +
				"    appctl nodes show NODE                  # what its agent found, and whose members are there\n" +
				"    appctl nodes fleet                      # what waits because of it\n" +
				"\n" +
				"A node is OFFLINE 15 s after its agent last reported. Its members keep running, and are " +
				"UNKNOWN. After " +
				"`--node-grace`, 5 minutes, they are `FAILED` as `NODE_LOST`; they come back by themselves when " +
				"it reports " +
				"again before that.",
		},
		{
			Key:     "for-good",
			Title:   "The machine is lost for good",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:   "retired",
					When:  []runbook.Condition{runbook.Is("blocker", "NODE_RETIRED")},
					Seen:  "an instance has the blocker `NODE_RETIRED`",
					Means: "the node was retired as lost; its members can only be replaced or removed by force",
					Do: "`appctl members replace MEMBER --force --reason …`, or remove it by force: what it may have " +
						"left is an orphan",
					Act: runbook.Calls("replaceMember", "removeMember", "decommissionInstance"),
				},
				{
					Key:   "members-lost",
					When:  []runbook.Condition{runbook.Is("member.failure", "NODE_LOST")},
					Seen:  "members are `FAILED` as `NODE_LOST`",
					Means: "it has been silent for longer than the grace",
					Do: "if the machine does not come back: `appctl nodes retire NODE --lost --reason …`, and " +
						"replace the members by force; if it does, its members are recovered",
					Act: runbook.Calls("retireNode", "replaceMember", "recoverMember"),
				},
			},
		},
		{
			Key:     "silent",
			Title:   "Its agent is silent",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key: "credential",
					When: []runbook.Condition{runbook.Is("node.status", "OFFLINE"),
						runbook.Has("agent.log", "the platform refuses the node's credential")},
					Seen:  "OFFLINE, and its agent logs that the platform refuses its credential",
					Means: "the credential was revoked or has expired, or the disk was restored from an old image",
					Do: "`appctl admin node enrol NAME`, and put the token into `--enrol-token-file`: no " +
						"restart is needed",
					Act: runbook.Calls("createNodeEnrolment"),
				},
				{
					Key:   "offline",
					When:  []runbook.Condition{runbook.Is("node.status", "OFFLINE")},
					Seen:  "OFFLINE",
					Means: "its agent, its network or the machine stopped",
					Do:    "start the machine or the agent, with the same state directory; repair the network between",
					Act:   runbook.Outside("start the agent"),
				},
			},
		},
		{
			Key:     "unwell",
			Title:   "It reports, and takes no members",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:   "rebooted",
					When:  []runbook.Condition{runbook.Is("member.failure", "NODE_RESTARTED")},
					Seen:  "members are `FAILED` as `NODE_RESTARTED`",
					Means: "it rebooted",
					Do: "wait: they are recovered by themselves, in the order of their components; after three tries " +
						"`recoverMember`",
					Act: runbook.Action{Wait: "the platform recovers them, and gives up after three tries",
						Calls: []string{"recoverMember"}},
				},
				{
					Key:   "condition",
					When:  []runbook.Condition{runbook.Has("node.condition", " BAD", " UNKNOWN")},
					Seen:  "a condition is BAD or UNKNOWN: `disk`, `memory`, `clock`, `gpu`, or one of `--checks-dir`",
					Means: "its agent's check found it; what runs there continues, and no new member is placed there",
					Do: "repair what the condition's message names; the check notices by itself. Before work on " +
						"the machine: " +
						"`appctl nodes drain NODE`",
					Act: runbook.Outside("repair what the check found", "drainNode"),
				},
				{
					Key: "runtime",
					When: []runbook.Condition{
						runbook.Is("code", "RUNTIME_MISSING", "RUNTIME_TOO_OLD", "NODE_RUNTIME_MISSING")},
					Seen:  "`RUNTIME_MISSING`, or it reports no isolation class",
					Means: "no container runtime answers there",
					Do:    "install crun or runc; its agent reports it by itself",
					Act:   runbook.Outside("install a container runtime"),
				},
				{
					Key:   "cordoned",
					When:  []runbook.Condition{runbook.Is("node.condition", "CORDONED")},
					Seen:  "it is cordoned",
					Means: "an operator keeps new members away; the reason is shown with it",
					Do:    "`appctl nodes uncordon NODE` when the work is done",
					Act:   runbook.Calls("uncordonNode"),
				},
			},
		},
	},
}
