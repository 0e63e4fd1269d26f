package runbook

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
					On:    []string{"SOURCE_UNKNOWN"},
					Seen:  "`SOURCE_UNKNOWN` at `input.ref`",
					Means: "no source that you may use covers the address, or it is switched off",
					Do:    "`appctl source list`; an operator or tenant admin adds one",
				},
				{
					Key:   "policy-denied-at-input-ref",
					Seen:  "`POLICY_DENIED` at `input.ref`",
					Means: "an overlay's `artifactSources` does not allow it; the reason names the level",
					Do:    "`appctl policy effective`",
				},
				{
					Key:   "invalid-argument-at-input-digest",
					Seen:  "`INVALID_ARGUMENT` at `input.digest`",
					Means: "a file is published only with its digest",
					Do:    "`sha256sum FILE`",
				},
				{
					Key:  "dial-refused",
					Seen: "`DIAL_REFUSED`",
					Means: "the address is inside your network and not on `--registry-allow`, or the registry " +
						"redirected to a host that is not",
					Do: "an operator's decision",
				},
				{
					Key:  "artifact-unavailable",
					Seen: "`ARTIFACT_UNAVAILABLE`",
					Means: "the source does not answer, does not have the digest, broke the transfer off, or does " +
						"not accept the credential",
					Do: "`curl -sI https://HOST/v2/REPOSITORY/manifests/sha256:…` from the server's machine; " +
						"`appctl source credential`",
				},
				{
					Key:   "digest-mismatch",
					Seen:  "`DIGEST_MISMATCH`",
					Means: "the bytes are not those of the digest: truncated, swapped, or corrupted on the way",
					Do:    "push it again; if the error stays, do not trust the source: switch it off",
				},
				{
					Key:   "signature-missing",
					On:    []string{"SIGNATURE_MISSING"},
					Seen:  "`SIGNATURE_MISSING`",
					Means: "no signature, and the source requires one",
					Do:    "`appctl artifact sign`, then publish again",
				},
				{
					Key:  "signature-untrusted",
					On:   []string{"SIGNATURE_UNTRUSTED"},
					Seen: "`SIGNATURE_UNTRUSTED`",
					Means: "signed, but not by a key that the source trusts now; the reasons state what each " +
						"signature lacks",
					Do: "`appctl source list` for keys, their expiry and revocations",
				},
				{
					Key:   "conflict",
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
					On:    []string{"DIGEST_MISMATCH"},
					Seen:  "`DIGEST_MISMATCH`",
					Means: "the source returned other bytes than when it was published; nothing was kept",
					Do:    "as above; `appctl artifact verify` puts it into quarantine",
				},
				{
					Key:  "artifact-unavailable",
					On:   []string{"ARTIFACT_UNAVAILABLE"},
					Seen: "`ARTIFACT_UNAVAILABLE`",
					Means: "the source was unavailable for the whole time of the task, or the platform refuses the " +
						"delivery; the message states which",
					Do: "check the source; the operation can be retried",
				},
				{
					Key:   "artifact-quarantined",
					On:    []string{"ARTIFACT_QUARANTINED"},
					Seen:  "`ARTIFACT_QUARANTINED`",
					Means: "it was put into quarantine meanwhile",
					Do:    "see above",
				},
				{
					Key:   "disk-full",
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
		},
		{
			Key:   "key-is-lost",
			Title: "A key is lost",
			Ask: "`appctl source key revoke`. What it has signed is untrusted from its next verification on, at " +
				"the latest at its next promotion; to be\n" +
				"faster, run `appctl artifact verify` for each. Sign again with the new key: an artifact may " +
				"have several signatures.",
		},
	},
}
