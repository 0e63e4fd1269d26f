package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

const publicPEM = "-----BEGIN PUBLIC " +
	"KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"

func signerKey() object {
	return object{
		"id": "sgk_1", "sourceId": "src_1", "name": "release", "publicKey": publicPEM, "fingerprint": "sha256:fff",
		"algorithm": "ed25519",
		"validFrom": at, "validUntil": at, "createdBy": "usr_1", "createdAt": at,
	}
}

func source() object {
	return object{
		"id": "src_1", "tenantId": "ten_1", "name": "team", "kind": "OCI", "location": "registry.example.com/team",
		"signaturePolicy": "REQUIRED",
		"credentialUser":  "robot", "credentialAt": at, "keys": []object{signerKey()}, "createdBy": "usr_1",
		"createdAt": at,
	}
}

// addSourceFixtures gives the stand-in the verbs of artifact sources.
func addSourceFixtures(s *clienttest.Server) {
	off, common, revoked, twin := source(), source(), signerKey(), source()
	off["disabledAt"] = at
	common["id"], common["tenantId"], common["name"], common["keys"] = "src_2", nil, "common", []object{}
	twin["id"], twin["tenantId"], twin["name"] = "src_3", nil, "common"
	revoked["revokedAt"], revoked["revokeReason"] = at, "lost"
	for field, value := range map[string]any{
		"artifactSources": page(source(), common, twin), "createArtifactSource": source(), "updateArtifactSource": off,
		"setSourceCredential": source(),
		"addSignerKey":        signerKey(), "revokeSignerKey": revoked,
	} {
		s.Handle(field, answer(value))
	}
}

func TestASourcesSecretComesFromAFileAndIsNotRepeated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const secret = "hunter2-hunter2"
	for _, from := range []string{"-", r.file(t, "secret", secret+"\n")} {
		got := r.run(t.Context(), secret+"\n", "source", "credential", "team", "--user", "robot", "--secret-file", from)
		require.Zero(t, got.code, got.stderr)
		require.NotContains(t, got.stdout+got.stderr, secret)
	}
	calls := r.CallsOf("setSourceCredential")
	require.Len(t, calls, 2)
	for _, call := range calls {
		in := call.Args["input"].(map[string]any)
		require.Equal(t, []any{secret, "robot", "src_1"}, []any{in["secret"], in["user"], in["sourceId"]},
			"without the line's end, for the source of that name")
	}
	for what, args := range map[string]string{
		"no secret":      "credential team --user robot",
		"no file":        "credential team --user robot --secret-file missing",
		"an empty file":  "credential team --user robot --secret-file -",
		"both":           "credential team --user robot --secret-file - --none",
		"neither":        "credential team",
		"two of a name":  "credential common --none",
		"no such name":   "credential nothing --none",
		"no change":      "update team",
		"no such kind":   "add x registry.example.com --kind ftp",
		"no such policy": "add x registry.example.com --signatures maybe",
		"no reason":      "key revoke sgk_1",
		"no name":        "key add team -",
		"both owners":    "add x registry.example.com --platform --tenant ten_1",
	} {
		got := r.run(t.Context(), "\n", append([]string{"source"}, strings.Fields(args)...)...)
		require.Equal(t, 2, got.code, "%s: %s", what, got.stderr)
		require.Empty(t, got.stdout, what)
	}
	for _, call := range r.Calls() {
		require.Contains(t, []string{"artifactSources", "setSourceCredential", "viewer"}, call.Field)
	}
	require.Len(t, r.CallsOf("setSourceCredential"), 2, "nothing else was asked for")
}
