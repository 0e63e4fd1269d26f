package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// TestPeopleLogInToASlurmCluster logs in by the command line and this machine's ssh to a login within a member's walls,
// and works there with Slurm's own commands.
func TestPeopleLogInToASlurmCluster(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	ctx, c := bounded(t), automation(t)
	started, err := gql.LaunchInstance(ctx, c, gql.LaunchInstanceInput{
		ProjectId: shared.Demo.ProjectID, AppSlug: "slurm", Name: "slurm-login",
		AllocationIds: []string{rent(t, ctx, c)},
		Components: []gql.ComponentInput{{Key: "controller", Count: 1}, {Key: "worker", Count: 1},
			{Key: "login", Count: 1}},
		DeadlineSeconds: 180, Reason: "end-to-end test", IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	instance := started.LaunchInstance.Instance.Id
	succeeds(t, ctx, c, started.LaunchInstance.Operation.Id)

	says := func(command string, flags ...string) string {
		words := append(append([]string{"ssh", "slurm-login"}, flags...), "--", command)
		said, complaint, code := appctlAs(t, ctx, shared.Demo.ServiceAccountKey, words...)
		require.Zero(t, code, complaint)
		return strings.ReplaceAll(said, "\r", "")
	}
	who := strings.TrimSpace(says("id -un"))
	require.NotEqual(t, "root", who)
	require.Equal(t, "/home/"+who+" 700\n", says(`echo $PWD $(stat -c %a .)`))
	require.Contains(t, says("sinfo -h -o '%P %D'"), "main* 1")
	require.Equal(t, who+" w0\n", says(`srun sh -c 'echo $(id -un) $SLURMD_NODENAME'`))
	require.Contains(t, says("srun --pty tty", "--ssh-option", "RequestTTY=force"), "/dev/pts/")
	job := strings.TrimSpace(says(`printf '#!/bin/sh\nid -un\n' | sbatch --parsable`))
	awaitJob(t, ctx, c, instance, job)
	var printed struct{ Text string }
	act(t, ctx, c, instance, "job.output", map[string]any{"jobId": job}, &printed)
	require.Equal(t, who+"\n", printed.Text)
	require.Eventually(t, func() bool {
		return strings.HasPrefix(says("sacct -X -n -P -o User,Account,State -j "+job),
			who+"|"+shared.Demo.ProjectID+"|COMPLETED")
	}, time.Minute, time.Second)
	_, complaint, code := appctlAs(t, ctx, shared.Demo.ServiceAccountKey, "ssh", "slurm-login", "--user", "root",
		"--", "id")
	require.NotZero(t, code)
	require.Contains(t, complaint, "Permission denied (publickey)")

	printedConfig, complaint, code := appctlAs(t, ctx, shared.Demo.ServiceAccountKey, "ssh-config", "slurm-login",
		"--reason", "copy")
	require.Zero(t, code, complaint)
	require.Contains(t, printedConfig, "User "+who+"\n")
	members := memberIDs(t, ctx, c, instance)
	requireProof(t, decommission(t, ctx, c, instance), members)
	requireGone(t, ctx, members)
}
