package adaptertest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/nacl/box"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// Option changes how members run.
type Option func(*runner)

// Namespaces gives every member mount, PID and IPC namespaces of its own. It needs root.
func Namespaces() Option { return func(r *runner) { r.namespaces = true } }

// Volume gives every member with namespaces a folder of this machine at a path, as a node gives a volume.
func Volume(folder, path string, readOnly bool) Option {
	mode := "rw"
	if readOnly {
		mode = "ro"
	}
	return func(r *runner) { r.volumes = append(r.volumes, folder, path, mode) }
}

// maxOutput is how much of each output stream of a command is kept, as on a real node.
const maxOutput = 64 << 10

// runner carries out node tasks.
type runner struct {
	t               testing.TB
	dir             string
	namespaces      bool
	volumes         []string // of each the folder, the path and the mode
	public, private *[32]byte
	artifacts       *sandbox.Artifacts

	mu      sync.Mutex
	members map[string]*member
	lost    map[string]chan struct{} // members that are away, closed when they are back
}

// newRunner returns a runner whose members end with the test.
func newRunner(t testing.TB, public, private *[32]byte) *runner {
	r := &runner{
		t: t, dir: t.TempDir(), public: public, private: private, artifacts: &sandbox.Artifacts{},
		members: map[string]*member{}, lost: map[string]chan struct{}{},
	}
	t.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, m := range r.members {
			m.destroy()
		}
	})
	return r
}

// member returns the sandbox of a member, which it creates if needed.
func (r *runner) member(id string) (*member, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := r.members[id]; ok {
		return m, nil
	}
	m, err := newMember(id, filepath.Join(r.dir, id), r.namespaces, r.volumes)
	if err == nil {
		r.members[id] = m
	}
	return m, err
}

func (r *runner) away(members []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range members {
		if r.lost[id] == nil {
			r.lost[id] = make(chan struct{})
		}
	}
}

func (r *runner) back(members []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range members {
		if lost := r.lost[id]; lost != nil {
			close(lost)
			delete(r.lost, id)
		}
	}
}

// reach waits until the member is not away.
func (r *runner) reach(ctx context.Context, id string) error {
	r.mu.Lock()
	lost := r.lost[id]
	r.mu.Unlock()
	if lost == nil {
		return nil
	}
	select {
	case <-lost:
		return nil
	case <-ctx.Done():
		return errors.New("no agent took it in time")
	}
}

// run carries out a task; canceled ends when the adapter cancels it.
func (r *runner) run(canceled context.Context, task sandbox.Task) sandbox.Outcome {
	ctx, cancel := context.WithTimeout(canceled, task.Timeout)
	defer cancel()
	out := sandbox.Outcome{State: adapter.TaskSucceeded}
	err := r.reach(ctx, task.MemberID)
	if err == nil {
		out.Result, err = r.do(ctx, task)
	}
	if out.Result == nil {
		out.Result = map[string]any{}
	}
	if err != nil {
		out.State, out.Message = adapter.TaskFailed, err.Error()
	}
	switch {
	case canceled.Err() != nil:
		out.State = adapter.TaskCanceled
	case ctx.Err() != nil:
		out.State = adapter.TaskTimedOut
	}
	if code, ok := out.Result["exitCode"].(int); ok {
		out.ExitCode = &code
	}
	out.Stdout, _ = out.Result["stdout"].(string)
	out.Stderr, _ = out.Result["stderr"].(string)
	return out
}

// do carries out a task. Only tasks that need a sandbox create one.
func (r *runner) do(ctx context.Context, task sandbox.Task) (map[string]any, error) {
	switch task.Kind {
	case adapter.TaskTeardown:
		return map[string]any{"residue": adapter.Residue{}}, r.teardown(task.MemberID)
	case adapter.TaskResidue:
		return map[string]any{"residue": r.residue(task.MemberID)}, nil
	}
	m, err := r.member(task.MemberID)
	if err != nil {
		return nil, err
	}
	switch task.Kind {
	case adapter.TaskRun:
		return withSpec(task, func(s nodetask.Run) (map[string]any, error) { return m.command(ctx, s) })
	case adapter.TaskWriteFile:
		return withSpec(task, func(s adapter.WriteFile) (map[string]any, error) { return nil, r.write(ctx, m, s) })
	case adapter.TaskStartProcess:
		return withSpec(task, func(s nodetask.StartProcess) (map[string]any, error) { return nil, m.start(s) })
	case adapter.TaskStopProcess:
		return withSpec(task, func(s adapter.StopProcess) (map[string]any, error) { return nil, m.stop(ctx, s.Name) })
	case adapter.TaskInspectProcess:
		return withSpec(task, func(s adapter.InspectProcess) (map[string]any, error) {
			return map[string]any{"process": m.inspect(s.Name)}, nil
		})
	case adapter.TaskProbe:
		return withSpec(task, func(s nodetask.Probe) (map[string]any, error) { return probe(ctx, m, s) })
	case adapter.TaskFetchArtifact:
		return withSpec(task, func(s adapter.FetchArtifact) (map[string]any, error) { return r.fetch(ctx, m, s) })
	case adapter.TaskCloudInit:
		return withSpec(task, func(s adapter.CloudInit) (map[string]any, error) { return r.boot(ctx, m, s) })
	}
	return nil, fmt.Errorf("node task kind %q is not known", task.Kind)
}

