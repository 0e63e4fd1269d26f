package sandbox_test

import (
	"crypto/rand"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

func TestMembersOfDifferentRangesShareTheOwnersOfAVolume(t *testing.T) {
	t.Parallel()
	eachStorage(t, func(t *testing.T, s *shelf, v volume.Volume) {
		one, two := s.with(memberID, v), s.with(otherID, v)
		maps := "cut -c1-40 /proc/self/uid_map"
		require.NotEqual(t, says(t, one, maps), says(t, two, maps), "the members have ranges of their own")
		require.Equal(t, "0 755\n", says(t, one, "stat -c '%u %a' /home/data"))
		says(t, one, "mkdir -m 700 /home/data/ada; chown 1004:1004 /home/data/ada")
		as(t, one, "1004", "echo hello > /home/data/ada/f")
		require.Equal(t, "1004:1004\n", says(t, two, "stat -c %u:%g /home/data/ada/f"))
		require.Equal(t, "hello\n", as(t, two, "1004", "cat /home/data/ada/f; echo too >> /home/data/ada/f"))
		require.Equal(t, "hello\ntoo\n", as(t, one, "1004", "cat /home/data/ada/f"))
		require.Contains(t, as(t, two, "1005", "cat /home/data/ada/f || true"), "Permission denied")
		require.Equal(t, "root\n", says(t, one, "stat -c %U /home"), "the folder of the mount point is the member's")
		if v.Storage == "disk" {
			require.Equal(t, 1, devices(t, s.local, v.ID))
		}

		// Its files outlast the members, and do not count as a member's residue.
		residue, err := s.Residue(memberID)
		require.NoError(t, err)
		require.NotContains(t, strings.Join(residue.Names, "\n"), "ada")
		s.down(memberID)
		require.Equal(t, "hello\ntoo\n", as(t, two, "1004", "cat /home/data/ada/f"))
		s.down(otherID)
		nowhere(t, s.local, v.ID)
		require.Equal(t, "hello\ntoo\n", as(t, s.with(memberID, v), "1004", "cat /home/data/ada/f"))
	})
}

func TestAVolumeGivesNoPrivilegeAndNoDevice(t *testing.T) {
	t.Parallel()
	eachStorage(t, func(t *testing.T, s *shelf, v volume.Volume) {
		client := s.with(memberID, v)
		says(t, client, "cp $(command -v id) /home/data/id; chown 0:0 /home/data/id; chmod 4755 /home/data/id")
		require.Equal(t, "1004\n", as(t, client, "1004", "/home/data/id -u"), "the bit gives nothing")
		if v.Storage == "files" {
			node := filepath.Join(s.shared, v.ID, "null")
			require.NoError(t, unix.Mknod(node, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
			require.NoError(t, os.Chmod(node, 0o666)) // #nosec G302 -- a bait
			require.Contains(t, says(t, client, "cat /home/data/null 2>&1 || true"), "Permission denied")
		}
		for _, flags := range []string{"remount,bind,suid", "remount,bind,dev"} {
			require.Contains(t, says(t, client, "mount -o "+flags+" /home/data 2>&1 || true"), "ermission denied")
		}
		require.Contains(t, says(t, client, "umount /home/data 2>&1 || true"), "must be superuser")
	})
}

func TestAReadOnlyVolumeTakesNothing(t *testing.T) {
	t.Parallel()
	eachStorage(t, func(t *testing.T, s *shelf, v volume.Volume) {
		writer := s.with(otherID, v)
		says(t, writer, "echo data > /home/data/f")
		v.ReadOnly = true
		reader := s.with(memberID, v)
		require.Equal(t, "data\n", says(t, reader, "cat /home/data/f"))
		require.Contains(t, says(t, reader, "echo x 2>&1 > /home/data/f || true; touch /home/data/g 2>&1 || true"),
			"Read-only file system")
		says(t, writer, "echo more >> /home/data/f")
		require.Equal(t, "data\nmore\n", says(t, reader, "cat /home/data/f"))
	})
}

// The path of an image is in no file of the kernel's that members can read, and their mount tables name their own.
func TestAMemberSeesNoOtherVolume(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "")
	client := s.with(memberID, home("disk", "vol_mine"))
	s.with(otherID, home("disk", "vol_theirs"), volume.Volume{ID: "vol_theirs2", Storage: "files", Path: "/srv/data"})
	seen := says(t, client, "cat /proc/self/mountinfo; df; cat /sys/block/loop*/loop/backing_file; "+
		"find / -xdev -name 'vol_*'")
	require.Contains(t, seen, "vol_mine")
	require.NotContains(t, seen, "theirs")
	require.NotContains(t, seen, s.local)
	require.NotContains(t, seen, s.shared)
}

func TestALocalVolumeIsFullAtItsSize(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "")
	client := s.with(memberID, home("disk", "vol_full"))
	result := runs(t, client, shell("tsk_full", "head -c 64m /dev/zero > /home/data/f"))
	require.NotZero(t, result.ExitCode)
	require.Contains(t, string(result.Stderr), "No space left on device")
	says(t, client, "echo still > /etc/writes")
}

// A member that puts a link where its volume is mounted is not led out of its root, and neither is the agent.
func TestALinkAtTheMountPointLeadsNowhere(t *testing.T) {
	t.Parallel()
	eachStorage(t, func(t *testing.T, s *shelf, v volume.Volume) {
		bait := filepath.Join(t.TempDir(), "bait")
		require.NoError(t, os.MkdirAll(filepath.Join(bait, "sets"), 0o755))
		v.Path = "/data/sets"
		client := s.with(memberID, v)
		require.Equal(t, "root 755\n", says(t, client, "stat -c '%U %a' /data"), "what the agent makes is the member's")
		says(t, client, "set -e; mv /data /data-of-mine; ln -s "+bait+" /data; test -L /data")
		killMember(t, s, memberID)
		refused := func(words string) {
			t.Helper()
			_, err := s.Ensure(t.Context(), s.member(memberID, v))
			require.ErrorContains(t, err, "volume "+v.ID+": "+words)
			require.Equal(t, wire.CodeVolumeUnavailable, wire.AsError(err).Code, "%v", err)
			nowhere(t, s.local, v.ID)
		}
		refused("the folder /data/sets: data: a link, a mount or a file is in its way")
		entries, err := os.ReadDir(filepath.Join(bait, "sets"))
		require.NoError(t, err)
		require.Empty(t, entries)

		upper := filepath.Join(s.dir, "members", memberID, "fs", "upper")
		require.NoError(t, os.Remove(filepath.Join(upper, "data")))
		require.NoError(t, os.Mkdir(filepath.Join(upper, "data"), 0o755))
		require.NoError(t, os.Symlink("/etc", filepath.Join(upper, "data", "sets")))
		refused("the folder /data/sets: sets: a link, a mount or a file is in its way")
		require.NoError(t, os.Remove(filepath.Join(upper, "data", "sets")))
		require.NoError(t, os.WriteFile(filepath.Join(upper, "data", "sets"), nil, 0o600))
		refused("the folder /data/sets: sets: a link, a mount or a file is in its way")
		require.NoError(t, os.Remove(filepath.Join(upper, "data", "sets")))
		says(t, s.with(memberID, v), "touch /data/sets/back")
	})
}

// The agent dies between a member's start and its end. The next one knows who uses what, and the last member's end
// leaves neither device nor mount.
func TestNothingOfAVolumeIsLeftOnTheNodeAfterItsLastMember(t *testing.T) {
	t.Parallel()
	eachStorage(t, func(t *testing.T, s *shelf, v volume.Volume) {
		s.startKilled(s.member(memberID, v))
		s.start()
		says(t, s.with(memberID, v), "echo kept > /home/data/f")
		s.startKilled(s.member(otherID, v))
		s.start()
		for _, id := range []string{memberID, otherID} {
			require.Equal(t, []string{v.ID}, roster.Read(filepath.Join(s.dir, "members", id)).Volumes)
		}
		killMember(t, s, otherID)
		says(t, s.with(otherID, v), "grep -q kept /home/data/f")
		s.down(memberID)
		if v.Storage == "disk" {
			require.Equal(t, 1, devices(t, s.local, v.ID), "the other member has it")
		}
		s.start()
		s.down(otherID)
		nowhere(t, s.local, v.ID)
		require.Equal(t, "kept\n", says(t, s.with(memberID, v), "cat /home/data/f"))
	})
}

func TestATeardownDeletesNothingThatIsStillMounted(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "")
	v := home("files", "vol_mounted")
	says(t, s.with(memberID, v), "echo precious > /home/data/f")
	// What should never be: a volume that is mounted on the node, below the member's folder.
	at := filepath.Join(s.dir, "members", memberID, "fs", "upper", "home", "data")
	require.NoError(t, unix.Mount(filepath.Join(s.shared, v.ID), at, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	residue, err := s.Residue(memberID)
	require.NoError(t, err)
	require.Contains(t, strings.Join(residue.Mounts, "\n"), at)
	s.down(memberID)
	kept, err := os.ReadFile(filepath.Join(s.shared, v.ID, "f"))
	require.NoError(t, err)
	require.Equal(t, "precious\n", string(kept))
}

func TestVolumesThatCannotBeHadAreRefusedBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "")
	for words, v := range map[string]volume.Volume{
		"has no storage with that name": home("tape", "vol_a"),
		"it is not an id":               home("disk", "vol_../../x"),
		"is reserved for the node":      {ID: "vol_a", Storage: "disk", Path: "/proc", SizeBytes: 32 << 20},
		"are less than":                 {ID: "vol_a", Storage: "disk", Path: "/data", SizeBytes: 1},
	} {
		_, err := s.Ensure(t.Context(), s.member(memberID, v))
		require.Equal(t, wire.CodeVolumeUnavailable, wire.AsError(err).Code, "%v", err)
		require.ErrorContains(t, err, words)
		require.NoDirExists(t, filepath.Join(s.dir, "members", memberID))
	}
	for _, dir := range []string{s.shared, s.local} {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, entries)
	}
	plain := setup(t, true)
	_, err := plain.Ensure(t.Context(), s.member(memberID, home("files", "vol_a")))
	require.Equal(t, wire.CodeVolumeUnavailable, wire.AsError(err).Code, "%v", err)
	require.ErrorContains(t, err, "members are plain processes on this node")
	require.NoDirExists(t, filepath.Join(plain.dir, "members", memberID))
}

