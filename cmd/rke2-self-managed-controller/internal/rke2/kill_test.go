package rke2

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/standin"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
	platform "github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// controllerName is what the process of these tests is registered as.
const controllerName = "rke2-self-managed"

// processLab is a lab whose controller is the real program, with its real journal, which can be killed.
type processLab struct {
	*lab

	program, address, dir, log string

	mu      sync.Mutex
	running *exec.Cmd
	// tasks counts the node tasks since the last reset; at the one of number killAt the program is killed.
	tasks, killAt int
	killed        chan struct{}
}

func newProcessLab(t *testing.T) *processLab {
	t.Helper()
	p := &processLab{lab: bareLab(t), dir: t.TempDir(), log: filepath.Join(t.TempDir(), "log")}
	p.program = filepath.Join(t.TempDir(), "controller")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", p.program, "../..").CombinedOutput()
	require.NoError(t, err, "%s", out)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.address = listener.Addr().String()
	require.NoError(t, listener.Close())
	p.name, p.base = controllerName, "http://"+p.address
	p.hook = p.task
	p.start()
	t.Cleanup(func() { p.kill() })
	return p
}

// task kills the program before the node begins task number killAt: the task is done, and no one gets its result.
func (p *processLab) task(sandbox.Task) {
	p.mu.Lock()
	p.tasks++
	at := p.killAt > 0 && p.tasks == p.killAt
	p.mu.Unlock()
	if at {
		p.kill()
		close(p.killed)
	}
}

// arm has the program killed at the task of this number from now on; 0 for never.
func (p *processLab) arm(at int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tasks, p.killAt, p.killed = 0, at, make(chan struct{})
}

func (p *processLab) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != nil {
		_ = p.running.Process.Kill()
		_ = p.running.Wait()
		p.running = nil
	}
}

// start starts the program and waits until it answers.
func (p *processLab) start() {
	p.t.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(p.t, err)
	defer log.Close()
	started := exec.Command(p.program, "--platform-url", p.stand.URL, "--name", controllerName, "--listen", p.address,
		"--state-dir", p.dir)
	started.Stdout, started.Stderr = log, log
	require.NoError(p.t, started.Start())
	p.mu.Lock()
	p.running = started
	p.mu.Unlock()
	require.Eventually(p.t, func() bool {
		conn, err := net.Dial("tcp", p.address)
		return err == nil && conn.Close() == nil
	}, 20*time.Second, 5*time.Millisecond)
}

// await polls until an operation has ended; while the program is down, nothing answers.
func (p *processLab) await(id string) (status adapter.Status) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		target := adapter.OperationPath(id)
		token, err := p.stand.Sign(controllerName, http.MethodGet, target, nil)
		if err != nil {
			return false
		}
		request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.base+target, bytes.NewReader(nil))
		if err != nil {
			return false
		}
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return json.NewDecoder(answer.Body).Decode(&status) == nil && status.State.Terminal()
	}, time.Minute, 10*time.Millisecond)
	require.Equal(p.t, adapter.StateSucceeded, status.State, "%+v", status.Error)
	return status
}

// beginAndDie dispatches an operation, waits until the program was killed, and starts it again. A program that dies
// before it has answered leaves its caller without a word, as it would the platform, which then sends the same again.
func (p *processLab) beginAndDie(d adapter.Dispatch) {
	p.t.Helper()
	code, answer, unanswered := p.try(http.MethodPut, adapter.OperationPath(d.OperationID), d)
	if unanswered == nil {
		require.Equal(p.t, http.StatusAccepted, code, "%s", answer)
	}
	select {
	case <-p.killed:
		p.start()
	case <-time.After(time.Minute):
		p.t.Fatalf("%s never came to the step that it is killed at: %v", d.OperationID, unanswered)
	}
	if unanswered != nil {
		p.begin(d)
	}
}

// removed removes the server that leads, has the program killed at a step, and looks at what is left.
func (p *processLab) removed(round, killAt int) (steps int) {
	p.t.Helper()
	first := p.members[0]
	leader := p.look(machine.Name(first)).Leader
	at := slices.IndexFunc(p.members, func(m adapter.Member) bool { return machine.Name(m) == leader })
	gone := p.members[at]
	id := fmt.Sprintf("op_remove%d", round)
	p.arm(killAt)
	removal := p.dispatch(id, adapter.MemberRemove, time.Minute, gone.ID)
	if killAt == 0 {
		p.begin(removal)
	} else {
		p.beginAndDie(removal)
	}
	p.await(id)
	steps = p.tasks
	p.members = slices.Delete(slices.Clone(p.members), at, at+1)
	wanted := []string{}
	for _, member := range p.members {
		wanted = append(wanted, machine.Name(member))
	}
	slices.Sort(wanted)
	view := p.look(wanted[0])
	require.Equal(p.t, wanted, view.Voters, "killed at step %d", killAt)
	require.Equal(p.t, wanted, view.Nodes, "killed at step %d", killAt)
	require.Equal(p.t, wanted, view.Passwords, "killed at step %d", killAt)
	require.Contains(p.t, wanted, view.Leader)
	residue, err := p.stand.Residue(gone.ID)
	require.NoError(p.t, err)
	require.True(p.t, residue.Empty(), "killed at step %d: %+v", killAt, residue)
	inOrder(p.t, p.stand.Since(0), id, gone.ID)
	return steps
}

