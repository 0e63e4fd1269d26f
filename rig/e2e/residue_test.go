package e2e_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/lab"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// daemons, memberMounts and memberDirs print what a cluster has on a node, one a line, seen from outside of the
// members' namespaces. memberMounts are those of every process, and their control groups.
const (
	daemons      = `for f in /proc/[0-9]*/comm; do cat $f 2>/dev/null; done | grep -E '^(slurm|munged)' || true`
	memberMounts = `cat /proc/[0-9]*/mounts /proc/[0-9]*/cgroup 2>/dev/null | grep -o 'mem_[0-9a-z]*' | sort -u || true`
	memberDirs   = `find ` + lab.Written +
		` /run /tmp /dev/shm /var/lib/app-platform-node -xdev -name 'mem_*' -type d 2>/dev/null || true`
)

// onNodes runs a script on every node and answers all that it printed.
func onNodes(t *testing.T, ctx context.Context, script string) (printed string) {
	t.Helper()
	for _, node := range shared.Nodes {
		out, err := node.Exec(ctx, "/bin/sh", "-c", script)
		require.NoError(t, err)
		printed += out
	}
	return printed
}

// notebooksOf returns the members that run a web-notebook on a node: its control groups name its member. Other tests
// run some too.
func notebooksOf(t *testing.T, ctx context.Context, members []string) (running []string) {
	t.Helper()
	groups := onNodes(t, ctx, `for p in /proc/[0-9]*; do grep -qs '^web-notebook' $p/comm && cat $p/cgroup; done; true`)
	for _, member := range members {
		if strings.Contains(groups, member) {
			running = append(running, member)
		}
	}
	return running
}

// requireTraces requires that a running cluster is seen by the very scripts that later look for what
// it has left.
func requireTraces(t *testing.T, ctx context.Context, members []string) {
	t.Helper()
	found := onNodes(t, ctx, daemons)
	for _, daemon := range []string{"slurmctld", "slurmd", "munged"} {
		require.Contains(t, found, daemon)
	}
	mounts, dirs := onNodes(t, ctx, memberMounts), onNodes(t, ctx, memberDirs)
	for _, member := range members {
		require.Contains(t, mounts, member)
		require.Contains(t, dirs, member)
	}
}

// requireGone requires that these members have no process, mount or folder on any node. Other tests may run beside it.
func requireGone(t *testing.T, ctx context.Context, members []string) {
	t.Helper()
	left := onNodes(t, ctx, memberMounts) + onNodes(t, ctx, memberDirs)
	for _, member := range members {
		require.NotContains(t, left, member)
	}
}

// requireCleanNodes requires that no member has a daemon, a mount or a folder on any node.
func requireCleanNodes(t *testing.T, ctx context.Context) {
	t.Helper()
	require.Empty(t, onNodes(t, ctx, daemons))
	require.Empty(t, onNodes(t, ctx, memberMounts))
	require.Empty(t, onNodes(t, ctx, memberDirs))
}

// membersOf lists an instance's members, those that have left among them, at most 50.
func membersOf(t *testing.T, ctx context.Context, c *client.Client, instance string) (members []gql.Member) {
	t.Helper()
	page, err := gql.ListMembers(ctx, c, instance, 50, "")
	require.NoError(t, err)
	for _, edge := range page.Instance.Members.Edges {
		members = append(members, edge.Node)
	}
	return members
}

func memberIDs(t *testing.T, ctx context.Context, c *client.Client, instance string) (members []string) {
	t.Helper()
	for _, member := range membersOf(t, ctx, c, instance) {
		members = append(members, member.Id)
	}
	return members
}

// requireProof requires that a decommission's evidence holds, for each member, the report of its
// node's agent, and that the report is empty without the platform having cleaned up itself.
func requireProof(t *testing.T, ended *gql.OperationDetail, members []string) {
	t.Helper()
	var evidence struct {
		Rounds  int `json:"rounds"`
		Residue []struct {
			Member    string     `json:"member"`
			Node      string     `json:"node"`
			Task      string     `json:"task"`
			At        *time.Time `json:"at"`
			Teardowns []string   `json:"teardowns"`
			Report    struct {
				Sandbox   *bool             `json:"sandbox"`
				Processes []json.RawMessage `json:"processes"`
				Mounts    []string          `json:"mounts"`
				Files     *int              `json:"files"`
			} `json:"report"`
		} `json:"residue"`
	}
	require.NoError(t, json.Unmarshal(ended.Evidence, &evidence), string(ended.Evidence))
	var proved []string
	for _, proof := range evidence.Residue {
		proved = append(proved, proof.Member)
		require.NotEmpty(t, proof.Node)
		require.NotEmpty(t, proof.Task)
		require.NotNil(t, proof.At)
		require.Empty(t, proof.Teardowns, "the adapter left something that the platform had to remove")
		require.Equal(t, new(bool), proof.Report.Sandbox)
		require.Equal(t, new(int), proof.Report.Files)
		require.Empty(t, proof.Report.Processes)
		require.Empty(t, proof.Report.Mounts)
	}
	require.NotEmpty(t, members)
	require.ElementsMatch(t, members, proved)
}