// runc, and runtimes of which the agent knows nothing but the common calls, keep the mounts too.
func TestEveryRuntimeKeepsTheVolumes(t *testing.T) {
	t.Parallel()
	program, calls := standIn(t, "gvisor-standin")
	disk := t.TempDir()
	store := func(t *testing.T) *volume.Store {
		t.Helper()
		storages, err := volume.Parse([]string{"disk=local:" + disk})
		require.NoError(t, err)
		return volume.Open(t.Context(), storages, slog.New(slog.DiscardHandler))
	}
	keeps := func(t *testing.T, m *sandbox.Manager, class string) {
		t.Helper()
		v := home("disk", "vol_"+strings.ToLower(rand.Text()))
		client, err := m.Ensure(t.Context(), sandbox.Member{ID: memberID, InstanceID: instanceID,
			Walls: sandbox.Walls{Class: class, Volumes: []volume.Volume{v}}})
		require.NoError(t, err)
		says(t, client, "echo there > /home/data/f; grep -q /home/data /proc/self/mountinfo")
		left, err := m.Teardown(t.Context(), memberID)
		require.NoError(t, err)
		require.True(t, left.Empty(), "%+v", left)
		nowhere(t, disk, v.ID)
	}
	t.Run("of a class", func(t *testing.T) {
		keeps(t, manage(t, sandbox.Options{ClassRuntimes: map[string]string{sandbox.ClassSandbox: program},
			Volumes: store(t)}), sandbox.ClassSandbox)
		require.Equal(t, 2, callsOf(t, calls, "create"), "the try and the member")
	})
	t.Run("runc", func(t *testing.T) {
		if _, err := exec.LookPath("runc"); err != nil {
			t.Skip("runc is not installed")
		}
		keeps(t, manage(t, sandbox.Options{Runtime: "runc", Volumes: store(t)}), "")
	})
}
