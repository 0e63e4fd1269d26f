package e2e_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

var before = flag.String("e2e.before", "",
	"Slurm's controller of the release before this one, which the installation begins with: make app-release")

// installed are the apps that the installation begins with.
func installed() []stack.App {
	apps := stack.Apps()
	apps[slurmIn(apps)].Program = *before
	return apps
}

func slurmIn(apps []stack.App) int {
	return slices.IndexFunc(apps, func(app stack.App) bool { return app.Slug == "slurm" })
}

// The app goes from the release before to this one while a cluster of it runs a job and has one that waits: the program
// is replaced, the version published, the cluster upgraded and rolled back, and the program of before serves it again.
// The platform is the same process of the same program from beginning to end.
func TestASlurmClusterGoesToTheNextVersionAndBack(t *testing.T) {
	if !*releases || *before == "" {
		t.Skip("it needs Slurm's controller of the release before: make app-release")
	}
	needsRoot(t)
	ctx, c := bounded(t), automation(t)
	server := processOf(t)
	home, state := makeVolume(t, ctx, "versions-home"), makeVolume(t, ctx, "versions-state")
	started, err := gql.LaunchInstance(ctx, c, gql.LaunchInstanceInput{
		ProjectId: shared.Demo.ProjectID, AppSlug: "slurm", Name: "versions",
		AllocationIds:   []string{rentNode(t, ctx, c)},
		Volumes:         []gql.VolumeUseInput{{Slot: "home", VolumeId: home}, {Slot: "state", VolumeId: state}},
		DeadlineSeconds: 180, Reason: "end-to-end test", IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	v := &versionsUnderTest{clusterUnderTest: clusterUnderTest{t: t, ctx: ctx, c: c,
		instance: started.LaunchInstance.Instance.Id}}
	v.succeeds(started.LaunchInstance.Operation)
	was := v.version()
	v.fill()

	apps := stack.Apps()
	app := apps[slurmIn(apps)]
	require.NoError(t, shared.Release(ctx, app))
	found, err := gql.GetApp(ctx, c, "slurm")
	require.NoError(t, err)
	next := found.App.ActiveManifest.Version
	require.NotEqual(t, was, next, "new launches get this one")
	require.Equal(t, was, v.version(), "what runs goes on as it was")
	v.goesOn("under the next program")

	upgraded, err := gql.UpgradeInstance(ctx, c, gql.UpgradeInstanceInput{InstanceId: v.instance, Version: next,
		DeadlineSeconds: 180, Reason: "the next version", IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	v.succeeds(upgraded.UpgradeInstance.Operation)
	require.Equal(t, next, v.version())
	require.Contains(t, v.written(), "# version "+next)
	v.goesOn("upgraded")
	v.isBackedUp()
	v.goesOn("backed up")

	back, err := gql.RollbackInstance(ctx, c, gql.RollbackInstanceInput{InstanceId: v.instance, DeadlineSeconds: 180,
		Reason: "the next version is not liked", IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	v.succeeds(back.RollbackInstance.Operation)
	require.Equal(t, was, v.version())
	require.Contains(t, v.written(), "# version "+was)
	v.goesOn("rolled back")

	require.NoError(t, shared.Controllers["slurm"].Stop())
	app.Program = *before
	require.NoError(t, shared.StartController(ctx, app))
	v.goesOn("under the program of before")
	v.ends()
	require.Equal(t, server, processOf(t), "the platform was neither released nor started again")
	decommission(t, ctx, c, v.instance)
}

// versionsUnderTest is a cluster with a job that runs, one that waits for it, and those that have ended.
type versionsUnderTest struct {
	clusterUnderTest
	waits string
	ended []string
}

func (v *versionsUnderTest) fill() {
	v.t.Helper()
	v.long = v.submit("#!/bin/sh\necho begun\nuntil test -e go-on; do sleep 0.2; done\necho over\n")
	v.began = v.job(v.long, "RUNNING").StartedAt
	v.waits = v.submit("#!/bin/sh\n#SBATCH --dependency=afterok:" + v.long + "\necho after it\n")
	v.goesOn("launched")
}

// goesOn requires that queue and accounts are what they were, and that another job has the next number and runs.
func (v *versionsUnderTest) goesOn(when string) {
	v.t.Helper()
	v.untouched()
	require.Equal(v.t, "PENDING", v.job(v.waits, "PENDING").State, when)
	id := v.submit("#!/bin/sh\ntrue\n")
	require.NotContains(v.t, append(v.ended, v.long, v.waits), id, when)
	v.job(id, "COMPLETED")
	v.ended = append(v.ended, id)
	require.Equal(v.t, "begun\n", v.output(v.long), when)
	require.Eventually(v.t, func() bool {
		var accounts struct {
			Jobs []struct{ JobID, State string }
		}
		act(v.t, v.ctx, v.c, v.instance, "accounting.jobs", map[string]any{}, &accounts)
		states := map[string]string{}
		for _, job := range accounts.Jobs {
			states[job.JobID] = job.State
		}
		open := func(id string) bool { return states[id] != "COMPLETED" }
		return states[v.long] == "RUNNING" && !slices.ContainsFunc(v.ended, open)
	}, time.Minute, time.Second, "%s: the accounts have every job", when)
}

func (v *versionsUnderTest) output(job string) string {
	v.t.Helper()
	var read struct{ Text string }
	act(v.t, v.ctx, v.c, v.instance, "job.output", map[string]any{"jobId": job}, &read)
	return read.Text
}

// isBackedUp makes a backup, as only this version does, and requires that it is listed.
func (v *versionsUnderTest) isBackedUp() {
	v.t.Helper()
	var made struct{ Backup, Digest, Slot string }
	act(v.t, v.ctx, v.c, v.instance, "state.backup", map[string]any{}, &made)
	require.Equal(v.t, "state", made.Slot)
	var all struct {
		Backups []struct{ Backup, Digest, Slot string }
	}
	act(v.t, v.ctx, v.c, v.instance, "state.backups", map[string]any{}, &all)
	require.Contains(v.t, all.Backups, made)
	var done struct{ Restored string }
	act(v.t, v.ctx, v.c, v.instance, "state.restore", map[string]any{"backup": made.Backup,
		"digest": made.Digest}, &done)
	require.Equal(v.t, made.Backup, done.Restored)
}

// ends lets the jobs end that began, and waited, before the first change.
func (v *versionsUnderTest) ends() {
	v.t.Helper()
	v.job(v.submit("#!/bin/sh\ntouch go-on\n"), "COMPLETED")
	v.job(v.long, "COMPLETED")
	v.job(v.waits, "COMPLETED")
	require.Equal(v.t, "begun\nover\n", v.output(v.long))
	require.Equal(v.t, "after it\n", v.output(v.waits))
}
