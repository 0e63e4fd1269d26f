package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

var releases = flag.Bool("e2e.releases", false, "release a patch of a real app's controller: make app-release")

// An app's team releases a patch of its controller and manifest while the platform runs: it is published, smoked and
// promoted, and a running cluster goes to it and back, with jobs before and after. The server is the same process of
// the same program from beginning to end.
func TestAnAppsReleaseNeedsNoReleaseOfThePlatform(t *testing.T) {
	if !*releases {
		t.Skip("it builds a controller and replaces the one that other tests use: make app-release")
	}
	needsRoot(t)
	ctx, c := bounded(t), automation(t)
	server := processOf(t)
	app := stack.Apps()[slices.IndexFunc(stack.Apps(), func(app stack.App) bool { return app.Slug == "slurm" })]
	instance, operation := launch(t, ctx, c, app.Slug, "released", rent(t, ctx, c))
	succeeds(t, ctx, c, operation)
	k := &clusterUnderTest{t: t, ctx: ctx, c: c, instance: instance}
	awaitJob(t, ctx, c, instance, k.submit("#!/bin/sh\ntrue\n"))
	was := k.version()

	var next string
	app.Program, next = patched(t, ctx, app.Controller, was)
	require.NoError(t, shared.Release(ctx, app))
	found, err := gql.GetApp(ctx, c, app.Slug)
	require.NoError(t, err)
	require.Equal(t, next, found.App.ActiveManifest.Version, "the patch is what new launches get")
	require.Equal(t, was, k.version(), "what runs goes on as it was")

	upgraded, err := gql.UpgradeInstance(ctx, c, gql.UpgradeInstanceInput{InstanceId: instance, Version: next,
		DeadlineSeconds: 180, Reason: "the patch", IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	succeeds(t, ctx, c, upgraded.UpgradeInstance.Operation.Id)
	require.Equal(t, next, k.version())
	require.Contains(t, k.written(), "version "+next)
	require.Contains(t, k.written(), patch, "what the patch does is done")
	awaitJob(t, ctx, c, instance, k.submit("#!/bin/sh\ntrue\n"))

	back, err := gql.RollbackInstance(ctx, c, gql.RollbackInstanceInput{InstanceId: instance, DeadlineSeconds: 180,
		Reason: "the patch is not liked", IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	succeeds(t, ctx, c, back.RollbackInstance.Operation.Id)
	require.Equal(t, was, k.version())
	require.Contains(t, k.written(), "version "+was)
	awaitJob(t, ctx, c, instance, k.submit("#!/bin/sh\ntrue\n"))

	require.Equal(t, server, processOf(t), "the platform was neither released nor started again")
	decommission(t, ctx, c, instance)
}

// processOf is the first server: its process, how often it was started, and the program that it runs.
func processOf(t *testing.T) string {
	t.Helper()
	program, err := os.Stat(fmt.Sprintf("/proc/%d/exe", shared.Server.PID()))
	require.NoError(t, err)
	return fmt.Sprint(shared.Server.PID(), shared.Server.Starts(), program.Size(), program.ModTime())
}

func (k *clusterUnderTest) version() string {
	k.t.Helper()
	found, err := gql.GetInstance(k.ctx, k.c, k.instance)
	require.NoError(k.t, err)
	return found.Instance.AppVersion
}

// written is the configuration that the adapter has written into the controller's member.
func (k *clusterUnderTest) written() string {
	k.t.Helper()
	out, err := k.node(k.controller()).Exec(k.ctx, "/bin/sh", "-c", `for p in /proc/[0-9]*; do
		grep -qs '^slurmctld' $p/comm && grep -qs `+
		k.controller().Id+` $p/cgroup && cat $p/root/etc/slurm/slurm.conf; done; true`)
	require.NoError(k.t, err)
	return out
}

// patch is what the patched controller writes into each cluster's configuration, and the one before it does not.
const patch = "MessageTimeout=21"

// patched builds the next patch of a controller from its sources, with a change of what it does: version and build rise
// together, as in every release. Its reports are those of the build before it under the new build's name: to run the
// suite on a dozen real clusters is the release's own test (go test ./cmd/…), and not what is shown here.
func patched(t *testing.T, ctx context.Context, controller, version string) (program, next string) {
	t.Helper()
	base, _, _ := strings.Cut(version, "-")
	var major, minor, bug int
	_, err := fmt.Sscanf(base, "%d.%d.%d", &major, &minor, &bug)
	require.NoError(t, err)
	next = fmt.Sprintf("%d.%d.%d", major, minor, bug+1)
	source, err := filepath.Abs("../../cmd/" + controller)
	require.NoError(t, err)
	dir, replaced := t.TempDir(), map[string]string{}
	edit := func(name string, change func(string) string) {
		text, err := os.ReadFile(filepath.Join(source, name))
		require.NoError(t, err)
		changed := change(string(text))
		require.NotEqual(t, string(text), changed, "%s is changed", name)
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
		replaced[filepath.Join(source, name)] = file
	}
	edit("main.go", func(s string) string { return strings.Replace(s, `"`+base+`"`, `"`+next+`"`, 1) })
	edit("manifest.json", func(s string) string {
		return strings.Replace(s, `"version": "`+base+`"`, `"version": "`+next+`"`, 1)
	})
	edit("internal/slurm/layout/templates/slurm.conf.tmpl", func(s string) string {
		return strings.Replace(s, "CredType=", patch+"\nCredType=", 1)
	})
	for _, name := range []string{"conformance.json", "tenancy.json"} {
		edit(name, func(s string) string { return relabelled(t, s, next) })
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	program = filepath.Join(dir, controller)
	command := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-overlay", file, "-o", program, source)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program, next
}

func relabelled(t *testing.T, text, build string) string {
	t.Helper()
	var report conformance.Report
	require.NoError(t, json.Unmarshal([]byte(text), &report))
	report.Digested.Adapter.Build = build
	digest, err := report.Digested.Digest()
	require.NoError(t, err)
	report.Digest = digest
	out, err := json.MarshalIndent(report, "", "  ")
	require.NoError(t, err)
	return string(out)
}
