package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/agent"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/rootfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	member   = "mem_0000000000000000000agent0"
	instance = "ins_0000000000000000000agent0"
	patience = 60 * time.Second
	argAgent = "agent-under-test"
)

// testRoots is where versions of the curated root are kept from one run of tests to the next, those of rig/stack too,
// which deletes old ones.
const testRoots = "/var/cache/app-platform/member-roots"

var testRoot string

// TestMain lets the test binary be a member's init and the agent itself, so that both are real
// processes that can be killed.
func TestMain(m *testing.M) {
	memberinit.Dispatch(os.Args)
	if len(os.Args) == 3 && os.Args[1] == argAgent {
		os.Exit(agentMain(os.Args[2]))
	}
	if os.Geteuid() == 0 {
		version, err := rootfs.Store{Dir: testRoots, Link: true}.Current()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		testRoot = version.Path // locked until this process ends
	}
	os.Exit(m.Run())
}

func agentMain(raw string) int {
	var options agent.Options
	if err := json.Unmarshal([]byte(raw), &options); err != nil {
		return 2
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	a, err := agent.New(context.Background(), options, log)
	if err == nil {
		err = a.Run(context.Background())
	}
	log.Error("agent ended", "error", err)
	return 1
}

// rig is a platform stand-in and an agent process on a state directory.
type rig struct {
	t *testing.T
	*standin
	dir     string
	options agent.Options
	process *exec.Cmd
	log     *lockedBuffer
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func newRig(t *testing.T, mode string) *rig {
	t.Helper()
	return newRigIn(t, mode, t.TempDir())
}

// newRigIn has the agent's state in a folder.
func newRigIn(t *testing.T, mode, dir string) *rig {
	t.Helper()
	r := &rig{t: t, standin: newStandin(t), dir: dir, log: &lockedBuffer{}}
	r.options = agent.Options{
		PlatformURL: r.url(), StateDir: r.dir, EnrolToken: enrolToken, Name: "node-1", Address: "127.0.0.1",
		GPUs: 2, GPUModel: "Simulated", SimulatedGPUs: true, ForceProcess: mode == memberinit.ModeProcess,
		MemberRoot: testRoot, Version: "test",
	}
	t.Cleanup(r.clean)
	r.run()
	r.eventually(func() bool { return r.count(&r.opened) > 0 }, "the agent subscribes")
	return r
}

// bothModes runs the test with containers, where root allows it, and with plain processes.
func bothModes(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	for _, mode := range []string{memberinit.ModeContainer, memberinit.ModeProcess} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			if mode == memberinit.ModeContainer && os.Geteuid() != 0 {
				t.Skip("containers need root")
			}
			test(t, newRig(t, mode))
		})
	}
}

// run starts the agent as a process of its own.
func (r *rig) run() {
	raw, err := json.Marshal(r.options)
	require.NoError(r.t, err)
	r.process = exec.Command("/proc/self/exe", argAgent, string(raw))
	r.process.Stderr = r.log
	r.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(r.t, r.process.Start())
}

// kill ends the agent's whole process group by SIGKILL.
func (r *rig) kill() {
	require.NoError(r.t, unix.Kill(-r.process.Process.Pid, unix.SIGKILL))
	_ = r.process.Wait()
}

func (r *rig) clean() {
	_ = unix.Kill(-r.process.Process.Pid, unix.SIGKILL)
	_ = r.process.Wait()
	require.NotContains(r.t, r.log.text(), "DATA RACE") // as tests with -race want it
	complaints, _ := os.ReadFile(filepath.Join(r.dir, "members", member, "init.err"))
	require.NotContains(r.t, string(complaints), "DATA RACE")
	manager := r.manager()
	left, err := manager.Teardown(context.Background(), member)
	require.NoError(r.t, err)
	require.True(r.t, left.Empty(), "teardown left %+v", left)
	if r.t.Failed() {
		r.t.Log(r.log.text())
	}
}

// manager looks at the members as the agent does.
func (r *rig) manager() *sandbox.Manager {
	manager, err := sandbox.NewManager(context.Background(), sandbox.Options{
		StateDir: r.dir, ForceProcess: r.options.ForceProcess, Root: testRoot, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(r.t, err)
	return manager
}

func (r *rig) eventually(condition func() bool, what string) {
	r.t.Helper()
	require.Eventually(r.t, condition, patience, 10*time.Millisecond, what)
}

func newTask(id, kind string, spec any) gql.NodeWork {
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(err)
	}
	return gql.NodeWork{Id: id, Fence: 1, Kind: gql.NodeTaskKind(kind), Spec: raw, TimeoutSeconds: 30, MemberId: member,
		InstanceId: instance, OperationId: new("op_1")}
}

func shell(id, script string) gql.NodeWork {
	return newTask(id, "RUN", map[string]any{"command": []string{"/bin/sh", "-c", script}})
}

// do gives a task and waits for its end.
func (r *rig) do(task gql.NodeWork) standTask {
	r.t.Helper()
	r.give(task)
	return r.ended(task.Id)
}

func (r *rig) ended(id string) standTask {
	r.t.Helper()
	var found standTask
	r.eventually(func() bool { found = r.seen(id); return found.ended() }, "task "+id+" ends")
	return found
}

type runResult struct {
	ExitCode       int
	Stdout, Stderr string
	Truncated      bool
}

func resultOf[T any](t *testing.T, task standTask) T {
	t.Helper()
	var result T
	require.NoError(t, json.Unmarshal(task.result, &result), "%s: %s", task.message, task.result)
	return result
}

// root replaces / in the scripts of tasks, with namespaces and without.
const root = "$GPUAAS_MEMBER_ROOT"
