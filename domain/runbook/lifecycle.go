package runbook

import "github.com/gpuaas/app-platform/sdk/runbook"

// lifecycle is the runbook in docs/runbooks/instance-stuck.md.
var lifecycle = Runbook{
	Name:     "instance-stuck",
	Title:    "An instance that makes no progress",
	Incident: "App Runtime Lifecycle Incident",
	Symptom:  "in create, in start, in stop, in release",
	Checks: []Check{
		{
			Key: "start",
			On:  []string{"END_REFUSED", "DEADLINE_PASSED", "DEADLINE_EXCEEDED"},
			Ask: "    appctl instances show NAME           # its status, and its last operation\n" +
				"    appctl ops show OPERATION            # the step that runs, its attempt, what it waits for\n" +
				"    appctl ops watch OPERATION           # the same, live\n" +
				"\n" +
				"An operation has a deadline; when it passes, the operation fails by itself and states why: " +
				"nothing hangs for ever. Of one that\n" +
				"failed with `END_REFUSED` only the end itself is recorded: the message states what the database " +
				"refused, and the orphans list what is left. The\n" +
				"instance's status is its state; the *step* is what it is doing.",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:  "end-refused",
					When: []runbook.Condition{runbook.Is("code", "END_REFUSED")},
					Seen: "`END_REFUSED`",
					Means: "the database refuses the end of the operation: a rule that someone added there, or " +
						"a fault of the platform",
					Do: "remove the rule: the end is tried until the deadline; or an operator ends it with " +
						"`appctl break-glass end-operation`, and what is left is listed as orphans",
					Act: runbook.Outside("remove the rule that refuses it", "breakGlassEndOperation"),
				},
				{
					Key:   "deadline",
					When:  []runbook.Condition{runbook.Is("code", "DEADLINE_PASSED", "DEADLINE_EXCEEDED")},
					Seen:  "`DEADLINE_EXCEEDED`",
					Means: "it did not end in its time; its blockers before that are in its timeline",
					Do:    "clear what it waited for, and request it again with more time",
					Act:   runbook.Calls("retryOperation", "decommissionInstance"),
				},
			},
		},
		{
			Key:     "created",
			Title:   "CREATED: the create has not started",
			Columns: []string{"step", "waits for", "do"},
			Edges: []Edge{
				{
					Key:   "pending",
					Act:   runbook.Outside("start a worker"),
					On:    []string{"QUEUED"},
					Seen:  "none, state PENDING",
					Means: "a worker",
					Do:    "is one running? `/readyz`, and *no worker* in [operator](operator.md)",
				},
				{
					Key:   "prepare-node-unreachable",
					Act:   runbook.Outside("start the agent"),
					On:    []string{"NODE_UNREACHABLE", "NODE_OFFLINE"},
					Step:  "prepare",
					Seen:  "`prepare`",
					Means: "an agent: `NODE_UNREACHABLE` names the node",
					Do:    "`appctl nodes`; start the agent on that node",
				},
				{
					Key:   "prepare-failed",
					When:  []runbook.Condition{runbook.Is("step", "prepare"), runbook.Is("state", "FAILED")},
					Act:   runbook.Calls("launchInstance", "decommissionInstance"),
					Seen:  "`prepare`",
					Means: "failed, owner user",
					Do:    "an allocation of the launch was released meanwhile: launch again",
				},
			},
		},
		{
			Key:     "starting",
			On:      []string{"INSTANCE_FAILED"},
			Title:   "STARTING: it was sent to the adapter",
			Columns: []string{"step", "waits for", "do"},
			Edges: []Edge{
				{
					Key:   "dispatch-adapter-unavailable",
					Act:   runbook.Outside("start the adapter", "registerAdapter"),
					On:    []string{"ADAPTER_UNAVAILABLE", "ADAPTER_BUSY", "ADAPTER_NOT_REGISTERED"},
					Seen:  "`dispatch`",
					Means: "`ADAPTER_UNAVAILABLE`: the adapter does not answer",
					Do: "`appctl admin adapter list` shows address and last error; start the adapter, or " +
						"register its new address",
				},
				{
					Key:   "dispatch-dial-refused",
					Act:   runbook.Calls("registerAdapter"),
					On:    []string{"DIAL_REFUSED"},
					Seen:  "`dispatch`",
					Means: "`DIAL_REFUSED`",
					Do:    "the address is not on `--adapter-allow`",
				},
				{
					Key:   "dispatch-adapter-rejected",
					Act:   runbook.Calls("decommissionInstance", "launchInstance"),
					On:    []string{"ADAPTER_REJECTED"},
					When:  []runbook.Condition{runbook.Not("asked", "invokeAction")},
					Seen:  "`dispatch`",
					Means: "failed, `ADAPTER_REJECTED`",
					Do:    "the adapter refused because it would not be safe: the message is the adapter's",
				},
				{
					Key:   "await-working",
					When:  []runbook.Condition{runbook.Not("asked", "INSTANCE_DECOMMISSION")},
					Act:   runbook.Wait("the adapter reports when it is done"),
					On:    []string{"ADAPTER_WORKING"},
					Seen:  "`await`",
					Means: "the adapter is working; it reports phase and percent",
					Do:    "read its log, by the correlation id. Repeating the launch does not help",
				},
				{
					Key:   "verify-probes",
					Act:   runbook.Outside("read what the members print, and repair the app", "decommissionInstance"),
					On:    []string{"PROBE_FAILING", "READINESS_FAILED"},
					Seen:  "`verify`",
					Means: "the adapter reports that the app works, but the agents' probes do not pass yet",
					Do: "the step names probe and member. `READINESS_FAILED` at the end: the app does not serve, " +
						"whatever its adapter reports",
				},
				{
					Key:   "create-failed",
					When:  []runbook.Condition{runbook.Is("asked", "INSTANCE_CREATE"), runbook.Is("state", "FAILED")},
					Seen:  "FAILED, for any other reason",
					Means: "the create failed, and what it started is left",
					Do:    "read its message; then tear it down, as below",
					Act:   runbook.Calls("decommissionInstance"),
				},
			},
			Then: "A failed create leaves what it started, so that it can be examined. Then tear it down; this " +
				"also works for an instance that never started:\n" +
				"\n" +
				"    appctl decommission NAME --reason \"create failed\" --wait\n" +
				"\n" +
				"A second launch under the same name is possible once the first has ended. The same *command* " +
				"with the same\n" +
				"`--idempotency-key` never creates a second instance.",
		},
		memberLost,
		actionRefused,
		{
			Key:     "stopping",
			Title:   "STOPPING: the teardown does not end",
			Columns: []string{"step", "waits for", "do"},
			Edges: []Edge{
				{
					Key: "dispatch-await-drains",
					When: []runbook.Condition{runbook.Is("code", "ADAPTER_WORKING"),
						runbook.Is("asked", "INSTANCE_DECOMMISSION")},
					Act:   runbook.Outside("start the adapter", "registerAdapter", "decommissionInstance"),
					Seen:  "`dispatch`, `await`",
					Means: "the adapter drains and stops",
					Do: "read its log. An adapter that is lost for good must be registered again, or its replacement " +
						"started with the same state directory",
				},
				{
					Key:   "residue-residue-left",
					Act:   runbook.Outside("end what still runs on the node", "decommissionInstance"),
					On:    []string{"RESIDUE_LEFT"},
					Seen:  "`residue`",
					Means: "`RESIDUE_LEFT`: the agents still find something",
					Do: "the evidence of the step lists processes, mounts and files by member. Usually an app " +
						"process that ignores its signal: the agent keeps trying",
				},
				{
					Key:   "residue-node-unreachable",
					Act:   runbook.Outside("start the agent", "decommissionInstance"),
					On:    []string{"NODE_UNREACHABLE", "NODE_OFFLINE"},
					Step:  "residue",
					Seen:  "`residue`",
					Means: "`NODE_UNREACHABLE`",
					Do: "the proof needs evidence from the node itself. Start the agent again; with its state " +
						"directory, it knows its members",
				},
			},
			Then: "Failed at its deadline? Request it again, with more time: a new operation continues where the " +
				"old one stopped.\n" +
				"\n" +
				"    appctl decommission NAME --deadline 1h --reason \"second try\" --wait\n" +
				"\n" +
				"An instance stays STOPPING, and a failed one without its time of release, until the proof " +
				"exists. That is intended: capacity\n" +
				"that may still be in use is not given to anyone else.",
		},
		{
			Key:   "releasing",
			On:    []string{"ALLOCATION_RELEASING"},
			Title: "RELEASING: an allocation is not released",
			Ask: "    appctl allocations list\n" +
				"    appctl ops list --state running\n" +
				"\n" +
				"The release of an allocation in use stops its instance first, with a separate operation that it " +
				"follows: see STOPPING. Then it\n" +
				"waits for the agents' proof that every member that was ever in the allocation is removed. If " +
				"the stop has failed, the release fails with its\n" +
				"reason: decommission the instance again, and when that has ended release the allocation again.\n" +
				"\n" +
				"    appctl allocations release NAME --reason \"second try\" --wait",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key: "stop-failed",
					When: []runbook.Condition{runbook.Is("asked", "ALLOCATION_RELEASE"),
						runbook.Is("state", "FAILED")},
					Seen:  "the release is FAILED",
					Means: "the stop of its instance failed",
					Do:    "decommission the instance again, then release the allocation again",
					Act:   runbook.Calls("decommissionInstance", "releaseAllocation"),
				},
				{
					Key:   "stopping",
					On:    []string{"OPERATION_AHEAD"},
					Seen:  "`OPERATION_AHEAD`",
					Means: "its instance is being stopped, by an operation that has to end first",
					Do:    "see STOPPING; the blockers of the stop are listed before this. The release then continues",
					Act:   runbook.Wait("the stop of its instance ends"),
				},
			},
		},
		{
			Key:   "waits",
			Title: "Anything else that it waits for",
			Ask: "In any step, the first blocker of the operation names what has to be cleared first. " +
				"All are in [blockers](../blockers.md).",
			Columns: []string{"blocker", "means", "do"},
			Edges: []Edge{
				{
					Key:   "plan-unknown",
					Act:   runbook.Outside("start a worker of the build that started it", "breakGlassEndOperation"),
					On:    []string{"PLAN_UNKNOWN"},
					Seen:  "`PLAN_UNKNOWN`",
					Means: "workers run, and none of them knows the steps that the operation was started with",
					Do: "start a worker of the build that started it; or an operator ends it by break-glass, " +
						"which lists what is left behind",
				},
				{
					Key:   "adapter-refuses-platform",
					Act:   runbook.Outside("start the adapter with the right issuer, name and clock"),
					On:    []string{"ADAPTER_REFUSES_PLATFORM"},
					Seen:  "`ADAPTER_REFUSES_PLATFORM`",
					Means: "the adapter does not accept the platform's signature",
					Do:    "configure it with the platform's issuer and its own registered name, and set its clock",
				},
				{
					Key:   "adapter-invalid",
					Act:   runbook.Outside("run a version of the adapter that keeps the contract"),
					On:    []string{"ADAPTER_INVALID"},
					Seen:  "`ADAPTER_INVALID`",
					Means: "the adapter's answer violates the contract",
					Do: "read its log, by the correlation id; `appctl adapter check` states the clause. The " +
						"platform calls it again",
				},
				{
					Key:   "node-retired",
					Act:   runbook.Calls("replaceMember", "removeMember", "decommissionInstance"),
					On:    []string{"NODE_RETIRED"},
					Seen:  "`NODE_RETIRED`",
					Means: "a member's node was retired",
					Do:    "remove or replace the member by force: `appctl members replace MEMBER --force --reason …`",
				},
				{
					Key:   "node-runtime-missing",
					Act:   runbook.Outside("install the container runtime"),
					On:    []string{"NODE_RUNTIME_MISSING"},
					Seen:  "`NODE_RUNTIME_MISSING`",
					Means: "the node of a member can start no member",
					Do:    "install or repair the container runtime on that node; its agent reports it by itself",
				},
				{
					Key:   "node-refuses-member",
					Act:   runbook.Outside("repair the node", "replaceMember"),
					On:    []string{"NODE_REFUSES_MEMBER"},
					Seen:  "`NODE_REFUSES_MEMBER`",
					Means: "the node cannot isolate or equip the member",
					Do:    "the message names the remedy; or use another allocation, on another node",
				},
				{
					Key:   "allocation-failed",
					Act:   runbook.Calls("releaseAllocation"),
					On:    []string{"ALLOCATION_FAILED"},
					Seen:  "`ALLOCATION_FAILED`",
					Means: "an allocation that is meant to have members has failed",
					Do:    "release it, and use another one",
				},
				{
					Key:   "allocation-pending",
					Act:   runbook.Wait("it becomes ready, or fails after ten minutes"),
					On:    []string{"ALLOCATION_PENDING"},
					Seen:  "`ALLOCATION_PENDING`",
					Means: "an allocation is not ready yet",
					Do:    "wait: it fails after 10 minutes when no capacity is found",
				},
				{
					Key:   "task-overdue",
					Act:   runbook.Outside("start the agent"),
					On:    []string{"TASK_OVERDUE"},
					Seen:  "`TASK_OVERDUE`",
					Means: "a task on a node has exceeded its timeout, and its agent has not reported the end",
					Do:    "read the agent's log on that node; the platform ends the task 10 minutes later",
				},
				{
					Key: "work-running",
					Act: runbook.Action{Calls: []string{"invokeAction", "drainMember", "removeMember"},
						Wait: "the work ends"},
					On:    []string{"WORK_RUNNING"},
					Seen:  "`WORK_RUNNING`",
					Means: "the adapter waits for work that runs on a member",
					Do:    "wait, or stop the work in the app; force loses it",
				},
				{
					Key:   "cancel-unanswered",
					Act:   runbook.Outside("repair the adapter"),
					On:    []string{"CANCEL_UNANSWERED"},
					Seen:  "`CANCEL_UNANSWERED`",
					Means: "the adapter has not answered yet whether it can still stop",
					Do:    "read its log; the platform calls it again",
				},
				{
					Key:   "force-grace",
					Act:   runbook.Wait("the adapter's last two minutes end"),
					On:    []string{"FORCE_GRACE"},
					Seen:  "`FORCE_GRACE`",
					Means: "it continues by force, and the adapter has its last two minutes",
					Do:    "wait: the platform then tears down without the adapter",
				},
				{
					Key:   "platform-trouble",
					Act:   runbook.Outside("repair what the server's log names"),
					On:    []string{"PLATFORM_TROUBLE"},
					Seen:  "`PLATFORM_TROUBLE`",
					Means: "a step fails because of a fault in the platform itself",
					Do:    "read the server's log, by the correlation id; the step is tried again",
				},
			},
		},
	},
}
