package cli_test

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/clienttest"
	"github.com/gpuaas/app-platform/sdk/signing"
)

// newRegistry is a registry that lets in user ci with password right, and its host.
func newRegistry(t *testing.T) string {
	t.Helper()
	inner := registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ci" || password != "right" {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// publisher is a rig with a program to publish, and a registry where it may push.
func publisher(t *testing.T) (*rig, string, string) {
	t.Helper()
	r := newRig(t)
	r.env["APPCTL_REGISTRY_USER"], r.env["APPCTL_REGISTRY_PASSWORD"] = "ci", "right"
	program := r.file(t, "server", "\x7fELF program")
	require.NoError(t, os.Chmod(program, 0o755))
	return r, newRegistry(t), program
}

// must runs a command that has to work, and answers its ids.
func (r *rig) must(t *testing.T, args ...string) string {
	t.Helper()
	got := r.run(t.Context(), "", append(args, "-q")...)
	require.Zero(t, got.code, "%v: %s", args, got.stderr)
	return strings.TrimSpace(got.stdout)
}

func TestAnImageIsBuiltAlikeWhereverItIsBuiltThenPushedAndSigned(t *testing.T) {
	t.Parallel()
	r, host, program := publisher(t)
	layout, again := filepath.Join(r.dir, "out"), filepath.Join(r.dir, "again")
	line := []string{"artifact", "build", layout, "--file", program + ":/bin/server", "--env", "PORT=8080", "--user",
		"65532:65532", "--platform", "linux/amd64"}
	digest := r.must(t, line...)
	line[2] = again
	require.Equal(t, digest, r.must(t, line...))
	require.Equal(t, digest, r.must(t, line...), "built twice into one layout")
	ref := r.must(t, "artifact", "push", layout, host+"/team/server:1.0.0", "--plain-http")
	require.Equal(t, host+"/team/server@"+digest, ref)

	key := filepath.Join(r.dir, "release")
	r.must(t, "artifact", "keygen", key)
	info, err := os.Stat(key + ".key")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	taken := r.run(t.Context(), "", "artifact", "keygen", key)
	require.Equal(t, 2, taken.code, "a key is never overwritten")
	require.Contains(t, taken.stderr, "release.key exists already and is kept: choose another name")
	lonely := filepath.Join(r.dir, "lonely")
	require.NoError(t, os.WriteFile(lonely+".pub", nil, 0o600))
	require.Equal(t, 2, r.run(t.Context(), "", "artifact", "keygen", lonely).code)
	require.NoFileExists(t, lonely+".key", "nothing is half-written")
	for _, form := range [][]string{nil, {"--classic"}} {
		signed := r.must(t, append([]string{"artifact", "sign", host + "/team/server:1.0.0", "--plain-http", "--key",
			key + ".key"}, form...)...)
		require.Equal(t, ref, signed)
	}
	line[2], line[len(line)-1] = layout, "linux/arm64"
	other := r.must(t, line...)
	require.NotEqual(t, digest, other)
	both := r.run(t.Context(), "", "artifact", "push", layout, host+"/team/server:1.0.1", "--plain-http", "-o", "json")
	require.Zero(t, both.code, both.stderr)
	var pushed struct {
		Digest, MediaType string
		Platforms         []string
	}
	require.NoError(t, json.Unmarshal([]byte(both.stdout), &pushed))
	require.Equal(t, []string{"linux/amd64", "linux/arm64"}, pushed.Platforms)
	require.Equal(t, "application/vnd.oci.image.index.v1+json", pushed.MediaType)
	require.NotContains(t, []string{digest, other}, pushed.Digest)
}

func TestFilesArePushedAsAnArtifactAndSignedWhereTheyLie(t *testing.T) {
	t.Parallel()
	r, host, _ := publisher(t)
	weights, readme := r.file(t, "weights.bin", "weights"), r.file(t, "README", "of a model")
	ref := r.must(t, "artifact", "push", host+"/team/model:3", "--file", weights, "--file", readme, "--artifact-type",
		"application/vnd.example.model.v1", "--plain-http")
	require.Equal(t, ref, r.must(t, "artifact", "push", host+"/team/model:3", "--file", weights, "--file", readme,
		"--artifact-type", "application/vnd.example.model.v1", "--plain-http"))
	r.must(t, "artifact", "keygen", filepath.Join(r.dir, "k"), "--algorithm", "ed25519")
	secret, err := os.ReadFile(filepath.Join(r.dir, "k.key"))
	require.NoError(t, err)
	r.env["APPCTL_SIGNING_KEY"] = string(secret)
	r.must(t, "artifact", "sign", ref, "--plain-http")
	r.must(t, "artifact", "sign", "--file", weights)
	text, err := os.ReadFile(weights + ".sigstore.json")
	require.NoError(t, err)
	var bundle signing.Bundle
	require.NoError(t, json.Unmarshal(text, &bundle))
	require.Equal(t, signing.BundleType, bundle.MediaType)
	require.Equal(t, 1, r.run(t.Context(), "", "artifact", "sign", "--file", weights, "--classic").code,
		"an Ed25519 key signs no bare digest")
}

func TestWhatCannotBeBuiltPushedOrSignedSaysWhy(t *testing.T) {
	t.Parallel()
	r, host, program := publisher(t)
	layout := filepath.Join(r.dir, "out")
	r.must(t, "artifact", "build", layout, "--file", program)
	target := host + "/team/server:1"
	wrong := r.file(t, "wrong", "wrong\n")
	secret := r.file(t, "secret.key", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n")
	r.must(t, "artifact", "keygen", filepath.Join(r.dir, "k"))
	for _, test := range []struct {
		says string
		code int
		args []string
	}{
		{"no such file", 1, []string{"artifact", "build", layout, "--file", "/nowhere"}},
		{"is not a regular file", 1, []string{"artifact", "build", layout, "--file", r.dir}},
		{"must be absolute, clean and given once", 1, []string{"artifact", "build", layout, "--file",
			program + ":../server"}},
		{"must be absolute, clean and given once", 1, []string{"artifact", "build", layout, "--file", program, "--file",
			program}},
		{"must be such as linux/amd64", 1, []string{"artifact", "build", layout, "--file", program,
			"--platform", "linux"}},
		{"must be NAME=value", 1, []string{"artifact", "build", layout, "--file", program, "--env", "NAME"}},
		{"contains no image", 1, []string{"artifact", "push", r.dir, target, "--plain-http"}},
		{"refused the user or password", 1, []string{"artifact", "push", layout, target, "--plain-http",
			"--registry-password-file", wrong}},
		{"needs a password", 2, []string{"artifact", "push", layout, target, "--plain-http", "--registry-password-file",
			os.DevNull}},
		{"must be host/repository", 1, []string{"artifact", "push", layout, "server"}},
		{"give the folder of an image layout", 2, []string{"artifact", "push", target}},
		{"two files have the name server", 1, []string{"artifact", "push", target, "--file", program, "--file", program,
			"--plain-http"}},
		{"no signing key", 2, []string{"artifact", "sign", target, "--plain-http"}},
		{"private key has an unsupported format", 2, []string{"artifact", "sign", target, "--plain-http",
			"--key", secret}},
		{"the PEM is not a private key", 2, []string{"artifact", "sign", target, "--plain-http", "--key",
			filepath.Join(r.dir, "k.pub")}},
		{"MANIFEST_UNKNOWN", 1, []string{"artifact", "sign", host + "/team/server:none", "--plain-http", "--key",
			filepath.Join(r.dir, "k.key")}},
		{"give a reference in a registry, or --file", 2, []string{"artifact", "sign"}},
		{"a key is ecdsa-p256 or ed25519", 2, []string{"artifact", "keygen", filepath.Join(r.dir, "x"), "--algorithm",
			"rsa"}},
		{"--percent needs --to canary", 2, []string{"promote", "manifest", "man_1", "--to", "active", "--percent", "20",
			"--reason", "x"}},
		{"no version 9.9.9 of hello", 3, []string{"manifest", "show", "hello@9.9.9"}},
		{"must be a whole number", 2, []string{"canary", "percent", "man_1", "many", "--reason", "x"}},
	} {
		if test.says == "MANIFEST_UNKNOWN" {
			r.must(t, "artifact", "push", layout, target, "--plain-http")
			test.says = "404"
		}
		got := r.run(t.Context(), "", test.args...)
		require.Equal(t, test.code, got.code, "%v: %s", test.args, got.stderr)
		require.Contains(t, got.stderr, test.says, "%v", test.args)
		require.NotContains(t, got.stderr, "c2VjcmV0")
		require.NotContains(t, got.stderr, "right", "%v", test.args)
		require.Empty(t, got.stdout)
	}
}

func TestASmokeTestThatFailsIsTornDownAndItsCapacityGivenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var done []string
	note := func(field string, value any) {
		r.Handle(field, func(clienttest.Call) (any, error) {
			done = append(done, field)
			return value, nil
		})
	}
	launched := operation("INSTANCE_CREATE", "PENDING", 0)
	launched["id"] = "op_launch"
	note("requestAllocation", object{"allocations": []object{allocation()}})
	note("launchInstance", object{"instance": instance(), "operation": launched})
	note("decommissionInstance", object{"instance": instance(),
		"operation": operation("INSTANCE_DECOMMISSION", "PENDING", 0)})
	note("releaseAllocation", object{"allocation": allocation(),
		"operation": operation("ALLOCATION_RELEASE", "PENDING", 0)})
	r.HandleStream("operationProgress", func(call clienttest.Call, emit func(any) error) error {
		if call.Args["operationId"] == "op_launch" {
			return progressTo("FAILED")(call, emit)
		}
		return progressTo("SUCCEEDED")(call, emit)
	})
	got := r.run(t.Context(), "", "manifest", "smoke", "man_1")
	require.Equal(t, 1, got.code, got.stderr)
	require.Contains(t, got.stderr, "READINESS_FAILED")
	require.Empty(t, got.stdout, "a version that failed has no smoke instance to be promoted by")
	require.Equal(t, []string{"requestAllocation", "launchInstance", "decommissionInstance", "releaseAllocation"}, done)

	done = nil
	r.Handle("launchInstance", refuse("NOT_ENTITLED", "the project may not launch it"))
	got = r.run(t.Context(), "", "manifest", "smoke", "man_1")
	require.Equal(t, 4, got.code, got.stderr)
	require.Equal(t, []string{"requestAllocation", "releaseAllocation"}, done)

	done = nil
	got = r.run(t.Context(), "", "manifest", "smoke", "man_1", "--allocation", "slot-1")
	require.Equal(t, 4, got.code, got.stderr)
	require.Empty(t, done, "what was given is not given back")

	r.Handle("releaseAllocation", refuse("FORBIDDEN", "the project may not release it"))
	got = r.run(t.Context(), "", "manifest", "smoke", "man_1")
	require.NotZero(t, got.code)
	require.Contains(t, got.stderr, "was not released", "capacity that stays rented is reported")
}
