package sandbox_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/loop"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
)

const otherID = "mem_000000000000000000000other"

// shelf is a node with storages of both kinds.
type shelf struct {
	*sandbox.Manager
	t                  *testing.T
	dir, shared, local string
	runtime            string
}

func newShelf(t *testing.T, runtime string) *shelf {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("volumes need root")
	}
	s := &shelf{t: t, dir: t.TempDir(), shared: t.TempDir(), local: t.TempDir(), runtime: runtime}
	s.start()
	require.Equal(t, memberinit.ModeContainer, s.Isolation().Mode, s.Isolation().Reason)
	t.Cleanup(func() {
		for _, id := range []string{memberID, otherID} {
			s.down(id)
		}
	})
	return s
}

// agentPart is the test program as an agent that starts a member and waits for its end.
const agentPart = "agent-under-test"

// agentMain starts a member with a volume on a shelf.
func agentMain(raw string) int {
	var given struct {
		Dir, Shared, Local string
		Member             sandbox.Member
	}
	if err := json.Unmarshal([]byte(raw), &given); err != nil {
		return 2
	}
	s := shelf{dir: given.Dir, shared: given.Shared, local: given.Local}
	manager, err := s.manage(context.Background())
	if err == nil {
		_, err = manager.Ensure(context.Background(), given.Member)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("started")
	select {}
}

// startKilled has an agent start a member, and kills it.
func (s *shelf) startKilled(member sandbox.Member) {
	s.t.Helper()
	raw, err := json.Marshal(map[string]any{"Dir": s.dir, "Shared": s.shared, "Local": s.local, "Member": member})
	require.NoError(s.t, err)
	agent := exec.Command("/proc/self/exe", agentPart, string(raw))
	agent.Stderr = os.Stderr
	out, err := agent.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, agent.Start())
	_, err = out.Read(make([]byte, 1))
	require.NoError(s.t, err, "it starts the member")
	require.NoError(s.t, agent.Process.Kill())
	_ = agent.Wait()
}

// start is a manager of an agent that has just started on the state of an earlier one.
func (s *shelf) start() {
	s.t.Helper()
	var err error
	s.Manager, err = s.manage(s.t.Context())
	require.NoError(s.t, err)
}

func (s *shelf) manage(ctx context.Context) (*sandbox.Manager, error) {
	storages, err := volume.Parse([]string{"files=shared:" + s.shared, "disk=local:" + s.local})
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	return sandbox.NewManager(ctx, sandbox.Options{StateDir: s.dir, Root: testRoot, Runtime: s.runtime,
		Volumes: volume.Open(ctx, storages, log), Log: log})
}

func (s *shelf) down(id string) {
	s.t.Helper()
	left, err := s.Teardown(context.Background(), id)
	require.NoError(s.t, err)
	require.True(s.t, left.Empty(), "teardown left %+v", left)
}

func (s *shelf) member(id string, volumes ...volume.Volume) sandbox.Member {
	return sandbox.Member{ID: id, InstanceID: instanceID, Walls: sandbox.Walls{Volumes: volumes}}
}

func (s *shelf) with(id string, volumes ...volume.Volume) *sandbox.Client {
	s.t.Helper()
	client, err := s.Ensure(s.t.Context(), s.member(id, volumes...))
	require.NoError(s.t, err)
	return client
}

// says runs a script as root of the member and returns what it prints.
func says(t *testing.T, client *sandbox.Client, script string) string {
	t.Helper()
	run := shell("tsk_"+strings.ToLower(rand.Text()), script)
	result := runs(t, client, run)
	require.Zero(t, result.ExitCode, "%s: %s%s", script, result.Stdout, result.Stderr)
	return string(result.Stdout)
}

// as runs a script as a user of the member by number.
func as(t *testing.T, client *sandbox.Client, user, script string) string {
	t.Helper()
	return says(t, client, "setpriv --reuid "+user+" --regid "+user+" --clear-groups sh -c '"+script+"' 2>&1")
}

// devices counts the loop devices of a volume.
func devices(t *testing.T, dir, id string) int {
	t.Helper()
	image, err := os.Open(filepath.Join(dir, id+".img"))
	if errors.Is(err, os.ErrNotExist) {
		return 0 // it is of the other storage
	}
	require.NoError(t, err)
	defer image.Close()
	all, err := loop.All(image)
	require.NoError(t, err)
	for _, one := range all {
		require.NoError(t, one.Close())
	}
	return len(all)
}

// nowhere wants no device of a volume, and no mount of it in any namespace.
func nowhere(t *testing.T, dir, id string) {
	t.Helper()
	eventually(t, func() bool { return devices(t, dir, id) == 0 }, "%s has no loop device", id)
	pids, err := procfs.PIDs()
	require.NoError(t, err)
	for _, pid := range append(pids, 0) {
		require.NotContains(t, strings.Join(procfs.MountInfo(pid), "\n"), id, "process %d has it mounted", pid)
	}
}

func home(storage, id string) volume.Volume {
	return volume.Volume{ID: id, Storage: storage, Path: "/home/data", SizeBytes: 32 << 20}
}

func eachStorage(t *testing.T, test func(t *testing.T, s *shelf, v volume.Volume)) {
	t.Helper()
	for _, storage := range []string{"files", "disk"} {
		t.Run(storage, func(t *testing.T) {
			t.Parallel()
			test(t, newShelf(t, ""), home(storage, "vol_"+strings.ToLower(rand.Text())))
		})
	}
}

// killMember ends a member's process 1, as a crash would.
func killMember(t *testing.T, s *shelf, id string) {
	t.Helper()
	known := roster.Read(filepath.Join(s.dir, "members", id))
	require.NotNil(t, known)
	require.NoError(t, unix.Kill(known.InitPID, unix.SIGKILL))
	require.True(t, procfs.WaitGone(known.InitPID, known.InitStart, patience))
}
