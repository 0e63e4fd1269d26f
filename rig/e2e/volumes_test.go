package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/stack/storage"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
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
	return makeVolumeOf(t, ctx, storage.Shared, name)
}

// makeVolumeOf makes a volume of a class, as makeVolume does.
func makeVolumeOf(t *testing.T, ctx context.Context, class, name string) string {
	t.Helper()
	id := strings.TrimSpace(appctl(t, ctx, "volumes", "create", name, "--class", class, "--size", "1", "-q"))
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
// same owner, it is there for a second instance, and is deleted, with proof, with the volume.
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

	content, owner := filesIn(t, ctx, admin, volume)

	first := launched("slurm-files")
	writer, reader := "slurm-files/worker/0", "slurm-files/worker/1"
	require.NotEqual(t, nodeNameOf(t, ctx, c, first, 0), nodeNameOf(t, ctx, c, first, 1))
	require.Contains(t, says(writer, "grep ' /home ' /proc/self/mountinfo"), " rw,nosuid,nodev,relatime,idmapped ")
	says(writer, "echo kept > /home/note && chown 1004:1004 /home/note && chmod 600 /home/note")
	require.Equal(t, "kept\n1004 1004 600\n", says(reader, "cat /home/note && stat -c '%u %g %a' /home/note"))
	sum := sha256.Sum256(content)
	require.Equal(t, fmt.Sprintf("%x %s 644\n", sum, owner),
		says(reader, "echo $(sha256sum < /home/data/set/large | cut -d' ' -f1) $(stat -c '%u %a' "+
			"/home/data/set/large)"),
		"a member has what was brought in, as its owner's")
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
	filesOut(t, ctx, admin, volume, content)

	deletesVolume(t, ctx, volume)
	require.NoDirExists(t, folderOf(volume))
}

// deletesVolume deletes a volume, and waits for a node's proof that nothing of it is left.
func deletesVolume(t *testing.T, ctx context.Context, volume string) {
	t.Helper()
	appctl(t, ctx, "volumes", "delete", volume, "--reason", "end-to-end test")
	var found gql.Volume
	require.Eventually(t, func() bool {
		found = volumeOf(t, ctx, volume)
		return found.Status == gql.VolumeStatusDeleted
	}, 30*time.Second, 100*time.Millisecond, "no node has proved that it is gone")
	require.NotNil(t, found.DeletedAt)
}

// TestTheConsoleBringsFilesInAndOut does so in a real Chromium, with a volume that no member has had, after it has
// created, grown and deleted one.
func TestTheConsoleBringsFilesInAndOut(t *testing.T) {
	needsRoot(t)
	ctx := bounded(t)
	volume := makeVolume(t, ctx, "browsed")
	_, code, err := shared.LoginLink(ctx, shared.Demo.AdminID)
	require.NoError(t, err)
	events := browses(t, ctx, "files", "e2e/files.mjs", "--base", shared.URL, "--login-code", code,
		"--volume", "browsed")
	require.Equal(t, []string{"lived", "brought", "taken", "removed", "done"}, events)
	left, err := os.ReadDir(folderOf(volume))
	require.NoError(t, err)
	require.Len(t, left, 1, "the folder for uploads alone")
	waiting, err := os.ReadDir(filepath.Join(folderOf(volume), volumefiles.UploadsFolder))
	require.NoError(t, err)
	require.Empty(t, waiting)
}

