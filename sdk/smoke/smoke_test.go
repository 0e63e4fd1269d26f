package smoke_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/exectest"
	"github.com/gpuaas/app-platform/sdk/publish"
	"github.com/gpuaas/app-platform/sdk/smoke"
)

// store is a registry, and a file server beside it.
func store(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

var plain = publish.Registry{PlainHTTP: true}

// pushed is an image with one file, for this machine.
func pushed(t *testing.T, program string) smoke.Subject {
	t.Helper()
	layout := filepath.Join(t.TempDir(), "out")
	_, err := publish.Build(layout, publish.Image{Platform: "linux/" + runtime.GOARCH,
		Files: []publish.File{{From: program, To: "/program"}}})
	require.NoError(t, err)
	made, err := plain.PushLayout(t.Context(), layout, store(t)+"/apps/demo:1")
	require.NoError(t, err)
	return smoke.Subject{Ref: made.Ref, Digest: made.Digest, Kind: smoke.Image}
}

// engine is a container engine that writes its arguments into a file, and runs a line of a shell for "run".
func engine(t *testing.T, run string) (words []string, asked func() string) {
	t.Helper()
	dir := t.TempDir()
	program, note := filepath.Join(dir, "engine"), filepath.Join(dir, "asked")
	text := fmt.Sprintf("#!/bin/sh\necho \"$*\" >>%s\nif [ \"$1\" = run ]; then %s; fi\n", note, run)
	exectest.Write(t, program, text)
	return []string{program}, func() string {
		data, err := os.ReadFile(note)
		require.NoError(t, err)
		return string(data)
	}
}

func outcomes(report *smoke.Report) string {
	var out []string
	for _, one := range report.Checks {
		out = append(out, one.Name+" "+one.Outcome)
	}
	return strings.Join(out, ", ")
}

func file(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(path, []byte("program"), 0o700))
	return path
}

func TestAnImageIsFetchedStartedOnceAndAnswers(t *testing.T) {
	t.Parallel()
	for run, want := range map[string]string{
		"echo ready":                 "fetched passed, digest passed, started passed, answered passed",
		"exec sleep 60":              "fetched passed, digest passed, started passed, answered passed",
		"echo no config >&2; exit 3": "fetched passed, digest passed, started passed, answered failed",
		"echo no runtime; exit 125":  "fetched passed, digest passed, started failed",
	} {
		words, asked := engine(t, run)
		report, err := smoke.Run(t.Context(), pushed(t, file(t)), smoke.Options{Registry: plain, Engine: words,
			Flags: []string{"--user=65532"}, Command: []string{"serve"}, Up: 2 * time.Second, Tool: "a test"})
		require.NoError(t, err)
		require.Equal(t, want, outcomes(report), run)
		require.Equal(t, !strings.Contains(want, "failed"), report.Passed())
		require.Equal(t, []string{"/program", "serve"}, report.Command)
		lines := strings.Split(strings.TrimSpace(asked()), "\n")
		require.Len(t, lines, 4)
		require.Regexp(t, `^load --input .*image.tar$`, lines[0])
		require.Regexp(t, `^run --name smoke-\S+ --network=none --user=65532 localhost/smoke-\S+:smoke serve$`,
			lines[1])
		require.Regexp(t, `^rm --force smoke-`, lines[2])
		require.Regexp(t, `^rmi --force localhost/smoke-`, lines[3])
	}
}

// The real engine, where this machine has one that works.
func TestARealEngineRunsAnImage(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("podman"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs podman and root")
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(source,
		[]byte("package main\nimport \"os\"\nfunc main() { println(\"hello\"); if len(os.Args) > 1 { os.Exit(4) } }\n"),
		0o600))
	build := exec.Command("go", "build", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	// A mount namespace hides a hybrid control-group tree, which podman refuses.
	words := []string{"unshare", "--mount", "sh", "-c",
		`mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup && exec podman "$@"`, "podman", "--root", dir + "/root",
		"--runroot", dir + "/run", "--storage-driver=vfs",
		"--cgroup-manager=cgroupfs", "--events-backend=file"}
	subject := pushed(t, program)
	options := smoke.Options{Registry: plain, Engine: words,
		Flags: []string{"--cgroups=disabled", "--ulimit=nofile=1024:1024",
			"--ulimit=nproc=512:512"}, Up: time.Minute, Tool: "a test"}
	report, err := smoke.Run(t.Context(), subject, options)
	require.NoError(t, err)
	require.True(t, report.Passed(), "%+v", report.Checks)
	require.Contains(t, report.Checks[3].Detail, "hello")
	options.Command = []string{"fail"}
	report, err = smoke.Run(t.Context(), subject, options)
	require.NoError(t, err)
	require.Equal(t, "fetched passed, digest passed, started passed, answered failed", outcomes(report))
	left, err := exec.Command(words[0], append(words[1:], "ps", "--all", "--quiet")...).Output()
	require.NoError(t, err)
	require.Empty(t, strings.TrimSpace(string(left)), "nothing is left")
}

func TestFilesInARegistryAreFetchedWhole(t *testing.T) {
	t.Parallel()
	host := store(t)
	made, err := plain.PushFiles(t.Context(), []string{file(t)}, "application/vnd.example.v1", host+"/apps/model:1")
	require.NoError(t, err)
	subject := smoke.Subject{Ref: made.Ref, Digest: made.Digest, Kind: smoke.Artifact}
	report, err := smoke.Run(t.Context(), subject, smoke.Options{Registry: plain})
	require.NoError(t, err)
	require.Equal(t, "fetched passed, digest passed", outcomes(report))
	require.Contains(t, report.Checks[0].Detail, "3 parts")
	subject.Bytes = 1
	report, err = smoke.Run(t.Context(), subject, smoke.Options{Registry: plain})
	require.NoError(t, err)
	require.Equal(t, "fetched passed, digest failed", outcomes(report))
	subject.Digest = "sha256:" + strings.Repeat("0", 64)
	report, err = smoke.Run(t.Context(), subject, smoke.Options{Registry: plain})
	require.NoError(t, err)
	require.Equal(t, "fetched failed", outcomes(report))
	_, err = smoke.Run(t.Context(), smoke.Subject{Kind: "FLOPPY"}, smoke.Options{})
	require.Error(t, err)
}

func TestAFileIsFetchedAndItsBytesAreCounted(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/model" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("weights"))
	}))
	t.Cleanup(server.Close)
	const digest = "sha256:9a129038de9896b16a23ad2f5b75e7aa06d8ae1e9e6c5a4ee8af8c1ed9bd8b7b"
	subject := smoke.Subject{Ref: server.URL + "/model", Digest: digest, Kind: smoke.Blob}
	report, err := smoke.Run(t.Context(), subject, smoke.Options{})
	require.NoError(t, err)
	require.Equal(t, "fetched passed, digest failed", outcomes(report))
	subject.Digest = strings.TrimPrefix(report.Checks[1].Detail, "its bytes have the digest ")
	subject.Bytes = 7
	report, err = smoke.Run(t.Context(), subject, smoke.Options{})
	require.NoError(t, err)
	require.True(t, report.Passed())
	subject.Ref = server.URL + "/other"
	report, err = smoke.Run(t.Context(), subject, smoke.Options{})
	require.NoError(t, err)
	require.Equal(t, "fetched failed", outcomes(report))
}
