package cli_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
	"github.com/gpuaas/app-platform/sdk/loopback"
)

// serveAdapter serves an adapter of one trivial app that trusts issuer, behind a handler that may spoil it.
func serveAdapter(t *testing.T, issuer string, spoil func(http.Handler) http.Handler) string {
	t.Helper()
	done := func(ctx context.Context, run *adapter.Run) error {
		for _, member := range run.Of("one") {
			if model, ok := run.Instance().Artifact("model"); ok {
				if _, err := run.Do(ctx, member, "fetch", adapter.FetchArtifact{Digest: model.Digest,
					Path: "/srv/model"}); err != nil {
					return err
				}
			}
			if err := run.Member(member.ID, adapter.MemberActive, adapter.Healthy, nil); err != nil {
				return err
			}
		}
		return nil
	}
	kit, err := adapter.New(adapter.Config{
		Name: "trivial", Build: "test", StateDir: t.TempDir(), Issuer: issuer,
		Keys: adapter.NewKeySet(issuer+"/.well-known/jwks.json", nil),
		Apps: []adapter.App{{
			Slug: "trivial", Components: []adapter.Component{{Key: "one", DisplayName: "One", Min: 1, Max: 1,
				Default: 1}},
			Operations: map[adapter.Kind]adapter.OperationFunc{adapter.InstanceCreate: done,
				adapter.InstanceDecommission: done},
		}},
	})
	require.NoError(t, err)
	require.NoError(t, kit.Start(t.Context()))
	server := httptest.NewServer(spoil(kit.Handler()))
	t.Cleanup(func() {
		kit.Stop()
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func sound(next http.Handler) http.Handler { return next }

// inventive answers 200 for operations that were never dispatched.
func inventive(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/operations/") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"state":"running"}`))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// issuerAddress is where a check can be the platform.
func issuerAddress(t *testing.T) string {
	t.Helper()
	address, err := loopback.Address()
	require.NoError(t, err)
	return address
}

func TestAdapterCheckReportsWhatPassedAndWhatWasNotRun(t *testing.T) {
	t.Parallel()
	r, address := newRig(t), issuerAddress(t)
	url := serveAdapter(t, "http://"+address, sound)
	file := filepath.Join(r.dir, "report.json")
	got := r.run(t.Context(), "", "adapter", "check", url, "--name", "trivial", "--issuer-listen", address, "--only",
		"status,signature.none,crash.resumes", "--json", file)
	require.Zero(t, got.code, got.stderr+got.stdout)
	require.Contains(t, got.stdout, "not run crash.resumes")
	require.Contains(t, got.stdout, "the suite did not start the adapter")
	require.Contains(t, got.stdout, "Bounds: whole run 20m0s")
	require.Contains(t, got.stdout, "0 failed, 0 skipped, 1 not run")

	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var report conformance.Report
	require.NoError(t, json.Unmarshal(raw, &report))
	digest, err := report.Digested.Digest()
	require.NoError(t, err)
	require.Equal(t, digest, report.Digest, "whoever has the report can compute its digest")
	again := r.run(t.Context(), "", "adapter", "check", url, "--name", "trivial", "--issuer-listen", address, "--only",
		"status,signature.none,crash.resumes", "--digest")
	require.Zero(t, again.code, again.stderr)
	require.Equal(t, digest+"\n", again.stdout, "another run of the same adapter has the same digest")
}

func TestAdapterCheckHandsOutTheArtifactsThatAnAdapterFetches(t *testing.T) {
	t.Parallel()
	r, address := newRig(t), issuerAddress(t)
	url := serveAdapter(t, "http://"+address, sound)
	file := filepath.Join(r.dir, "weights")
	require.NoError(t, os.WriteFile(file, []byte("weights"), 0o600))
	check := []string{"adapter", "check", url, "--name", "trivial", "--issuer-listen", address, "--only",
		"dispatch.completes"}
	got := r.run(t.Context(), "", append(check, "--artifact", "model="+file, "--json", "-")...)
	require.Zero(t, got.code, got.stderr+got.stdout)
	require.Contains(t, got.stderr, "dispatch.completes")
	require.Contains(t, got.stdout, `"outcome": "passed"`)
}

func TestAdapterCheckExplainsAFailureAndEndsWithOne(t *testing.T) {
	t.Parallel()
	r, address := newRig(t), issuerAddress(t)
	url := serveAdapter(t, "http://"+address, inventive)
	got := r.run(t.Context(), "", "adapter", "check", url, "--name", "trivial", "--issuer-listen", address, "--only",
		"status.unknown")
	require.Equal(t, 1, got.code)
	for _, text := range []string{
		"FAIL    status.unknown", "rule   the status of an operation that was never dispatched is 404",
		"sent   GET /v1/operations/op_", `answer 200 {"state":"running"}`, "do     answer 404", "1 failed", "sha256:",
	} {
		require.Contains(t, got.stdout, text)
	}
	require.Contains(t, got.stderr, "1 clauses failed: status.unknown")
}

func TestAdapterCheckSaysWhyItCouldNotRun(t *testing.T) {
	t.Parallel()
	stranger := serveAdapter(t, "http://127.0.0.1:1", sound)
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no name":    {[]string{stranger, "--issuer-listen", "127.0.0.1:0"}, 2, "name"},
		"no issuer":  {[]string{stranger, "--name", "trivial"}, 2, "issuer"},
		"no address": {[]string{"--name", "trivial", "--issuer-listen", "127.0.0.1:0"}, 2, "address"},
		"unknown clause": {[]string{stranger, "--name", "trivial", "--issuer-listen", "127.0.0.1:0", "--only",
			"nonsense"}, 2,
			"nonsense"},
		"too many nodes": {[]string{stranger, "--name", "trivial", "--issuer-listen", "127.0.0.1:0",
			"--nodes", "99"}, 2,
			"nodes"},
		"no path": {[]string{stranger, "--name", "trivial", "--issuer-listen", "127.0.0.1:0", "--artifact", "model"},
			2, "must be name=PATH"},
		"no artifact": {[]string{stranger, "--name", "trivial", "--issuer-listen", "127.0.0.1:0", "--artifact",
			"model=" + filepath.Join(t.TempDir(), "none")}, 2, "artifact model"},
		"bad input": {[]string{stranger, "--name", "trivial", "--issuer-listen", "127.0.0.1:0", "--input", "x={"}, 2,
			"input of x"},
		"refused": {[]string{stranger, "--name", "trivial", "--issuer-listen", "127.0.0.1:0"}, 4,
			"must trust the issuer"},
		"not there": {[]string{"http://127.0.0.1:1", "--name", "trivial", "--issuer-listen", "127.0.0.1:0", "--timeout",
			"300ms"}, 7, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newRig(t).run(t.Context(), "", append([]string{"adapter", "check"}, c.args...)...)
			require.Equal(t, c.code, got.code, got.stderr)
			require.Contains(t, got.stderr, c.says)
			require.Empty(t, got.stdout)
		})
	}
}

func TestAdapterClausesAreListed(t *testing.T) {
	t.Parallel()
	got := newRig(t).run(t.Context(), "", "adapter", "clauses", "-q")
	require.Zero(t, got.code)
	require.Len(t, strings.Fields(got.stdout), len(conformance.Clauses()))
	require.Contains(t, got.stdout, "dispatch.idempotent\n")
}

func TestAdapterInitWritesASkeletonAndOverwritesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "beat")
	line := []string{"adapter", "init", "beat", "--lang", "python", "--dir", dir}
	got := newRig(t).run(t.Context(), "", line...)
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "ci.sh runs its tests")
	require.FileExists(t, filepath.Join(dir, "gpuaas_adapter", "run.py"))
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	require.NoError(t, err)
	require.Contains(t, string(text), `"app": "beat"`)

	for says, line := range map[string][]string{
		"is not empty":         line,
		"is not an app's name": {"adapter", "init", "Beat", "--lang", "python"},
		"choose go, python":    {"adapter", "init", "beat", "--lang", "cobol"},
		`"lang" not set`:       {"adapter", "init", "beat"},
	} {
		got := newRig(t).run(t.Context(), "", line...)
		require.NotZero(t, got.code)
		require.Contains(t, got.stderr, says)
	}
}

