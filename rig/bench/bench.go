package main

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

// issuer is the platform's public address: nobody connects to it.
const issuer = "http://platform.bench"

// bench is one run.
type bench struct {
	plan  plan
	log   *slog.Logger
	set   *dataset.Set
	sheet *sheet
}

// subjects are what can be measured, in order.
var subjects = []struct {
	name    string
	measure func(context.Context, *bench) error
}{
	{"permission", measurePermission},
	{"policy", measurePolicy},
	{"token", measureToken},
	{"rls", measureRLS},
	{"audit", measureAudit},
	{"denials", measureDenials},
	{"detail", measureDetail},
	{"list", measureList},
	{"catalog", measureCatalog},
	{"delivery", measureDelivery},
	{"fanout", measureFanout},
	{"dispatch", measureDispatch},
	{"throughput", measureThroughput},
	{"workers", measureWorkers},
	{"memory", measureMemory},
	{"waiting", measureWaiting},
	{"fairness", measureFairness},
	{"scale", measureScale},
}

func names() []string {
	all := make([]string, len(subjects))
	for i, one := range subjects {
		all[i] = one.name
	}
	return all
}

// server is a child that serves.
type server struct {
	*process.Child
	address string
}

// serve starts a child that serves. The configuration is the same on both sides.
func (b *bench) serve(ctx context.Context, role process.Role, work bool) (*server, error) {
	child, err := process.Start(ctx, role, platform.Config{
		DSN: b.set.DSN, Keys: b.keys(), Issuer: issuer, Connections: b.plan.pool, Work: work,
	})
	if err != nil {
		return nil, err
	}
	s := &server{Child: child}
	if err := child.Ask("address", nil, &s.address); err != nil {
		child.Stop()
		return nil, err
	}
	return s, nil
}

// keys is the folder of the signing keys.
func (b *bench) keys() string { return filepath.Join(b.plan.data, "keys") }

// profiled runs do with a CPU profile of the child, when profiles are wanted.
func (b *bench) profiled(s *server, name string, do func() error) error {
	if b.plan.profile == "" {
		return do()
	}
	if err := os.MkdirAll(b.plan.profile, 0o755); err != nil {
		return err
	}
	file, err := filepath.Abs(filepath.Join(b.plan.profile, name+".cpu.pprof"))
	if err != nil {
		return err
	}
	if err := s.Ask("profile", file, nil); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	b.log.Info("profile written", "file", file)
	return s.Ask("profile", "", nil)
}

// kib writes bytes in KiB.
func kib(bytes float64) string { return fmt.Sprintf("%.1f KiB", bytes/1024) }
