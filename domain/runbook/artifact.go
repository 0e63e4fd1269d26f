package runbook

import "github.com/gpuaas/app-platform/sdk/runbook"

// artifact is the runbook in docs/runbooks/artifact.md.
var artifact = Runbook{
	Name:     "artifact",
	Title:    "Artifacts: publish, trust, promote, deliver",
	Incident: "App Artifact Lifecycle Incident",
	Symptom:  "not published, not trusted, in quarantine, not delivered",
	Checks: []Check{
		{
			Key: "start",
			Ask: "    appctl artifact list --quarantined      # what is not delivered, and why\n" +
				"    appctl artifact show sha256:…           # parts, signatures, who pins it, its steps\n" +
				"    appctl source list                      # where artifacts may come from, whose signatures " +
				"are trusted\n" +
				"\n" +
				"An artifact is a name for bytes in a registry or a store, pinned by digest. When it is " +
				"published, every byte is read and checked against\n" +
				"its digest; the platform stores only the list of its parts.",
		},
		{
			Key:     "is-not-published",
			Title:   "It is not published",
			Columns: []string{"answer", "means", "do"},
			Edges: []Edge{
				{
					Key:   "source-unknown-at-input-ref",
					Act:   runbook.Calls("createArtifactSource", "updateArtifactSource"),
					On:    []string{"SOURCE_UNKNOWN"},
					Seen:  "`SOURCE_UNKNOWN` at `input.ref`",
					Means: "no source that you may use covers the address, or it is switched off",
					Do:    "`appctl source list`; an operator or tenant admin adds one",
				},
				{
					Key: "policy-denied-at-input-ref",
					When: []runbook.Condition{runbook.Is("code", "POLICY_DENIED"),
						runbook.Is("asked", "publishArtifact")},
					Act:   runbook.Calls("setPolicy"),
					Seen:  "`POLICY_DENIED` at `input.ref`",
					Means: "an overlay's `artifactSources` does not allow it; the reason names the level",
					Do:    "`appctl policy effective`",
				},
				{
					Key: "invalid-argument-at-input-digest",
					When: []runbook.Condition{runbook.Is("code", "INVALID_ARGUMENT"),
						runbook.Is("field", "input.digest")},
					Act:   runbook.Calls("publishArtifact"),
					Seen:  "`INVALID_ARGUMENT` at `input.digest`",
					Means: "a file is published only with its digest",
					Do:    "`sha256sum FILE`",
				},
				{
					Key: "dial-refused",
					When: []runbook.Condition{runbook.Is("code", "DIAL_REFUSED"),
						runbook.Is("asked", "publishArtifact")},
					Act: runbook.Outside("allow the address, or push it to a source that is allowed",
						"publishArtifact"),
					Seen: "`DIAL_REFUSED`",
					Means: "the address is inside your network and not on `--registry-allow`, or the registry " +
						"redirected to a host that is not",
					Do: "an operator's decision",
				},
				{
					Key: "artifact-unavailable",
					When: []runbook.Condition{runbook.Is("code", "ARTIFACT_UNAVAILABLE"),
						runbook.Is("asked", "publishArtifact")},
					Act: runbook.Outside("repair the source or push what is missing", "setSourceCredential",
						"publishArtifact"),
					Seen: "`ARTIFACT_UNAVAILABLE`",
					Means: "the source does not answer, does not have the digest, broke off the transfer, or does " +
						"not accept the credential",
					Do: "`curl -sI https://HOST/v2/REPOSITORY/manifests/sha256:…` from the server's machine; " +
						"`appctl source credential`",
				},
				{
					Key: "digest-mismatch",
					When: []runbook.Condition{runbook.Is("code", "DIGEST_MISMATCH"),
						runbook.Is("asked", "publishArtifact")},
					Act:   runbook.Outside("push it again", "publishArtifact", "updateArtifactSource"),
					Seen:  "`DIGEST_MISMATCH`",
					Means: "the bytes are not those of the digest: truncated, swapped, or corrupted on the way",
					Do:    "push it again; if the error stays, do not trust the source: switch it off",
				},
				{
					Key:   "signature-missing",
					Act:   runbook.Outside("sign it", "publishArtifact"),
					On:    []string{"SIGNATURE_MISSING"},
					Seen:  "`SIGNATURE_MISSING`",
					Means: "no signature, and the source requires one",
					Do:    "`appctl artifact sign`, then publish again",
				},
				{
					Key:  "signature-untrusted",
					Act:  runbook.Calls("addSignerKey", "publishArtifact"),
					On:   []string{"SIGNATURE_UNTRUSTED"},
					Seen: "`SIGNATURE_UNTRUSTED`",
					Means: "signed, but not by a key that the source trusts now; the reasons state what each " +
						"signature lacks",
					Do: "`appctl source list` for keys, their expiry and revocations",
				},
				{
					Key:   "conflict",
					When:  []runbook.Condition{runbook.Is("code", "CONFLICT"), runbook.Is("asked", "publishArtifact")},
					Act:   runbook.Outside("use the artifact that the message names"),
					Seen:  "`CONFLICT`",
					Means: "the owner has the digest already",
					Do:    "use the artifact that the message names",
				},
			},
			Then: "Nothing is stored about a refused artifact: the same call may be repeated.",
		},
		{
			Key:   "is-in-quarantine",
			Title: "It is in quarantine",
			Ask: "Its entry states why. `SIGNATURE_MISSING` and `SIGNATURE_UNTRUSTED` come from the source's " +
				"policy; `DIGEST_MISMATCH` from a later check; an\n" +
				"entry without a code comes from a person, with the reason in the audit log.\n" +
				"\n" +
				"1. Sign it, or trust the key at its source, then `appctl artifact verify`: a check releases " +
				"what a check quarantined.\n" +
				"2. Or release it by hand, with a reason: `appctl artifact release`. The audit log records it.\n" +
				"\n" +
				"While it is in quarantine, no version can pin it or be promoted with it, and a node that " +
				"requests it gets `ARTIFACT_QUARANTINED`. Running workloads continue.",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key: "by-signature",
					When: []runbook.Condition{runbook.Is("artifact.quarantine", "SIGNATURE_MISSING",
						"SIGNATURE_UNTRUSTED")},
					Seen:  "`SIGNATURE_MISSING`, `SIGNATURE_UNTRUSTED`",
					Means: "its source requires a signature that it does not have now",
					Do:    "sign it, or trust the key at its source; then `appctl artifact verify`",
					Act:   runbook.Calls("addSignerKey", "updateArtifactSource", "verifyArtifact"),
				},
				{
					Key:   "by-digest",
					When:  []runbook.Condition{runbook.Is("artifact.quarantine", "DIGEST_MISMATCH")},
					Seen:  "`DIGEST_MISMATCH`",
					Means: "the source now has other bytes under its digest",
					Do: "push the right bytes again, then `appctl artifact verify`; if they change again, " +
						"switch the source off",
					Act: runbook.Outside("push the right bytes again", "verifyArtifact", "updateArtifactSource"),
				},
				{
					Key:   "by-hand",
					When:  []runbook.Condition{runbook.Has("artifact.quarantine", "by hand")},
					Seen:  "no code",
					Means: "a person put it there; the reason is in its entry and in the audit",
					Do:    "when the reason no longer applies: `appctl artifact release`",
					Act:   runbook.Calls("releaseArtifact"),
				},
			},
		},
		{
			Key:   "does-not-reach-a-node",
			Title: "It does not reach a node",
			Ask: "The task of kind `FETCH_ARTIFACT` shows its progress, in the operation's timeline and in " +
				"`appctl ops show`.",
			Columns: []string{"result of the task", "means", "do"},
			Edges: []Edge{
				{
					Key:   "digest-mismatch",
					Act:   runbook.Outside("push it again", "verifyArtifact", "retryOperation"),
					On:    []string{"DIGEST_MISMATCH"},
					Seen:  "`DIGEST_MISMATCH`",
					Means: "the source returned other bytes than at publication; none of them were kept",
					Do:    "push it again, as above; `appctl artifact verify` puts it into quarantine",
				},
				{
					Key:  "artifact-unavailable",
					Act:  runbook.Outside("repair the source", "retryOperation"),
					On:   []string{"ARTIFACT_UNAVAILABLE"},
					Seen: "`ARTIFACT_UNAVAILABLE`",
					Means: "the source was unavailable for the whole time of the task, or the platform refuses the " +
						"delivery; the message states which",
					Do: "check the source; the operation can be retried",
				},
				{
					Key:   "artifact-quarantined",
					Act:   runbook.Calls("releaseArtifact", "retryOperation"),
					On:    []string{"ARTIFACT_QUARANTINED"},
					Seen:  "`ARTIFACT_QUARANTINED`",
					Means: "it was put into quarantine meanwhile",
					Do:    "see above",
				},
				{
					Key:   "disk-full",
					Act:   runbook.Outside("give the node space", "retryOperation"),
					On:    []string{"DISK_FULL"},
					Seen:  "`DISK_FULL`",
					Means: "it does not fit into the node's cache, or onto its disk",
					Do:    "`--cache-bytes` of the node's agent, or a larger disk",
				},
			},
			Then: "Nodes do not connect to sources: parts come from the platform under `/v1/artifacts/`, with a " +
				"token that is valid for minutes, for one task and one node. An interrupted\n" +
				"fetch resumes where it stopped.",
		},
		{
			Key:   "wrong-or-harmful-artifact-was-published",
			Title: "A wrong or harmful artifact was published",
			Ask: "1. `appctl artifact quarantine sha256:… --reason \"CVE-…\"`: no launch gets it from now on.\n" +
				"2. Stop new launches by name as well: `appctl promote manifest APP@VERSION --to deprecated " +
				"--reason \"CVE-…\"`, or roll its canary back.\n" +
				"3. Find what runs it: `appctl -o json instances list` in each project, by version.\n" +
				"4. Publish a new one under a new digest, a new version, and promote. Bytes under a digest never " +
				"change, so nothing can be overwritten.",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:    "harmful",
					Person: "that it is harmful is known outside of the platform",
					Seen:   "an advisory, or a report of a wrong build",
					Means:  "it must not start anywhere else",
					Do:     "quarantine it",
					Act:    runbook.Calls("quarantineArtifact"),
				},
			},
		},
		{
			Key:   "key-is-lost",
			Title: "A key is compromised",
			Ask: "`appctl source key revoke`. What it has signed is untrusted from its next verification on, at " +
				"the latest at its next promotion; to be\n" +
				"faster, run `appctl artifact verify` for each. Sign again with the new key: an artifact may " +
				"have several signatures.",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:    "lost",
					Person: "that it is compromised is known outside of the platform",
					Seen:   "a private key is where it should not be",
					Means:  "anyone may sign with it",
					Do:     "revoke it, and trust its successor",
					Act:    runbook.Calls("revokeSignerKey", "addSignerKey"),
				},
			},
		},
	},
}