func TestAdapterDevCarriesOutLinesAndEndsAtTheFirstThatFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// Each session has its own adapter: one that knew another platform there fetches keys only every few seconds.
	session := func(more ...string) []string {
		address := issuerAddress(t)
		url := serveAdapter(t, "http://"+address, sound)
		return append([]string{"adapter", "dev", url, "--name", "trivial", "--issuer-listen", address}, more...)
	}
	file := filepath.Join(r.dir, "scenario.json")
	require.NoError(t, os.WriteFile(file,
		[]byte(`{"steps": ["launch", "expect accepted", "plan member.drain one-0", "# a remark", "help", "quit"]}`),
		0o600))
	got := r.run(t.Context(), "", session("--scenario", file)...)
	require.Zero(t, got.code, got.stderr+got.stdout)
	require.Contains(t, got.stdout, "instance.create succeeded")
	require.Contains(t, got.stdout,
		"the platform would accept it; no readiness probe was run, since no manifest is named")
	require.Contains(t, got.stdout, "kill -9 the adapter, and start it again")

	got = r.run(t.Context(), "launch\nexpect failed\nlaunch\n", session()...)
	require.Equal(t, 1, got.code, got.stderr+got.stdout)
	require.Contains(t, got.stderr,
		"line 2, expect failed: it is not as expected: instance.create ended succeeded")
	require.Equal(t, 1, strings.Count(got.stdout, "is dispatched"), "it ends there")

	// Who types goes on after a line that cannot be carried out.
	wrong := []struct{ typed, says string }{
		{"drain one-0", "there is no instance yet: launch one"},
		{"launch two=1", "the app has no component \"two\""},
		{"jump", "there is no verb \"jump\"; help lists them"},
		{"kill", "the adapter was not started here"},
		{"deadline soon", "must be seconds"},
		{"hold x", "must be a number of node tasks"},
		{"launch", ""},
		{"expect wonderful", "is not succeeded, failed, canceled"},
		{"drain one-7", "\"one-7\" is not a member; the members are one-0"},
		{"drain one-0", "must be answered with 202"},
		{"action no.such", "the app has no action \"no.such\""},
		{"rollback", "the instance was not upgraded"},
		{"upgrade 2 {no json", "the config is not JSON"},
		{"scale one=1", "one has 1 members already"},
		{"label one-0 no-value", "must be NAME=VALUE"},
	}
	var typed strings.Builder
	for _, one := range wrong {
		typed.WriteString(one.typed + "\n")
	}
	got = r.runAt(t.Context(), true, typed.String()+"expect accepted\n", session()...)
	require.Zero(t, got.code, got.stderr+got.stdout)
	for _, one := range wrong {
		require.Contains(t, got.stderr, one.says, one.typed)
	}
	got = r.run(t.Context(), "", session("--scenario", "nothing.json")...)
	require.Equal(t, 2, got.code, got.stderr)
	require.NoError(t, os.WriteFile(file, []byte(`{"lines": []}`), 0o600))
	got = r.run(t.Context(), "", session("--scenario", file)...)
	require.Equal(t, 2, got.code)
	require.Contains(t, got.stderr, "steps")
}