// filesIn brings a folder with a large file into a volume that no member has had, and kills the program on the way. It
// returns the file, and the id of its owner on the volume.
func filesIn(t *testing.T, ctx context.Context, admin, volume string) (content []byte, owner string) {
	t.Helper()
	content = make([]byte, 64<<20)
	_, err := rand.Read(content)
	require.NoError(t, err)
	source := filepath.Join(t.TempDir(), "set")
	require.NoError(t, os.MkdirAll(filepath.Join(source, "inner"), 0o700))
	large := filepath.Join(source, "large")
	require.NoError(t, os.WriteFile(large, content, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(source, "inner", "small"), []byte("small"), 0o600))
	waiting := filepath.Join(folderOf(volume), volumefiles.UploadsFolder, "*")
	killed(t, ctx, admin, waiting, "volumes", "cp", large, "files:large")
	part := inodeOf(t, waiting)
	said, complaint, code := appctlAs(t, ctx, admin, "volumes", "cp", large, "files:large")
	require.Zero(t, code, "%s%s", said, complaint)
	require.Equal(t, part, inodeOf(t, filepath.Join(folderOf(volume), "large")), "it goes on with what was there")
	_, complaint, code = appctlAs(t, ctx, admin, "volumes", "cp", source, "files:data")
	require.Equal(t, 2, code, complaint)
	require.Contains(t, complaint, "copy it with -r")
	_, complaint, code = appctlAs(t, ctx, admin, "volumes", "cp", "-r", source, "files:data/set")
	require.Zero(t, code, complaint)
	listed, complaint, code := appctlAs(t, ctx, admin, "volumes", "ls", "files:data/set", "-q")
	require.Equal(t, "inner\nlarge\n", listed, "%d %s", code, complaint)
	got, err := os.ReadFile(filepath.Join(folderOf(volume), "data", "set", "large"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got))
	info, err := os.Stat(filepath.Join(folderOf(volume), "data", "set", "large"))
	require.NoError(t, err)
	uid := info.Sys().(*syscall.Stat_t).Uid
	require.GreaterOrEqual(t, uid, uint32(1000), "it is a person's")
	return content, fmt.Sprint(uid)
}

// filesOut takes them out again, and deletes them.
func filesOut(t *testing.T, ctx context.Context, admin, volume string, content []byte) {
	t.Helper()
	target := t.TempDir()
	waiting, large := filepath.Join(target, ".large.*.part"), filepath.Join(target, "large")
	killed(t, ctx, admin, waiting, "volumes", "cp", "files:large", large)
	require.NoFileExists(t, large)
	part := inodeOf(t, waiting)
	_, complaint, code := appctlAs(t, ctx, admin, "volumes", "cp", "files:large", large)
	require.Zero(t, code, complaint)
	require.Equal(t, part, inodeOf(t, large), "it goes on with what was there")
	got, err := os.ReadFile(large)
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got))
	_, complaint, code = appctlAs(t, ctx, admin, "volumes", "cp", "-r", "files:data", target)
	require.Zero(t, code, complaint)
	got, err = os.ReadFile(filepath.Join(target, "data", "set", "inner", "small"))
	require.NoError(t, err)
	require.Equal(t, "small", string(got))
	_, complaint, code = appctlAs(t, ctx, admin, "volumes", "rm", "files:data")
	require.Equal(t, 5, code, complaint)
	_, complaint, code = appctlAs(t, ctx, admin, "volumes", "rm", "-r", "files:data")
	require.Zero(t, code, complaint)
	require.NoDirExists(t, filepath.Join(folderOf(volume), "data"))
	_, complaint, code = appctlAs(t, ctx, admin, "volumes", "cp", "files:data/set/large", target)
	require.Equal(t, 3, code, complaint)
}

// killed runs the command line and kills it when what a pattern names has at least a MiB.
func killed(t *testing.T, ctx context.Context, token, pattern string, args ...string) {
	t.Helper()
	command := exec.CommandContext(ctx, "../../bin/appctl", args...)
	command.Env = append(os.Environ(), "APPCTL_SERVER="+shared.URL, "APPCTL_TOKEN="+token,
		"APPCTL_PROJECT="+shared.Demo.ProjectID, "XDG_CONFIG_HOME="+t.TempDir())
	require.NoError(t, command.Start())
	require.Eventually(t, func() bool {
		found, _ := filepath.Glob(pattern)
		for _, path := range found {
			if info, err := os.Stat(path); err == nil && info.Size() >= 1<<20 {
				return true
			}
		}
		return false
	}, time.Minute, time.Millisecond, "%s never was there", pattern)
	require.NoError(t, command.Process.Kill())
	require.Error(t, command.Wait(), "it had ended before")
}

// inodeOf is the inode of the one file that a pattern names.
func inodeOf(t *testing.T, pattern string) uint64 {
	t.Helper()
	found, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.Len(t, found, 1, pattern)
	info, err := os.Stat(found[0])
	require.NoError(t, err)
	return info.Sys().(*syscall.Stat_t).Ino
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
