// Package kit is what the subjects of the benchmark share: the plan of a run, its children, and the sheet of figures.
package kit

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/platform"
	"github.com/gpuaas/app-platform/rig/bench/process"
)

// Issuer is the platform's public address: no one connects to it.
const Issuer = "http://platform.bench"

// Subject is something that can be measured, by a name for the command line.
type Subject struct {
	Name    string
	Measure func(context.Context, *Bench) error
}

// Bench is one run.
type Bench struct {
	Plan  Plan
	Log   *slog.Logger
	Set   *dataset.Set
	Sheet *Sheet
}

// Server is a child that serves.
type Server struct {
	*process.Child
	Address string
}

// Serve starts a child that serves the data set. The configuration is the same on both sides.
func (b *Bench) Serve(ctx context.Context, role process.Role, work bool) (*Server, error) {
	config := b.Platform()
	config.Work = work
	return b.Child(ctx, role, config)
}

// Platform is the configuration of a platform that serves the data set and carries nothing out.
func (b *Bench) Platform() platform.Config {
	return platform.Config{DSN: b.Set.DSN, Keys: b.Keys(), Issuer: Issuer, Connections: b.Plan.Pool}
}

// Child starts a child that serves, with a configuration of its own.
func (b *Bench) Child(ctx context.Context, role process.Role, config any) (*Server, error) {
	child, err := process.Start(ctx, role, config)
	if err != nil {
		return nil, err
	}
	s := &Server{Child: child}
	if err := child.Ask("address", nil, &s.Address); err != nil {
		child.Stop()
		return nil, err
	}
	return s, nil
}

// Keys is the folder of the signing keys.
func (b *Bench) Keys() string { return filepath.Join(b.Plan.Data, "keys") }

// Profiled runs do with a CPU profile of the child, when profiles are wanted.
func (b *Bench) Profiled(s *Server, name string, do func() error) error {
	if b.Plan.Profile == "" {
		return do()
	}
	if err := os.MkdirAll(b.Plan.Profile, 0o755); err != nil {
		return err
	}
	file, err := filepath.Abs(filepath.Join(b.Plan.Profile, name+".cpu.pprof"))
	if err != nil {
		return err
	}
	if err := s.Ask("profile", file, nil); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	b.Log.Info("profile written", "file", file)
	return s.Ask("profile", "", nil)
}

// Kib writes bytes in KiB.
func Kib(bytes float64) string { return fmt.Sprintf("%.1f KiB", bytes/1024) }

// Mib writes bytes in MiB.
func Mib(bytes uint64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