// inOrder requires that what a removal does to a cluster came in the one order that loses nothing, and each once. A
// server that is out of etcd before it is empty has no API to be emptied by; a Node that is deleted before its etcd
// has left can come back.
func inOrder(t *testing.T, ledger []platform.Entry, operation, member string) {
	t.Helper()
	order := []string{"cordon.", "lead.", ".leave.stop", ".leave.unvote.", ".leave.forget.node.",
		".leave.forget.secret.", "." + member + ".teardown"}
	next, left := 0, map[string]int{}
	for _, entry := range ledger {
		if !strings.HasPrefix(entry.Key, operation+".") {
			continue
		}
		for i, step := range order {
			if strings.Contains(entry.Key, step) {
				left[step]++
				require.GreaterOrEqual(t, i, next, "%s came after %s", entry.Key, order[max(next-1, 0)])
				next = i
			}
		}
	}
	for _, step := range order {
		if step != "lead." { // one that was killed after it asked finds that another leads
			require.Equal(t, 1, left[step], "%s of %s", step, operation)
		}
	}
}

// TestAControllerThatIsKilledAtAnyStepOfARemovalGoesOn kills the real program with SIGKILL at every node task of a
// server's removal, one after the other, in one cluster that gets the server back each time.
func TestAControllerThatIsKilledAtAnyStepOfARemovalGoesOn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts the program dozens of times")
	}
	p := newProcessLab(t)
	p.grow(machine.Server, 3)
	p.begin(p.dispatch("op_create", adapter.InstanceCreate, time.Minute))
	p.await("op_create")
	for i := range p.members {
		p.members[i].Status = string(adapter.MemberActive)
	}
	steps := p.removed(0, 0)
	t.Logf("a removal asks for %d node tasks", steps)
	require.Greater(t, steps, 10)
	for step := 1; step <= steps; step++ {
		p.arm(0)
		fresh := p.grow(machine.Server, 1)
		add := p.dispatch(fmt.Sprintf("op_add%d", step), adapter.MembersAdd, time.Minute, fresh...)
		add.Change = json.RawMessage(`{"components":[{"key":"server","count":1}]}`)
		p.begin(add)
		p.await(add.OperationID)
		p.members[len(p.members)-1].Status = string(adapter.MemberActive)
		p.removed(step, step)
	}
	said, err := os.ReadFile(p.log)
	require.NoError(t, err)
	for _, password := range p.passwords() {
		require.NotContains(t, string(said), password, "no token is in the log")
	}
}

// passwords are those of the instance, which the program derives from its key.
func (p *processLab) passwords() (list []string) {
	dir := filepath.Join(p.dir, "app")
	require.FileExists(p.t, filepath.Join(dir, "master.key"))
	keys, err := openKeyring(dir)
	require.NoError(p.t, err)
	for _, role := range []string{machine.Server, machine.Agent} {
		password, err := keys.password(role, "ins_1")
		require.NoError(p.t, err)
		list = append(list, password)
	}
	return list
}

// TestAControllerThatIsKilledWhileNothingServesGoesOn kills the program when an upgrade has stopped the only server,
// and when a rollback resets etcd: no API reports what runs then, and it goes on with what it had decided.
func TestAControllerThatIsKilledWhileNothingServesGoesOn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts the program again and again")
	}
	p := newProcessLab(t)
	var at atomic.Pointer[func(sandbox.Task) bool]
	p.hook = func(task sandbox.Task) {
		if chosen := at.Load(); chosen != nil && (*chosen)(task) && at.CompareAndSwap(chosen, nil) {
			p.kill()
			close(p.killed)
		}
	}
	p.grow(machine.Server, 1)
	old, next := standin.Releases[0], standin.Releases[1]
	create := p.dispatch("op_create", adapter.InstanceCreate, time.Minute)
	create.Instance.Config = ofRelease(old)
	p.begin(create)
	p.await("op_create")
	p.members[0].Status = string(adapter.MemberActive)
	for _, one := range []struct {
		change adapter.Dispatch
		at     func(sandbox.Task) bool
		to     string
	}{
		{p.moved("op_upgrade", adapter.InstanceUpgrade, old, next),
			func(task sandbox.Task) bool { return task.Kind == adapter.TaskStopProcess }, next},
		{p.moved("op_rollback", adapter.InstanceRollback, next, old),
			func(task sandbox.Task) bool { return bytes.Contains(task.Spec, []byte("--cluster-reset")) }, old},
	} {
		p.arm(0)
		at.Store(&one.at)
		p.beginAndDie(one.change)
		p.await(one.change.OperationID)
		require.Equal(t, []string{one.to}, p.runs("mem-server0"))
	}
}
