package e2e_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/stack"
)

// ownInstallation gives the test a small installation of its own, which all helpers use in place of the shared one
// until the test ends: for tests that take nodes away from everybody.
func ownInstallation(t *testing.T, ctx context.Context) {
	t.Helper()
	bin, err := filepath.Abs("../../bin")
	require.NoError(t, err)
	apps := slices.DeleteFunc(stack.Apps(), func(app stack.App) bool { return app.Slug != "hello-cluster" })
	own, err := stack.Up(ctx, stack.Config{Dir: filepath.Join(t.TempDir(), "data"), Bin: bin, Listen: "127.0.0.1:0",
		Nodes:         2,
		NodeMemoryMiB: 8192, Throwaway: true, Apps: apps, Out: t.Output()})
	require.NoError(t, err)
	all := shared
	shared = own
	t.Cleanup(func() {
		shared = all
		if t.Failed() {
			printLogs(own.LogDir())
		}
		require.NoError(t, own.Close())
	})
}
