package runbook

import "github.com/gpuaas/app-platform/sdk/runbook"

// adapterAway is the runbook in docs/runbooks/adapter-away.md.
var adapterAway = Runbook{
	Name:     "adapter-away",
	Title:    "An adapter is away",
	Incident: "Platform Adapter Incident",
	Symptom:  "an app's operations wait for its adapter, or it answers what it should not",
	Checks: []Check{
		{
			Key: "start",
			Ask: "    appctl admin adapter list               # address, when it last answered, the last error\n" +
				"    appctl triage OPERATION                 # the blocker, and since when\n" +
				"    appctl adapter check --help             # how to check whether it keeps the contract\n" +
				"\n" +
				"Running instances go on without their adapter. Operations wait until their deadline, and " +
				"continue by themselves " +
				"when it answers: it is called more rarely while it does not, and its recovery is noticed by one call.",
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
					Means: "its address is not on `--adapter-allow`, or nothing proves that it is the one",
					Do:    "register it at an allowed address, by https with its authority; or allow the address",
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
					Means: "it is stopped, hangs, or answers that it cannot now",
					Do: "start it again with its state directory: it resumes from its journal, and without one is " +
						"sent the operation again",
					Act: runbook.Outside("start the adapter"),
				},
				{
					Key:   "busy",
					When:  []runbook.Condition{runbook.Is("code", "ADAPTER_BUSY")},
					Seen:  "`ADAPTER_BUSY`",
					Means: "as many calls as may be at once are under way to it; others wait their turn",
					Do:    "wait; if it lasts it hangs: its log",
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
					Means: "it does not accept the platform's signature: issuer, name or clock are wrong there",
					Do:    "start it with the platform's `--platform-url` and its own registered `--name`; set its clock",
					Act:   runbook.Outside("start it with the right issuer and name"),
				},
				{
					Key:   "invalid",
					When:  []runbook.Condition{runbook.Is("code", "ADAPTER_INVALID")},
					Seen:  "`ADAPTER_INVALID`",
					Means: "its answer is outside of the contract, or something else answers at its address",
					Do: "`appctl adapter check` names the clause; run the version before, or register " +
						"the right address",
					Act: runbook.Outside("run a version that keeps the contract", "registerAdapter"),
				},
				{
					Key:   "failed",
					When:  []runbook.Condition{runbook.Is("code", "ADAPTER_FAILED", "ADAPTER_REJECTED")},
					Seen:  "`ADAPTER_FAILED` or `ADAPTER_REJECTED`",
					Means: "the app's own logic failed or refused; the message is the adapter's",
					Do:    "the runbook of the app, linked from its page; then `appctl ops retry`",
					Act:   runbook.Calls("retryOperation", "decommissionInstance"),
				},
			},
		},
	},
}