// withSpec decodes strictly: a field the node does not know is a mistake of the adapter.
func withSpec[T any](task sandbox.Task, do func(T) (map[string]any, error)) (map[string]any, error) {
	var spec T
	decoder := json.NewDecoder(bytes.NewReader(task.Spec))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&spec); err != nil {
		return nil, fmt.Errorf("spec of %s: %w", task.Kind, err)
	}
	return do(spec)
}

// writeScript writes its input to the path $1 with the mode $2 and, where they are given, the owner $3 and the
// directories above ($4). No one else can read the file while it has no mode yet.
const writeScript = `path="$GPUAAS_MEMBER_ROOT$1"; test -z "$4" || mkdir -p "$(dirname "$path")"; umask 077; ` +
	`cat > "$path" && chmod "$2" "$path" && { test -z "$3" || chown "$3" "$path"; }`

// write writes a file in the member's file system by a shell of the member.
func (r *runner) write(ctx context.Context, m *member, spec adapter.WriteFile) error {
	content := []byte(spec.Content)
	var err error
	switch {
	case spec.ContentBase64 != "":
		content, err = base64.StdEncoding.DecodeString(spec.ContentBase64)
	case spec.Sealed != "":
		content, err = r.open(spec.Sealed)
	}
	if err != nil {
		return err
	}
	dirs := ""
	if spec.MakeDirs {
		dirs = "yes"
	}
	mode := spec.Mode
	if mode == "" {
		mode = "0644"
	}
	_, err = m.command(
		ctx,
		nodetask.Run{
			Command: []string{"sh", "-c", writeScript, "write", spec.Path, mode, spec.Owner, dirs},
			Stdin:   string(content),
		},
	)
	return err
}

func (r *runner) open(sealed string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil {
		return nil, fmt.Errorf("sealed value: %w", err)
	}
	opened, ok := box.OpenAnonymous(nil, raw, r.public, r.private)
	var value adapter.SealedValue
	if !ok || json.Unmarshal(opened, &value) != nil {
		return nil, errors.New("sealed value is not for this node")
	}
	return value.Value, nil
}

// teardown deletes a member's sandbox and fails when anything of it is left.
func (r *runner) teardown(id string) error {
	r.mu.Lock()
	m, ok := r.members[id]
	delete(r.members, id)
	r.mu.Unlock()
	if !ok {
		return nil
	}
	m.destroy()
	left, err := os.ReadDir(m.dir)
	if err == nil && len(left) > 0 {
		return fmt.Errorf("%d entries of the member are left", len(left))
	}
	return nil
}

// residue returns what is left of a member: its sandbox, if it has one, and the processes in it.
func (r *runner) residue(id string) adapter.Residue {
	r.mu.Lock()
	m, ok := r.members[id]
	r.mu.Unlock()
	if !ok {
		return adapter.Residue{}
	}
	left := adapter.Residue{Sandbox: true}
	for _, pid := range m.pids() {
		left.Processes = append(left.Processes, adapter.ResidueProcess{PID: pid})
	}
	return left
}

// probe tries until one attempt succeeds, as often as the spec allows.
func probe(ctx context.Context, m *member, spec nodetask.Probe) (map[string]any, error) {
	var err error
	attempts := 0
	for attempts < spec.Tries() && ctx.Err() == nil {
		attempts++
		if err = probeOnce(ctx, m, spec); err == nil {
			return map[string]any{"ok": true, "attempts": attempts, "detail": ""}, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(spec.Interval()):
		}
	}
	return map[string]any{
		"ok":       false,
		"attempts": attempts,
		"detail":   err.Error(),
	}, fmt.Errorf("the probe failed: %w", err)
}

// probeOnce makes one attempt of a probe within the spec's timeout.
func probeOnce(ctx context.Context, m *member, spec nodetask.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, spec.Timeout())
	defer cancel()
	switch {
	case spec.Exec != nil:
		_, err := m.command(ctx, nodetask.Run{Command: spec.Exec.Command})
		return err
	case spec.TCP != nil:
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(spec.TCP.Host,
			strconv.Itoa(spec.TCP.Port)))
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	return errors.New("exactly one of exec and tcp is needed here")
}

// Require skips the test unless it runs as root and the programs are installed; the skip names the
// reason.
func Require(t testing.TB, programs ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("members with namespaces need root")
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
}

// Address returns an address of this machine that is not loopback; without one the test is skipped.
func Address(t testing.TB) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			return network.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}
