package sandbox

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/results"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const errorFile = "init.err"

var idForm = regexp.MustCompile(`^[a-z]{1,8}_[0-9a-z]{1,64}$`)

// Manager owns the members directory of one agent.
type Manager struct {
	state, dir string
	options    Options
	isolation  atomic.Pointer[Isolation]
	oci        *containers // nil without containers
	cgroups    *oci.Cgroups
	log        *slog.Logger
	locks      [64]sync.Mutex // by hash of the member: bounded, and rarely shared

	gone roster.Gone

	killsMu sync.Mutex
	kills   map[memberStart]killCount // by starts that had any
}

// Options say where members live and how they are started.
type Options struct {
	// StateDir is the agent's state directory; members are below it.
	StateDir string
	// ForceProcess starts plain processes even where containers are possible.
	ForceProcess bool
	// SingleTenant offers plain processes as containers too: the operator vouches that the node has one tenant.
	SingleTenant bool
	// Runtime is the OCI runtime, a name or a path; empty is crun, or else runc where only that is installed.
	Runtime string
	// ClassRuntimes are the programs that serve further classes, by class, such as ClassSandbox.
	ClassRuntimes map[string]string
	// Root is a curated root that the operator built and keeps; empty for versions of the agent's own.
	Root string
	// IDFirst is where the members' ids begin, and IDRanges bounds how many members can have some; 0 for the usual.
	IDFirst, IDRanges uint32
	// CgroupParent is the group below which those of members are; empty for one by the state directory.
	CgroupParent string
	// Hostname is the members' until they have another; empty is the node's. Address is the node's own.
	Hostname, Address string
	// Network gives members networks of their own; nil leaves them the node's, for NoNetwork.
	Network   Network
	NoNetwork string
	// Volumes are those of the node; nil for none.
	Volumes *volume.Store
	// LogBytes bounds the lines that are kept of each process, in bytes; 0 is logfile.DefaultBound.
	LogBytes int64
	// Ending is called when everything of a member has ended and its files are about to be deleted; it may be nil.
	Ending func(ctx context.Context, memberID string)
	Log    *slog.Logger
}

// Network gives members network namespaces with an address. Its methods may be called by many goroutines.
type Network interface {
	// Attach fills the new network namespace of a process, which is a member's. The member's init may be starting; no
	// command of the member runs yet.
	Attach(ctx context.Context, memberID string, pid int) error
	// Detach removes what is of the member's network on the node.
	Detach(memberID string) error
	// Left names what is of the member's network on the node.
	Left(memberID string) ([]string, error)
	// Dial connects from inside the network of a member's process 1.
	Dial(ctx context.Context, pid int, network, address string) (net.Conn, error)
	// Await returns the member's own address as soon as the platform has given it one.
	Await(ctx context.Context, memberID string) (string, error)
	// Address returns the member's own address, and "" when the platform has given it none.
	Address(memberID string) string
}

// NewManager makes the members directory and finds out, by trying, how members can be isolated here.
func NewManager(ctx context.Context, options Options) (*Manager, error) {
	state, err := filepath.Abs(options.StateDir)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	m := &Manager{state: state, dir: filepath.Join(state, roster.Dir), options: options, log: options.Log}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create members directory: %w", err)
	}
	found, err := m.detect(ctx)
	if err != nil {
		return nil, err
	}
	m.isolation.Store(&found)
	if m.oci != nil {
		m.cgroups = m.oci.cgroups
		m.sweep(ctx)
	}
	return m, nil
}

// Isolation returns how members are isolated.
func (m *Manager) Isolation() Isolation { return *m.isolation.Load() }

// Cgroups are those of members; nil where they have none.
func (m *Manager) Cgroups() *oci.Cgroups { return m.cgroups }

// memberDir gives the member's directory; an id that could lead elsewhere is refused.
func (m *Manager) memberDir(memberID string) (string, error) {
	if !idForm.MatchString(memberID) {
		return "", wire.Errorf(wire.CodeSpecInvalid, "memberId: %q is not an id", memberID)
	}
	return filepath.Join(m.dir, memberID), nil
}

// lock serialises creation and removal of one member.
func (m *Manager) lock(memberID string) (unlock func()) {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(memberID))
	held := &m.locks[hash.Sum32()%uint32(len(m.locks))]
	held.Lock()
	return held.Unlock
}

// Ensure returns a client of the member's init, and creates a missing sandbox. A sandbox whose init died is started
// again on its files with a new epoch, unless the member is taken as found. It refuses a sandbox of another instance,
// and walls that the node lacks, before anything is started.
func (m *Manager) Ensure(ctx context.Context, member Member) (*Client, error) {
	dir, err := m.memberDir(member.ID)
	if err != nil {
		return nil, err
	}
	defer m.lock(member.ID)()
	known, err := roster.Load(dir)
	if err != nil {
		return nil, err
	}
	if known != nil && known.InstanceID != member.InstanceID {
		return nil, wire.Errorf(wire.CodeSandboxForeign, "the member's sandbox belongs to instance %s",
			known.InstanceID)
	}
	if known != nil && known.Alive() {
		return connect(ctx, dir, *known)
	}
	if member.AsFound && (known != nil || m.gone.Has(member.ID)) {
		return nil, errLost()
	}
	m.gone.Forget(member.ID)
	return m.create(ctx, dir, member)
}

func errLost() error {
	return wire.Errorf(wire.CodeSandboxLost, "the member's init has ended, and all that ran in the member with it")
}

// Lookup returns a client only if the member's init lives; else an error with CodeSandboxLost, or nil and a nil error
// when the member has no sandbox at all.
func (m *Manager) Lookup(ctx context.Context, memberID string) (*Client, error) {
	dir, err := m.memberDir(memberID)
	if err != nil {
		return nil, err
	}
	known, err := roster.Load(dir)
	if err != nil || known == nil {
		return nil, err
	}
	if !known.Alive() {
		return nil, errLost()
	}
	return connect(ctx, dir, *known)
}

// StoredResult reads the result of a run that a dead init left; false without one.
func (m *Manager) StoredResult(memberID, key string) (wire.RunResult, bool) {
	dir, err := m.memberDir(memberID)
	if err != nil {
		return wire.RunResult{}, false
	}
	result, err := results.Read(filepath.Join(dir, memberinit.DirState), key)
	return result, err == nil
}

// LostProcess returns what is known of a supervised process of a member without a living init.
func (m *Manager) LostProcess(memberID, name string) (wire.Process, error) {
	dir, err := m.memberDir(memberID)
	if err != nil {
		return wire.Process{}, err
	}
	return memberinit.LostProcess(dir, name)
}
