package sandbox_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/exectest"
)

// standIn is a runtime that does what crun does, and writes down that it was called.
func standIn(t *testing.T, name string) (program, calls string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("runtimes need root")
	}
	crun, err := exec.LookPath("crun")
	if err != nil {
		t.Skip("crun is not installed")
	}
	dir := t.TempDir()
	program, calls = filepath.Join(dir, name), filepath.Join(dir, "calls")
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo '" + name + " version 1.8.1'; exit 0; }\necho \"$*\" >> " +
		calls + "\nexec " + crun + " \"$@\"\n"
	exectest.Write(t, program, script)
	return program, calls
}

func manage(t *testing.T, options sandbox.Options) *sandbox.Manager {
	t.Helper()
	if options.StateDir == "" {
		options.StateDir = t.TempDir()
	}
	options.Root, options.Log = testRoot, slog.New(slog.DiscardHandler)
	manager, err := sandbox.NewManager(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() {
		left, err := manager.Teardown(context.Background(), memberID)
		require.NoError(t, err)
		require.True(t, left.Empty(), "teardown left %+v", left)
	})
	return manager
}

func of(class string) sandbox.Member {
	return sandbox.Member{ID: memberID, InstanceID: instanceID, Walls: sandbox.Walls{Class: class}}
}

func callsOf(t *testing.T, file, verb string) int {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Count(string(raw), " "+verb+" ")
}

func TestAConfiguredRuntimeServesItsClassAlone(t *testing.T) {
	t.Parallel()
	program, calls := standIn(t, "gvisor-standin")
	m := manage(t, sandbox.Options{ClassRuntimes: map[string]string{sandbox.ClassSandbox: program,
		sandbox.ClassVM: "no-such-runtime"}})
	offered := m.Isolation()
	require.Equal(t, []string{sandbox.ClassContainer, sandbox.ClassWholeNode, sandbox.ClassSandbox}, offered.Classes)
	require.Contains(t, offered.Missing[sandbox.ClassVM], "not installed")
	require.Contains(t, offered.Gaps[0].Reason, "class VM is not offered", "the inventory says it")
	tried := callsOf(t, calls, "create")
	require.Equal(t, 1, tried, "it was tried")

	_, err := m.Ensure(t.Context(), of(sandbox.ClassVM))
	require.Equal(t, wire.CodeRuntimeMissing, wire.AsError(err).Code)
	client, err := m.Ensure(t.Context(), of(sandbox.ClassSandbox))
	require.NoError(t, err)
	ended, err := client.Run(t.Context(), wire.Run{Key: "k", Fence: 1, Command: []string{"true"},
		TimeoutMillis: 10_000},
		func(wire.Output) {})
	require.NoError(t, err)
	require.Zero(t, ended.ExitCode)
	require.Equal(t, tried+1, callsOf(t, calls, "create"))
	left, err := m.Teardown(t.Context(), memberID)
	require.NoError(t, err)
	require.True(t, left.Empty(), "%+v", left)

	_, err = m.Ensure(t.Context(), of(sandbox.ClassContainer))
	require.NoError(t, err)
	require.Equal(t, tried+1, callsOf(t, calls, "create"), "a container is not the sandbox's")
	require.NoError(t, os.Remove(program))
	require.True(t, m.Recheck())
	require.NotContains(t, m.Isolation().Classes, sandbox.ClassSandbox)
	require.Contains(t, m.Isolation().Classes, sandbox.ClassContainer)
	require.False(t, m.Recheck(), "nothing is new")
}

func TestANodeThatLosesItsRuntimeOffersNothingUntilItIsBack(t *testing.T) {
	t.Parallel()
	program, _ := standIn(t, "crun")
	dir := t.TempDir()
	m := manage(t, sandbox.Options{StateDir: dir, Runtime: program})
	require.False(t, m.Recheck())
	require.NoError(t, os.Rename(program, program+".away"))
	require.True(t, m.Recheck())
	lost := m.Isolation()
	require.Empty(t, lost.Classes)
	require.Empty(t, lost.Profiles)
	require.Equal(t, sandbox.WallRuntime, lost.Gaps[0].Wall)
	require.Contains(t, lost.Gaps[0].Reason, "was removed; install the package crun again")
	_, err := m.Ensure(t.Context(), of(""))
	require.Equal(t, wire.CodeRuntimeMissing, wire.AsError(err).Code)
	require.NoDirExists(t, filepath.Join(dir, "members", memberID), "nothing is begun")
	require.NoError(t, os.Rename(program+".away", program))
	require.True(t, m.Recheck())
	_, err = m.Ensure(t.Context(), of(""))
	require.NoError(t, err)
}

// runc is the second runtime that members run in.
func TestMembersRunInRunc(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("runtimes need root")
	}
	if _, err := exec.LookPath("runc"); err != nil {
		t.Skip("runc is not installed")
	}
	m := manage(t, sandbox.Options{Runtime: "runc"})
	require.Equal(t, "runc", m.Isolation().Runtime, m.Isolation().Reason)
	client, err := m.Ensure(t.Context(), of(""))
	require.NoError(t, err)
	ended, err := client.Run(t.Context(), wire.Run{Key: "k", Fence: 1, Command: []string{"true"},
		TimeoutMillis: 10_000},
		func(wire.Output) {})
	require.NoError(t, err)
	require.Zero(t, ended.ExitCode)
}
