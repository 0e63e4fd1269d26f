// Command members starts members and commands in them, as an agent does, and beside them in the sandbox that agents had
// before members were containers. It prints how long each took, as JSON; rig/bench compares the two. It needs root.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/rootfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// insideVariable is set in the process that has a network namespace of its own, so that its rules change no machine's.
const insideVariable = "GPUAAS_BENCH_MEMBERS_INSIDE"

// Times are of one side, in nanoseconds, in the order of the rounds.
type Times struct{ Start, Exec []time.Duration }

// Measured is what is printed: rounds of both sides took turns.
type Measured struct {
	Members, Reference Times
	// Floor is what the runtime alone takes; it is empty where that is not crun.
	Floor []time.Duration
	// Runtime names the members' OCI runtime; Network reports a network of their own, and NoNetwork why they lack one.
	Runtime, NoNetwork string
	Network            bool
}

func main() {
	memberinit.Dispatch(os.Args)
	if len(os.Args) == 3 && os.Args[1] == argBoot {
		err := boot(os.Args[2]) // returns only when it fails
		fmt.Fprintln(os.NewFile(fdStatus, "status"), err)
		os.Exit(1)
	}
	rounds := flag.Int("rounds", 20, "members that each side starts")
	execs := flag.Int("execs", 20, "commands that are run in each member")
	roots := flag.String("roots", "/var/cache/app-platform/member-roots", "folder of the versions of the members' root")
	flag.Parse()
	if err := run(*rounds, *execs, *roots); err != nil {
		fmt.Fprintln(os.Stderr, "members:", err)
		os.Exit(1)
	}
}

func run(rounds, execs int, roots string) error {
	if os.Geteuid() != 0 {
		return errors.New("members are isolated only where the agent is root")
	}
	if os.Getenv(insideVariable) == "" {
		return alone()
	}
	measured, err := measure(context.Background(), rounds, execs, roots)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(measured)
}

// alone runs this program again in a network namespace of its own.
func alone() error {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...) // #nosec G204 -- this program
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	return cmd.Run()
}

// stage is a state directory with an agent's sandboxes, and a plain manager that talks to the reference's inits.
type stage struct {
	dir, root string
	execs     int
	members   *sandbox.Manager
	reference *sandbox.Manager
	measured  Measured
}

func measure(ctx context.Context, rounds, execs int, roots string) (Measured, error) {
	dir, err := os.MkdirTemp("", "members")
	if err != nil {
		return Measured{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s := &stage{dir: dir, execs: execs}
	if err := s.open(ctx, rounds, roots); err != nil {
		return s.measured, err
	}
	for round := range rounds {
		if err := errors.Join(s.member(ctx, round), s.old(ctx, round)); err != nil {
			return s.measured, err
		}
	}
	return s.measured, nil
}

func (s *stage) open(ctx context.Context, rounds int, roots string) error {
	version, err := rootfs.Store{Dir: roots, Link: true}.Current()
	if err != nil {
		return err
	}
	s.root = version.Path
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	options := sandbox.Options{StateDir: filepath.Join(s.dir, "members"), Root: version.Path, Log: log}
	if fabric, err := wires(rounds, log); err == nil {
		options.Network, s.measured.Network = fabric, true
	} else {
		options.NoNetwork, s.measured.NoNetwork = err.Error(), err.Error()
	}
	if s.members, err = sandbox.NewManager(ctx, options); err != nil {
		return err
	}
	isolation := s.members.Isolation()
	if isolation.Mode != memberinit.ModeContainer {
		return fmt.Errorf("no containers here: %s", isolation.Reason)
	}
	s.measured.Runtime = isolation.Runtime + " " + isolation.RuntimeVersion
	s.reference, err = sandbox.NewManager(ctx, sandbox.Options{StateDir: filepath.Join(s.dir, "reference"),
		ForceProcess: true, Log: log})
	return err
}

func memberID(round int) string { return fmt.Sprintf("mem_%026d", round) }

const instanceID = "ins_00000000000000000000000000"

// member is one round of the product's.
func (s *stage) member(ctx context.Context, round int) error {
	id := memberID(round)
	began := time.Now()
	client, err := s.members.Ensure(ctx, sandbox.Member{ID: id, InstanceID: instanceID,
		Walls: sandbox.Walls{AllocationID: "alc_bench", MemoryMiB: 256}})
	if err != nil {
		return fmt.Errorf("start a member: %w", err)
	}
	s.measured.Members.Start = append(s.measured.Members.Start, time.Since(began))
	if strings.HasPrefix(s.measured.Runtime, "crun ") {
		if err := s.floor(ctx, round); err != nil {
			return err
		}
	}
	took, err := s.commands(ctx, client)
	s.measured.Members.Exec = append(s.measured.Members.Exec, took...)
	left, failed := s.members.Teardown(ctx, id)
	if failed == nil && !left.Empty() {
		failed = fmt.Errorf("a member left %+v", left)
	}
	return errors.Join(err, failed)
}

// old is one round of the reference.
func (s *stage) old(ctx context.Context, round int) error {
	id := memberID(round)
	dir := filepath.Join(s.dir, "reference", "members", id)
	began := time.Now()
	init, err := startOld(dir, id)
	if err != nil {
		return fmt.Errorf("start the reference: %w", err)
	}
	client, err := s.reference.Lookup(ctx, id)
	s.measured.Reference.Start = append(s.measured.Reference.Start, time.Since(began))
	if err == nil {
		var took []time.Duration
		took, err = s.commands(ctx, client)
		s.measured.Reference.Exec = append(s.measured.Reference.Exec, took...)
	}
	return errors.Join(err, endOld(init, dir))
}

// commands runs /bin/true in a member, one after the other. The same init carries it out on both sides.
func (s *stage) commands(ctx context.Context, client *sandbox.Client) (took []time.Duration, err error) {
	for n := range s.execs {
		began := time.Now()
		run := wire.Run{Key: fmt.Sprint("run-", n), Fence: 1, Command: []string{"/bin/true"}, TimeoutMillis: 30_000}
		ended, err := client.Run(ctx, run, func(wire.Output) {})
		if err == nil && ended.ExitCode != 0 {
			err = fmt.Errorf("it ended with %d", ended.ExitCode)
		}
		if err != nil {
			return took, fmt.Errorf("run a command: %w", err)
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}
