// Package sandbox carries out node tasks on this machine as a node without root does: a directory
// and plain processes for each member; or, as root, with namespaces of the member's own. It is the node of the
// conformance suite, and reports what is left of everything that it did.
package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"golang.org/x/crypto/nacl/box"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// maxOutput is how much of each output stream of a command is kept, in bytes.
	maxOutput = 64 << 10
	// maxMembers bounds the members that have a sandbox at a time.
	maxMembers = 4096
	// maxProcesses bounds the supervised processes of one member.
	maxProcesses = 64
	// stopTime bounds the killing of a member's last processes.
	stopTime = 10 * time.Second
)

// Task is one node task.
type Task struct {
	// InstanceID and MemberID name the sandbox.
	InstanceID, MemberID string
	// Kind and Spec are what to do.
	Kind adapter.TaskKind
	Spec json.RawMessage
	// Timeout is how long it may take.
	Timeout time.Duration
}

// Outcome is how a task ended.
type Outcome struct {
	// State is SUCCEEDED, FAILED, TIMED_OUT or CANCELED.
	State adapter.TaskState
	// Message explains the state to a person.
	Message string
	// ExitCode, Stdout and Stderr are a command's.
	ExitCode       *int
	Stdout, Stderr string
	// Result is the result object of the kind.
	Result map[string]any
}

// Nodes are the sandboxes of all members, all on this machine. Safe for concurrent use.
type Nodes struct {
	// Artifacts are what members fetch; nil for none. It is set before the first task.
	Artifacts *Artifacts
	// Namespaces gives each member mount, PID and IPC namespaces over an overlay of this machine's root. It is set
	// before the first task, and only where Enclosable finds no obstacle.
	Namespaces bool

	dir             string
	public, private *[32]byte

	mu      sync.Mutex
	members map[string]*member
}

// idPattern keeps an id from naming another directory.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

// New returns sandboxes below dir, which must exist and be used by nothing else.
func New(dir string) (*Nodes, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("sandboxes: %w", err)
	}
	public, private, err := box.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("sandboxes: %w", err)
	}
	return &Nodes{dir: dir, public: public, private: private, members: map[string]*member{}}, nil
}

// SealingKey returns the node's public key for sealed values, base64.
func (n *Nodes) SealingKey() string { return base64.StdEncoding.EncodeToString(n.public[:]) }

// Do carries out a task and returns how it ended. Ending ctx cancels it.
func (n *Nodes) Do(ctx context.Context, task Task) Outcome {
	timed, cancel := context.WithTimeout(ctx, task.Timeout)
	defer cancel()
	out, err := n.do(timed, task)
	switch {
	case err == nil:
		out.State = adapter.TaskSucceeded
		return out
	case ctx.Err() != nil:
		out.State = adapter.TaskCanceled
	case timed.Err() != nil:
		out.State = adapter.TaskTimedOut
	default:
		out.State = adapter.TaskFailed
	}
	out.Message = err.Error()
	var failed failure
	if errors.As(err, &failed) && out.Result == nil {
		out.Result = map[string]any{"code": failed.code}
	}
	return out
}

// failure is a task that could not be done, with its catalogued code.
type failure struct {
	code string
	error
}

func failf(code, format string, args ...any) error {
	return failure{code, fmt.Errorf(format, args...)}
}

// do carries out a task. Only tasks that need a sandbox create one.
func (n *Nodes) do(ctx context.Context, task Task) (Outcome, error) {
	switch task.Kind {
	case adapter.TaskTeardown:
		return n.teardown(task.MemberID)
	case adapter.TaskResidue:
		residue, err := n.Residue(task.MemberID)
		return Outcome{Result: map[string]any{"residue": residue}}, err
	}
	m, err := n.member(task)
	if err != nil {
		return Outcome{}, err
	}
	return m.do(ctx, task, n)
}

// member returns the sandbox of a task's member, which it creates if needed.
func (n *Nodes) member(task Task) (*member, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m, ok := n.members[task.MemberID]; ok {
		if m.instance != task.InstanceID {
			return nil, failf("SANDBOX_FOREIGN", "the sandbox of %s belongs to another instance", task.MemberID)
		}
		return m, nil
	}
	if !idPattern.MatchString(task.MemberID) || len(n.members) >= maxMembers {
		return nil, failf("SANDBOX_FAILED", "no sandbox can be created for %q", task.MemberID)
	}
	m := &member{
		id: task.MemberID, instance: task.InstanceID, root: filepath.Join(n.dir, task.MemberID),
		before: running(), processes: map[string]*process{},
	}
	if err := m.make(n.Namespaces); err != nil {
		return nil, failf("SANDBOX_FAILED", "create sandbox: %w", err)
	}
	n.members[task.MemberID] = m
	return m, nil
}

// Residue returns what is left of a member: its processes, and the files of its directory.
func (n *Nodes) Residue(memberID string) (adapter.Residue, error) {
	n.mu.Lock()
	m, ok := n.members[memberID]
	n.mu.Unlock()
	if !ok {
		return adapter.Residue{}, nil
	}
	return m.residue()
}

// Wipe deletes a member's sandbox without notice, as if its node had been lost.
func (n *Nodes) Wipe(memberID string) error {
	_, err := n.teardown(memberID)
	return err
}

// teardown deletes a member's sandbox and fails when anything of it is left.
func (n *Nodes) teardown(memberID string) (Outcome, error) {
	n.mu.Lock()
	m, ok := n.members[memberID]
	n.mu.Unlock()
	if !ok {
		return Outcome{Result: map[string]any{"residue": adapter.Residue{}}}, nil
	}
	m.destroy()
	residue, err := m.residue()
	if err == nil && !residue.Empty() {
		err = failf("RESIDUE_LEFT", "%d processes and %d files are left", len(residue.Processes), residue.Files)
	}
	if err == nil {
		n.mu.Lock()
		delete(n.members, memberID)
		n.mu.Unlock()
	}
	return Outcome{Result: map[string]any{"residue": residue}}, err
}

// Close ends every process of every member and deletes their directories.
func (n *Nodes) Close() {
	n.mu.Lock()
	members := n.members
	n.members = map[string]*member{}
	n.mu.Unlock()
	for _, m := range members {
		m.destroy()
	}
}

// open opens a sealed value that is meant for this node and instance.
func (n *Nodes) open(sealed, instance string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil {
		return nil, failf("SEALED_INVALID", "the sealed value is not base64")
	}
	opened, ok := box.OpenAnonymous(nil, raw, n.public, n.private)
	var value adapter.SealedValue
	if !ok || json.Unmarshal(opened, &value) != nil || value.InstanceID != instance {
		return nil, failf("SEALED_INVALID", "the sealed value does not open for this node and instance")
	}
	return value.Value, nil
}
