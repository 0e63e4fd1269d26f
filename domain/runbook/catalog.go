package runbook

import "github.com/gpuaas/app-platform/sdk/runbook"

// catalog is the runbook in docs/runbooks/catalog.md.
var catalog = Runbook{
	Name:     "catalog",
	Title:    "Catalog: an app cannot be launched",
	Incident: "App Catalog Incident",
	Symptom:  "not found, not entitled, does not fit, cannot be promoted, its canary was halted",
	Checks: []Check{
		{
			Key: "start",
			Ask: "    appctl apps show SLUG           # versions with their stages, components, actions\n" +
				"    appctl apps fit SLUG            # this project's free allocations, with reasons\n" +
				"    appctl projects permissions     # what you may do here",
			Columns: []string{"answer", "means", "do"},
			Edges: []Edge{
				{
					Key: "not-found-for-the-app",
					When: []runbook.Condition{runbook.Is("code", "NOT_FOUND"),
						runbook.Is("asked", "launchInstance", "app", "launchOptions")},
					Act:   runbook.Calls("grantRole", "updateServiceAccount"),
					Seen:  "`NOT_FOUND` for the app",
					Means: "no such slug, or no `<family>.catalog.read`",
					Do:    "`appctl projects permissions`",
				},
				{
					Key:   "not-entitled",
					Act:   runbook.Calls("grantEntitlement"),
					On:    []string{"NOT_ENTITLED"},
					Seen:  "`NOT_ENTITLED`",
					Means: "the project may not launch it",
					Do:    "a tenant admin: `appctl --project P admin entitle SLUG`",
				},
				{
					Key: "no-active-version",
					When: []runbook.Condition{runbook.Is("code", "FAILED_PRECONDITION"),
						runbook.Has("message", "no active version")},
					Act:   runbook.Calls("promoteManifest"),
					Seen:  "`FAILED_PRECONDITION`, no active version",
					Means: "no version was promoted to active",
					Do:    "`appctl admin manifest promote man_… --to active --reason …`",
				},
				{
					Key:   "not-in-canary",
					Act:   runbook.Calls("launchInstance"),
					On:    []string{"NOT_IN_CANARY"},
					Seen:  "`FAILED_PRECONDITION` with `NOT_IN_CANARY`",
					Means: "the version is in a canary that does not include this project, or that was halted",
					Do:    "launch without a version; `appctl apps fit SLUG` states for each version why not",
				},
				{
					Key: "version-deprecated",
					When: []runbook.Condition{runbook.Is("code", "FAILED_PRECONDITION"),
						runbook.Has("message", "DEPRECATED", "deprecated")},
					Act:   runbook.Calls("launchInstance"),
					Seen:  "`FAILED_PRECONDITION`, version is deprecated",
					Means: "it cannot be launched any more; running instances continue",
					Do:    "launch the active one",
				},
				{
					Key:   "incompatible",
					Act:   runbook.Calls("requestAllocation"),
					On:    []string{"INCOMPATIBLE"},
					Seen:  "`INCOMPATIBLE`",
					Means: "each reason names the allocation and the rule",
					Do:    "rent what fits: shape, GPUs, whole node, network span",
				},
				{
					Key:   "allocation-in-use",
					When:  []runbook.Condition{runbook.Is("code", "CONFLICT"), runbook.Is("asked", "launchInstance")},
					Act:   runbook.Calls("requestAllocation", "decommissionInstance"),
					Seen:  "`CONFLICT` at an allocation",
					Means: "an instance uses it",
					Do:    "the reason names the instance",
				},
				{
					Key:   "config-invalid",
					Act:   runbook.Calls("launchInstance"),
					On:    []string{"CONFIG_INVALID"},
					Seen:  "`CONFIG_INVALID`",
					Means: "each reason names the field, `input.config.…`",
					Do:    "the schema is in `appctl -o json apps show SLUG`",
				},
				{
					Key:   "count-out-of-bounds",
					When:  []runbook.Condition{runbook.Is("code", "COUNT_OUT_OF_BOUNDS")},
					Act:   runbook.Calls("launchInstance"),
					Seen:  "`INVALID_ARGUMENT` at `input.components.N.count`",
					Means: "outside the manifest's bounds",
					Do:    "see `apps show`",
				},
			},
		},
		{
			Key:   "manifest-that-cannot-be-promoted",
			On:    []string{"MANIFEST_INVALID", "EVIDENCE_MISSING"},
			Title: "A manifest that cannot be promoted",
			Ask: "    appctl manifest lint FILE          # all errors, each with its path\n" +
				"    appctl manifest show APP@VERSION   # what it lacks for its next stage, reports, history",
			Columns: []string{"to", "needs"},
			Edges: []Edge{
				{
					Key: "staged",
					When: []runbook.Condition{runbook.Is("asked", "promoteManifest"),
						runbook.Is("version.next", "STAGED")},
					Act:  runbook.Calls("launchInstance", "submitEvidence", "promoteManifest"),
					Seen: "`staged`",
					Do: "lint; an adapter that has described itself, with at least what the manifest declares; " +
						"the id of a **smoke instance** that ran exactly this digest and was torn down with " +
						"proof; for a controller also passed conformance and tenancy reports of the adapter's " +
						"current build, and a `lifecycle` block",
				},
				{
					Key: "canary",
					When: []runbook.Condition{runbook.Is("asked", "promoteManifest"),
						runbook.Is("version.next", "CANARY")},
					Act:  runbook.Calls("promoteManifest", "releaseArtifact"),
					Seen: "`canary`",
					Do:   "that it is staged; no other canary of the app; no pinned artifact in quarantine",
				},
				{
					Key: "active",
					When: []runbook.Condition{runbook.Is("asked", "promoteManifest"),
						runbook.Is("version.next", "ACTIVE")},
					Act:  runbook.Calls("promoteArtifact", "promoteManifest"),
					Seen: "`active`",
					Do:   "every artifact it pins active; the version that was active is deprecated",
				},
				{
					Key: "retired",
					When: []runbook.Condition{runbook.Is("asked", "promoteManifest"),
						runbook.Is("version.next", "RETIRED")},
					Act:  runbook.Calls("decommissionInstance"),
					Seen: "`retired`",
					Do:   "no live instance that uses it",
				},
			},
			Then: "`EVIDENCE_MISSING`, `MANIFEST_INVALID`, `ARTIFACT_QUARANTINED` and `FAILED_PRECONDITION` state " +
				"which of these is missing. `appctl manifest smoke`\n" +
				"requests capacity, launches, tears down and releases, and prints the instance.",
		},
		{
			Key:   "canary-was-halted",
			Title: "A canary was halted",
			Ask: "Its page, `appctl canary report`, its history and the audit log show it. New launches do not " +
				"get it; running workloads continue.\n" +
				"\n" +
				"1. Read why: the report has both versions' failures and times, and the reason names the " +
				"numbers.\n" +
				"2. Examine the failed launches: the errors of their operations have an owner.\n" +
				"3. Roll it back: `appctl promote manifest APP@VERSION --to staged --reason …`. Publish a fixed " +
				"version; or, when the version did not cause the failures,\n" +
				"   start a new canary: it starts with no evidence against it.\n" +
				"\n" +
				"Every promotion is in the audit log with actor, before, after and reason.",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:   "halted",
					When:  []runbook.Condition{runbook.Is("canary.halted", "yes")},
					Seen:  "the canary is halted",
					Means: "its launches failed clearly more often than the active version's, or an operator halted it",
					Do:    "roll it back with `promoteManifest` to STAGED",
					Act:   runbook.Calls("promoteManifest"),
				},
			},
		},
	},
}
