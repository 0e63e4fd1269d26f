package install_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/supervise"
	"github.com/gpuaas/app-platform/rig/install"
	"github.com/gpuaas/app-platform/rig/lab"
)

const (
	waitFor = 20 * time.Second
	tick    = 20 * time.Millisecond
)

func TestMain(m *testing.M) {
	lab.MaybeRunInit()
	os.Exit(m.Run())
}

func up(t *testing.T, cfg install.Config) *install.Rig {
	t.Helper()
	cfg.Throwaway = true
	r, err := install.Up(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func exec1(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
}

func running(pid int) bool {
	_, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	return err == nil
}

func TestDatabaseAndRegistryKeepTheirContentsAcrossRuns(t *testing.T) {
	t.Parallel()
	cfg := install.Config{Dir: filepath.Join(t.TempDir(), "data"), Plain: true}
	first := up(t, cfg)
	exec1(t, first.AdminDSN(), "create table kept ()")
	image, err := random.Image(64, 1)
	require.NoError(t, err)
	ref, err := name.ParseReference(first.RegistryAddr() + "/apps/one:v1")
	require.NoError(t, err)
	require.NoError(t, remote.Write(ref, image))
	require.NoError(t, first.Close())
	require.NoError(t, first.Close())

	second := up(t, cfg)
	require.Equal(t, first.RegistryAddr(), second.RegistryAddr())
	exec1(t, second.AdminDSN(), "select from kept")
	_, err = remote.Head(ref)
	require.NoError(t, err)
}

func TestSecondRigOnOneFolderIsRefused(t *testing.T) {
	t.Parallel()
	cfg := install.Config{Dir: filepath.Join(t.TempDir(), "data"), Plain: true}
	up(t, cfg)
	_, err := install.Up(t.Context(), cfg)
	require.ErrorIs(t, err, install.ErrInUse)
	_, err = install.Up(t.Context(), install.Config{})
	require.ErrorContains(t, err, "Dir")
}

func TestProgramThatEndsByItselfFailsTheRigWithItsLastWords(t *testing.T) {
	t.Parallel()
	r := up(t, install.Config{Dir: filepath.Join(t.TempDir(), "data"), Plain: true})
	_, err := r.Program(supervise.Spec{Name: "steady", Command: []string{"sleep", "1000"}})
	require.NoError(t, err)
	_, err = r.Program(supervise.Spec{Name: "broken", Command: []string{"sh", "-c", "echo no such flag; exit 2"}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	defer cancel()
	err = r.Wait(ctx)
	require.ErrorContains(t, err, "broken ended: exit status 2")
	require.ErrorContains(t, err, "no such flag")
}

func TestCloseStopsEveryProgramWithoutCallingItAFailure(t *testing.T) {
	t.Parallel()
	r := up(t, install.Config{Dir: filepath.Join(t.TempDir(), "data"), Plain: true})
	child, err := r.Program(supervise.Spec{Name: "steady", Command: []string{"sleep", "1000"}})
	require.NoError(t, err)
	node, err := r.AddNode(t.Context(), "local")
	require.NoError(t, err)
	agent, err := node.Program(supervise.Spec{Name: "agent", Command: []string{"sleep", "1000"},
		Restart: supervise.Always})
	require.NoError(t, err)
	require.DirExists(t, node.State)
	require.NoError(t, r.Close())
	require.False(t, running(child.PID()))
	require.False(t, running(agent.PID()))
	require.False(t, running(node.PID()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.Wait(ctx))
}

func TestNodeSeesTheRegistryAndItsStateAndNothingElseOfTheInstallation(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("nodes with namespaces need root")
	}
	dir := filepath.Join(t.TempDir(), "data")
	r := up(t, install.Config{Dir: dir})
	require.NotNil(t, r.Network())
	node, err := r.AddNode(t.Context(), "node-1")
	require.NoError(t, err)
	shell := func(script string) string {
		out, err := node.Exec(t.Context(), "bash", "-c", script)
		require.NoError(t, err)
		return strings.TrimSpace(out)
	}
	host, port, _ := strings.Cut(r.RegistryAddr(), ":")
	get := fmt.Sprintf(`exec 3<>/dev/tcp/%s/%s; printf 'GET /v2/ HTTP/1.0\r\n\r\n' >&3; head -1 <&3`, host, port)
	require.Contains(t, shell(get), "200 OK")
	require.Equal(t, "kept", shell("echo kept > "+node.State+"/note; cat "+node.State+"/note"))
	require.FileExists(t, filepath.Join(dir, "nodes", "node-1", "note"))
	require.Empty(t, shell("ls -A "+dir+" 2>/dev/null || true"))
}

// TestKilledRigLeavesNoProcess re-runs this test program as a rig that kills itself.
func TestKilledRigLeavesNoProcess(t *testing.T) {
	t.Parallel()
	const env = "RIG_TEST_DIR"
	if dir := os.Getenv(env); dir != "" {
		r := up(t, install.Config{Dir: filepath.Join(dir, "data")})
		child, err := r.Program(supervise.Spec{Name: "steady", Command: []string{"sleep", "1000"}})
		require.NoError(t, err)
		node, err := r.AddNode(t.Context(), "a")
		require.NoError(t, err)
		_, err = node.Program(supervise.Spec{Name: "agent", Command: []string{"sleep", "1000"}})
		require.NoError(t, err)
		pids := fmt.Sprint(child.PID(), node.PID())
		require.NoError(t, os.WriteFile(filepath.Join(dir, "pids"), []byte(pids), 0o600))
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		select {}
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledRigLeavesNoProcess$")
	cmd.Env = append(os.Environ(), env+"="+dir)
	require.ErrorContains(t, cmd.Run(), "signal: killed")
	data, err := os.ReadFile(filepath.Join(dir, "pids"))
	require.NoError(t, err)
	var child, node int
	_, err = fmt.Sscan(string(data), &child, &node)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "data", "postgres", "postmaster.pid"))
		return !running(child) && !running(node) && os.IsNotExist(err)
	}, waitFor, tick)
	up(t, install.Config{Dir: filepath.Join(dir, "data")}) // the folder is usable again
}

func TestAwaitHTTPWaitsForTheFirst200(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	require.NoError(t, install.AwaitHTTP(t.Context(), server.Client(), server.URL))
	require.Equal(t, int32(3), asked.Load())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, install.AwaitHTTP(ctx, server.Client(), "http://127.0.0.1:1"), context.Canceled)
}
