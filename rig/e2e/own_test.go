package e2e_test

import (
	"context"
	"flag"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/stack"
)

var own = flag.Bool("e2e.own", false, "bring up no shared installation: for tests that each have their own")

// ownInstallation gives the test a small installation of its own, which all helpers use in place of the shared one
// until the test ends: for tests that take nodes or servers away from everybody. It has the hello-cluster app alone.
func ownInstallation(t *testing.T, ctx context.Context, config stack.Config) {
	t.Helper()
	bin, err := filepath.Abs("../../bin")
	require.NoError(t, err)
	apps := slices.DeleteFunc(stack.Apps(), func(app stack.App) bool { return app.Slug != "hello-cluster" })
	config.Dir, config.Bin, config.Listen = filepath.Join(t.TempDir(), "data"), bin, "127.0.0.1:0"
	config.NodeMemoryMiB, config.Throwaway, config.Apps, config.Out = 8192, true, apps, t.Output()
	small, err := stack.Up(ctx, config)
	require.NoError(t, err)
	all := shared
	shared = small
	t.Cleanup(func() {
		shared = all
		if t.Failed() {
			printLogs(small.LogDir())
		}
		require.NoError(t, small.Close())
	})
}
