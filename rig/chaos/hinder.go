package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/internal/supervise"
)

// stopMost bounds how long a server may go on once its clock is off.
const stopMost = 10 * time.Second

// Server says how one of the installation's servers is hindered.
type Server struct {
	// Program is the link by which it is started; it can be set to another build.
	Program string
	// Skew is the file that says by how much its clock is off, as Go writes durations; without the file it is right.
	Skew string
	// Worker says that it works and serves no API, so that it may be of an older build than the clients.
	Worker bool
}

// halt stops a program for a while without ending it.
func (s *Suite) halt(ctx context.Context, child *supervise.Child, length time.Duration) error {
	if err := child.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	s.followers.Go(func() {
		pause(ctx, length)
		_ = child.Signal(syscall.SIGCONT) // one that was killed meanwhile runs again
	})
	return nil
}

// haltAdapter has the adapter accept connections and answer nothing, for longer than a call is waited for at times.
func (s *Suite) haltAdapter(ctx context.Context, rng *rand.Rand) error {
	return s.halt(ctx, s.stack.Controllers["chaos"], time.Duration(1_000+rng.IntN(20_000))*time.Millisecond)
}

// slowAdapter leaves the adapter a tenth of its time for a while.
func (s *Suite) slowAdapter(ctx context.Context, rng *rand.Rand) error {
	child, length := s.stack.Controllers["chaos"], time.Duration(4_000+rng.IntN(12_000))*time.Millisecond
	s.followers.Go(func() {
		for begun := time.Now(); time.Since(begun) < length && ctx.Err() == nil; pause(ctx, 100*time.Millisecond) {
			_ = child.Signal(syscall.SIGSTOP)
			pause(ctx, 900*time.Millisecond)
			_ = child.Signal(syscall.SIGCONT)
		}
	})
	return nil
}

// loseAdapter kills the adapter and keeps it from being started for a while.
func (s *Suite) loseAdapter(ctx context.Context, rng *rand.Rand) error {
	back, err := away(s.AdapterProgram)
	if err != nil {
		return err
	}
	err = kill(s.stack.Controllers["chaos"])
	pause(ctx, time.Duration(2_000+rng.IntN(15_000))*time.Millisecond)
	return errors.Join(err, back())
}

// away takes a program away, so that its supervisor cannot start it, until back is called.
func away(program string) (back func() error, err error) {
	err = os.Rename(program, program+".away")
	return func() error { return os.Rename(program+".away", program) }, err
}

// moveDatabase does what an administrator does who restores a dump on another server: all servers are down meanwhile,
// each killed in the middle of its work.
func (s *Suite) moveDatabase(ctx context.Context, _ *rand.Rand) (err error) {
	for number, server := range s.servers() {
		back, gone := away(s.Servers[number].Program)
		if gone != nil {
			return gone
		}
		defer func() { err = errors.Join(err, back()) }()
		if err := kill(server); err != nil {
			return err
		}
	}
	return s.stack.MoveDatabase(context.WithoutCancel(ctx)) // it is there again, also when this was the last fault
}

// haltAgent keeps a node's agent from all for less than what makes the node count as offline.
func (s *Suite) haltAgent(ctx context.Context, rng *rand.Rand) error {
	return s.halt(ctx, one(rng, s.stack.Nodes).Agent, time.Duration(1_000+rng.IntN(9_000))*time.Millisecond)
}

// turnClock sets the clock of a server of this build, by seconds or by hours, either way. It must stop by itself; its
// supervisor starts it again, in vain until its clock is right.
func (s *Suite) turnClock(ctx context.Context, rng *rand.Rand) error {
	number := one(rng, s.ofThisBuild()) // an older build does not look at its clock
	by := []time.Duration{5 * time.Second, time.Minute, 3 * time.Hour}[rng.IntN(3)]
	if rng.IntN(2) == 0 {
		by = -by
	}
	server := s.servers()[number]
	_ = server.Signal(syscall.SIGCONT) // one that is halted cannot stop itself
	runs := server.Starts()
	if err := os.WriteFile(s.Servers[number].Skew, []byte(by.String()), 0o600); err != nil {
		return err
	}
	turned := time.Now()
	for server.Starts() == runs && time.Since(turned) < 2*stopMost && ctx.Err() == nil {
		pause(ctx, 50*time.Millisecond)
	}
	if took := time.Since(turned); took > stopMost && ctx.Err() == nil {
		s.wrong("%s, whose clock is off by %s, went on for %s", server.Name(), by, took.Round(time.Millisecond))
	}
	pause(ctx, time.Duration(rng.IntN(3_000))*time.Millisecond)
	return os.Remove(s.Servers[number].Skew)
}

// ofThisBuild are the servers that run this build, by number; those that serve the API do.
func (s *Suite) ofThisBuild() (numbers []int) {
	for number, server := range s.Servers {
		if at, err := os.Readlink(server.Program); err == nil && at == s.Builds[0] {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// changeBuild starts a worker again as another build, as an upgrade does, or the way back.
func (s *Suite) changeBuild(ctx context.Context, rng *rand.Rand) error {
	for number, server := range s.Servers {
		if !server.Worker {
			continue
		}
		at, err := os.Readlink(server.Program)
		if err != nil {
			return err
		}
		others := slices.DeleteFunc(slices.Clone(s.Builds), func(build string) bool { return build == at })
		to := one(rng, others)
		if err := s.run(ctx, number, to); err != nil {
			return err
		}
	}
	return nil
}

// run starts a server again as a build.
func (s *Suite) run(ctx context.Context, number int, build string) error {
	link := s.Servers[number].Program
	if err := os.Symlink(build, link+".next"); err != nil {
		return err
	}
	if err := os.Rename(link+".next", link); err != nil {
		return err
	}
	return s.servers()[number].Restart(ctx)
}

// restore gives every server its clock and this build again.
func (s *Suite) restore(ctx context.Context) error {
	this := s.ofThisBuild()
	for number, server := range s.Servers {
		if err := os.Remove(server.Skew); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if slices.Contains(this, number) {
			continue
		}
		if err := s.run(ctx, number, s.Builds[0]); err != nil {
			return fmt.Errorf("run this build again: %w", err)
		}
	}
	for _, node := range s.stack.Nodes {
		_ = node.Agent.Signal(syscall.SIGCONT)
	}
	return s.stack.Controllers["chaos"].Signal(syscall.SIGCONT)
}
