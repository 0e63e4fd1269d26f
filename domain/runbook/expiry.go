package runbook

import "github.com/gpuaas/app-platform/sdk/runbook"

// expiry is the runbook in docs/runbooks/expiry.md.
var expiry = Runbook{
	Name:     "expiry",
	Title:    "A certificate or a key is near its end",
	Incident: "Platform Certificate or Key Incident",
	Symptom:  "something ends within two weeks, or has ended",
	Checks: []Check{
		{
			Key: "start",
			Ask: "These renew themselves: nodes' credentials, tokens, the signing keys that " +
				"`app-platform keys " +
				"rotate` creates, the members' SSH certificates. A person renews what a person set an end for.\n" +
				"\n" +
				"    appctl admin service-account list       # keys of accounts, with their end\n" +
				"    appctl source list                      # signer keys of artifact sources, with their end\n" +
				"    appctl admin adapter list               # the last error of an adapter's address\n" +
				"    openssl s_client -connect HOST:443 </dev/null | openssl x509 -noout -enddate",
		},
		{
			Key:     "accounts",
			Title:   "A key of a service account",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:   "expired",
					When:  []runbook.Condition{runbook.Is("code", "TOKEN_EXPIRED")},
					Seen:  "its requests are `TOKEN_EXPIRED`",
					Means: "it has expired",
					Do:    "`createServiceAccountKey`, and put the secret where the old one is",
					Act:   runbook.Calls("createServiceAccountKey"),
				},
				{
					Key:   "near",
					When:  []runbook.Condition{runbook.Below("key.days", 14)},
					Seen:  "a live key ends within two weeks",
					Means: "its automation stops then",
					Do:    "`rotateServiceAccountKey`: both keys work while the automation is given the new one",
					Act:   runbook.Calls("rotateServiceAccountKey"),
				},
			},
		},
		{
			Key:     "signers",
			Title:   "A signer key of an artifact source",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:   "near",
					When:  []runbook.Condition{runbook.Below("signer.days", 14)},
					Seen:  "a trusted key's `validUntil` is within two weeks, or past",
					Means: "what is signed with it is untrusted from then on, at its next verification",
					Do:    "trust the next key with `addSignerKey`, and sign with both until the old one ends",
					Act:   runbook.Calls("addSignerKey"),
				},
			},
		},
		{
			Key:     "adapters",
			Title:   "An adapter's certificate",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key: "expired",
					When: []runbook.Condition{runbook.Has("adapter.error", "certificate has expired",
						"is not yet valid")},
					Seen:  "its last error is `certificate has expired or is not yet valid`",
					Means: "the certificate of its address, or of its pinned authority, has ended; or a clock is wrong",
					Do:    "give it a new certificate by the same authority; operations continue by themselves",
					Act:   runbook.Outside("renew the adapter's certificate"),
				},
				{
					Key: "other-authority",
					When: []runbook.Condition{runbook.Has("adapter.error", "signed by unknown authority",
						"certificate is valid for", "certificate is not valid")},
					Seen:  "its last error is `certificate signed by unknown authority`, or names another host",
					Means: "it was renewed by an authority other than the pinned one, or for another name",
					Do:    "`registerAdapter` again with the new authority, under the same name",
					Act:   runbook.Calls("registerAdapter"),
				},
			},
		},
		{
			Key:     "edge",
			Title:   "The certificate of the platform's own address",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:   "near",
					When:  []runbook.Condition{runbook.Below("console.days", 14)},
					Seen:  "it ends within two weeks",
					Means: "browsers, agents and adapters refuse the platform then",
					Do: "replace the files of `--tls-cert` and `--tls-key`: the server loads them without a " +
						"restart; or renew it in " +
						"the proxy that terminates TLS in front of it",
					Act: runbook.Outside("replace the certificate's files"),
				},
				{
					Key:   "not-taken",
					When:  []runbook.Condition{runbook.Has("server.log", "the new certificate cannot be used")},
					Seen:  "the log has `the new certificate cannot be used`",
					Means: "the files do not belong together, or are broken: the old certificate stays in use",
					Do:    "write both files again, the key first",
					Act:   runbook.Outside("write certificate and key again"),
				},
			},
		},
	},
}
