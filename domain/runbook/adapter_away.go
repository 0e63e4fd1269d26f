package runbook

import "github.com/gpuaas/app-platform/sdk/runbook"

// adapterAway is the runbook in docs/runbooks/adapter-away.md.
var adapterAway = Runbook{
	Name:     "adapter-away",
	Title:    "An adapter is away",
	Incident: "Platform Adapter Incident",
	Symptom:  "an app's operations wait for its adapter, or the adapter's answers are wrong",
	Checks: []Check{
		{
			Key: "start",
			Ask: "    appctl admin adapter list               # address, when it last answered, the last error\n" +
				"    appctl triage OPERATION                 # the blocker, and since when\n" +
				"    appctl adapter check --help             # how to check whether it keeps the contract\n" +
				"\n" +
				"Running instances continue without their adapter. Operations wait until their deadline, and " +
				"continue by themselves when it answers: while it does not, the platform calls it less often, and " +
				"one answer is enough to continue.",
		},
		{
			Key:     "silent",
			Title:   "It does not answer",
			Columns: []string{"blocker or error", "means", "do"},
			Edges: []Edge{
				{
					Key:   "not-registered",
					When:  []runbook.Condition{runbook.Is("code", "ADAPTER_NOT_REGISTERED")},
					Seen:  "`ADAPTER_NOT_REGISTERED`",
					Means: "no adapter is registered under the name that the manifest has",
					Do:    "`appctl admin adapter register`, under that name",
					Act:   runbook.Calls("registerAdapter"),
				},
				{
					Key:   "dial-refused",
					When:  []runbook.Condition{runbook.Is("code", "DIAL_REFUSED", "ADAPTER_INSECURE")},
					Seen:  "`DIAL_REFUSED`",
					Means: "its address is not on `--adapter-allow`, or nothing proves its identity",
					Do:    "register it at an allowed address, over https with its authority; or allow the address",
					Act:   runbook.Calls("registerAdapter"),
				},
				{
					Key: "address-moved",
					When: []runbook.Condition{runbook.Is("code", "ADAPTER_UNAVAILABLE"),
						runbook.Has("adapter.error", "no such host", "no route to host", "network is unreachable")},
					Seen:  "`ADAPTER_UNAVAILABLE`, and `no such host` or `no route to host`",
					Means: "it is at another address now, or the network between is broken",
					Do:    "`appctl admin adapter register` with the new address, under the same name",
					Act:   runbook.Calls("registerAdapter"),
				},
				{
					Key:   "down",
					When:  []runbook.Condition{runbook.Is("code", "ADAPTER_UNAVAILABLE")},
					Seen:  "`ADAPTER_UNAVAILABLE`, connection refused or no answer in time",
					Means: "it is stopped, hangs, or answers that it is not available",
					Do: "start it again with its state directory: it resumes from its journal; without one, the " +
						"operation is sent to it again",
					Act: runbook.Outside("start the adapter"),
				},
				{
					Key:   "busy",
					When:  []runbook.Condition{runbook.Is("code", "ADAPTER_BUSY")},
					Seen:  "`ADAPTER_BUSY`",
					Means: "the maximum number of calls to it is under way; other calls wait",
					Do:    "wait; if this lasts, the adapter hangs: read its log",
					Act:   runbook.Wait("calls to it end by their time limit"),
				},
			},
		},
		{
			Key:     "wrong",
			Title:   "It answers what it should not",
			Columns: []string{"blocker or error", "means", "do"},
			Edges: []Edge{
				{
					Key:   "refuses-platform",
					When:  []runbook.Condition{runbook.Is("code", "ADAPTER_REFUSES_PLATFORM")},
					Seen:  "`ADAPTER_REFUSES_PLATFORM`",
					Means: "it does not accept the platform's signature: its issuer, name or clock is wrong",
					Do: "start it with the platform's `--platform-url` and its own registered `--name`; " +
						"set its clock",
					Act: runbook.Outside("start it with the right issuer and name"),
				},
				{
					Key:   "invalid",
					When:  []runbook.Condition{runbook.Is("code", "ADAPTER_INVALID")},
					Seen:  "`ADAPTER_INVALID`",
					Means: "its answer violates the contract, or another program answers at its address",
					Do: "`appctl adapter check` names the clause; run the previous version, or " +
						"register the right address",
					Act: runbook.Outside("run a version that keeps the contract", "registerAdapter"),
				},
				{
					Key:   "failed",
					When:  []runbook.Condition{runbook.Is("code", "ADAPTER_FAILED", "ADAPTER_REJECTED")},
					Seen:  "`ADAPTER_FAILED` or `ADAPTER_REJECTED`",
					Means: "the app's own logic failed or refused; the message is the adapter's",
					Do:    "follow the runbook of the app, linked from its page; then `appctl ops retry`",
					Act:   runbook.Calls("retryOperation", "decommissionInstance"),
				},
			},
		},
	},
}
