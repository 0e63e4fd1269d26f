package drills_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gpuaas/app-platform/rig/lab"
	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/rig/turned"
)

// long drills every edge instead of one a runbook.
var long = flag.Bool("drills.long", false, "drill every edge of every runbook")

// shared is the installation that all drills of the package use, one after the other: one server with API and billing,
// one with the worker, and one node with plain processes.
var shared *stack.Stack

func TestMain(m *testing.M) {
	lab.MaybeRunInit()
	if turned.Asked() {
		os.Exit(turned.Serve())
	}
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	if err := rise(m, &code); err != nil {
		fmt.Fprintln(os.Stderr, "drills:", err)
		return 1
	}
	return code
}

// rise brings the installation up, runs the tests and takes it down again.
func rise(m *testing.M, code *int) (err error) {
	dir, err := os.MkdirTemp("", "drills")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(bin, "app-platform")); err != nil {
		return errors.New("the programs are not built; run make build first")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	checks := filepath.Join(dir, "checks")
	if err := os.Mkdir(checks, 0o755); err != nil {
		return err
	}
	config := stack.Config{
		Dir: filepath.Join(dir, "data"), Bin: bin, Listen: "127.0.0.1:0", NodeMemoryMiB: 8192, Plain: true,
		NodeGPUs:  16,
		Throwaway: true, DemoPrices: true, Servers: 2, Roles: []string{"api,billing", "worker"}, Apps: stack.Apps()[:1],
		Webhooks:    []string{hooks.start()},
		Registries:  []string{files.start()},
		ServerFlags: []string{"--node-grace", "30s", "--billing-every", "1s"},
		AgentFlags:  []string{"--checks-dir", checks},
	}
	if shared, err = stack.Up(ctx, config); err != nil {
		return fmt.Errorf("bring the installation up: %w", err)
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	*code = m.Run()
	return nil
}
