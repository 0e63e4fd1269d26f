package runbook

import "github.com/gpuaas/app-platform/sdk/runbook"

// memberLost is the part of instance-stuck about an instance that runs, and has lost a member.
var memberLost = Check{
	Key:     "running",
	Title:   "RUNNING, and a member has failed",
	Columns: []string{"blocker", "means", "do"},
	Edges: []Edge{
		{
			Key:   "member-failed",
			Act:   runbook.Calls("recoverMember", "replaceMember", "removeMember"),
			On:    []string{"MEMBER_FAILED"},
			Seen:  "`MEMBER_FAILED`",
			Means: "what ran in a member has ended; the message says why",
			Do: "`appctl members recover MEMBER` brings it back on its node; where that fails again, " +
				"`appctl members replace MEMBER --plan` shows how another takes its place",
		},
	},
}
