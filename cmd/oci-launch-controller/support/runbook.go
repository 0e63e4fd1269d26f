// Package support has what to do when something is wrong with the app, as a value that its page is printed from.
package support

import "github.com/gpuaas/app-platform/sdk/runbook"

// Runbook is the runbook in runbook.md, beside the program.
var Runbook = runbook.Runbook{
	Name:     "web-notebook",
	Title:    "Launched images",
	Incident: "Launched Image Incident",
	Symptom:  "a container does not start, its image is missing, or it cannot be reached",
	Checks: []runbook.Check{
		{
			Key: "start",
			Ask: "    appctl triage OPERATION                 # begin with the correlation id, the operation or the " +
				"instance\n    appctl logs NAME/replica/0      # what the container prints\n" +
				"    appctl endpoints NAME",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []runbook.Edge{
				{
					Key: "image",
					When: []runbook.Condition{runbook.Is("code", "IMAGE_MISSING", "ARTIFACT_UNAVAILABLE",
						"DIGEST_MISMATCH", "ARTIFACT_QUARANTINED")},
					Seen:  "`ARTIFACT_UNAVAILABLE`, `DIGEST_MISMATCH`, `ARTIFACT_QUARANTINED`",
					Means: "the image does not reach the node",
					Do:    "the platform's runbook of artifacts, by the same code",
					Act:   runbook.Outside("repair the source", "retryOperation"),
				},
				{
					Key: "profile",
					When: []runbook.Condition{runbook.Is("code", "RUNTIME_PROFILE_INVALID", "RUNTIME_PROFILE_MISSING",
						"RESTART_INVALID")},
					Seen:  "`RUNTIME_PROFILE_INVALID`",
					Means: "the manifest's runtime profile cannot be run; the path names the field",
					Do:    "publish a corrected version",
					Act:   runbook.Calls("publishManifest", "promoteManifest"),
				},
				{
					Key:   "gpus",
					When:  []runbook.Condition{runbook.Is("code", "GPUS_MISSING")},
					Seen:  "`GPUS_MISSING`",
					Means: "the allocation has fewer GPUs than a container needs",
					Do:    "take a larger allocation",
					Act:   runbook.Calls("requestAllocation", "launchInstance"),
				},
				{
					Key:   "ports",
					When:  []runbook.Condition{runbook.Is("code", "NO_FREE_PORTS")},
					Seen:  "`NO_FREE_PORTS`",
					Means: "the node has no port left",
					Do:    "another node",
					Act:   runbook.Calls("replaceMember"),
				},
				{
					Key:   "nothing-to-start",
					When:  []runbook.Condition{runbook.Is("code", "NOTHING_TO_START")},
					Seen:  "`NOTHING_TO_START`",
					Means: "the container was removed on its node",
					Do:    "`recoverMember` creates it again",
					Act:   runbook.Calls("recoverMember"),
				},
				{
					Key:   "not-well",
					When:  []runbook.Condition{runbook.Is("code", "READINESS_FAILED", "PROBE_FAILING")},
					Seen:  "`READINESS_FAILED`",
					Means: "the container runs, but its health check does not pass",
					Do:    "read its logs; correct configuration or image",
					Act: runbook.Outside("read its log and repair the app", "decommissionInstance",
						"upgradeInstance"),
				},
				{
					Key:   "out-of-memory",
					When:  []runbook.Condition{runbook.Is("member.failure", "OUT_OF_MEMORY")},
					Seen:  "a replica is FAILED as `OUT_OF_MEMORY`",
					Means: "it used more than its limit",
					Do:    "recover it; an allocation with more memory if it repeats",
					Act:   runbook.Calls("recoverMember", "replaceMember"),
				},
				{
					Key:   "lost",
					When:  []runbook.Condition{runbook.Is("member.failure", "INIT_GONE", "RESTARTS_SPENT", "REPORTED")},
					Seen:  "a replica is FAILED",
					Means: "its container ended more often than it may",
					Do:    "its logs; then `recoverMember`",
					Act:   runbook.Calls("recoverMember"),
				},
			},
		},
	},
}
