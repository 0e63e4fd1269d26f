package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/stack/storage"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// tokenOf logs a person in and returns the session's token, for the command line.
func tokenOf(t *testing.T, ctx context.Context, person string) string {
	t.Helper()
	_, code, err := shared.LoginLink(ctx, person)
	require.NoError(t, err)
	anonymous, err := client.New(shared.URL, client.Options{})
	require.NoError(t, err)
	session, err := anonymous.Login(ctx, code)
	require.NoError(t, err)
	return session.Token
}

// makeVolume makes a volume of the shared file system by the command line. It is deleted when the test ends.
func makeVolume(t *testing.T, ctx context.Context, name string) string {
	t.Helper()
	id := strings.TrimSpace(appctl(t, ctx, "volumes", "create", name, "--class", storage.Shared, "--size", "1", "-q"))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		appctl(t, ctx, "volumes", "delete", id, "--reason", "end-to-end test")
	})
	return id
}

func volumeOf(t *testing.T, ctx context.Context, id string) (found gql.Volume) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(appctl(t, ctx, "volumes", "show", id, "-o", "json")), &found))
	return found
}

// folderOf is where the installation's shared file system has a volume's files.
func folderOf(volume string) string {
	return filepath.Join(filepath.Dir(shared.LogDir()), "storage", storage.Shared, volume)
}

// TestFilesOutlastTheirMembers follows a file on a volume: a member writes it, one on another node reads it with the
// same owner, it is there for a second instance, and is gone, with proof, when the volume is deleted.
func TestFilesOutlastTheirMembers(t *testing.T) {
	needsRoot(t)
	ctx, c := bounded(t), automation(t)
	volume, admin := makeVolume(t, ctx, "files"), tokenOf(t, ctx, shared.Demo.AdminID)
	allocations := []string{rentNode(t, ctx, c), rentNode(t, ctx, c)}
	launched := func(name string) (instance string) {
		return strings.TrimSpace(appctl(t, ctx, "launch", "slurm", "--name", name,
			"--allocation", strings.Join(allocations, ","), "--component", "worker=2",
			"--component", "controller=1", "--volume", "home=files", "--wait", "--quiet"))
	}
	says := func(member, script string) string {
		said, complaint, code := appctlAs(t, ctx, admin, "exec", member, "--reason", "end-to-end test", "--",
			"sh", "-c", script)
		require.Zero(t, code, "%s: %s%s", member, said, complaint)
		return said
	}

	first := launched("slurm-files")
	writer, reader := "slurm-files/worker/0", "slurm-files/worker/1"
	require.NotEqual(t, nodeNameOf(t, ctx, c, first, 0), nodeNameOf(t, ctx, c, first, 1))
	require.Contains(t, says(writer, "grep ' /home ' /proc/self/mountinfo"), " rw,nosuid,nodev,relatime,idmapped ")
	says(writer, "echo kept > /home/note && chown 1004:1004 /home/note && chmod 600 /home/note")
	require.Equal(t, "kept\n1004 1004 600\n", says(reader, "cat /home/note && stat -c '%u %g %a' /home/note"))
	info, err := os.Stat(filepath.Join(folderOf(volume), "note"))
	require.NoError(t, err)
	require.EqualValues(t, 1004, info.Sys().(*syscall.Stat_t).Uid, "owners on the volume are the members' own")

	require.Eventually(t, func() bool {
		found := volumeOf(t, ctx, volume)
		return found.MeasuredAt != nil && found.UsedBytes != nil && *found.UsedBytes > 0
	}, time.Minute, 200*time.Millisecond, "it is not measured")
	_, complaint, code := appctlAs(t, ctx, shared.Demo.ServiceAccountKey, "volumes", "delete", "files",
		"--reason", "too early")
	require.Equal(t, 5, code, complaint)
	require.Contains(t, complaint, "instances use the volume: slurm-files (home)")
	require.Equal(t, gql.VolumeStatusReady, volumeOf(t, ctx, volume).Status)
	decommission(t, ctx, c, first)

	second := launched("slurm-files-again")
	require.Equal(t, "kept\n1004 1004 600\n",
		says("slurm-files-again/worker/0", "cat /home/note && stat -c '%u %g %a' /home/note"))
	decommission(t, ctx, c, second)

	appctl(t, ctx, "volumes", "delete", "files", "--reason", "end-to-end test")
	var found gql.Volume
	require.Eventually(t, func() bool {
		found = volumeOf(t, ctx, volume)
		return found.Status == gql.VolumeStatusDeleted
	}, 30*time.Second, 100*time.Millisecond, "no node has proved that it is gone")
	require.NotNil(t, found.DeletedAt)
	require.NoDirExists(t, folderOf(volume))
}

// nodeNameOf is the node of a worker.
func nodeNameOf(t *testing.T, ctx context.Context, c *client.Client, instance string, index int) string {
	t.Helper()
	for _, member := range membersOf(t, ctx, c, instance) {
		if member.ComponentKey == "worker" && member.Index == index {
			return nodeOf(t, member).Name()
		}
	}
	t.Fatalf("%s has no worker %d", instance, index)
	return ""
}
