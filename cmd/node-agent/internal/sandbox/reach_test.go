package sandbox_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
)

// TestPortsOfAPlainProcessAreItsOwnOnAWholeNodeAlone: a port of the node could be anybody's, unless its one tenant has
// all of them.
func TestPortsOfAPlainProcessAreItsOwnOnAWholeNodeAlone(t *testing.T) {
	t.Parallel()
	manager, err := sandbox.NewManager(t.Context(), sandbox.Options{StateDir: t.TempDir(), ForceProcess: true,
		SingleTenant: true, Address: "192.0.2.7", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	const elsewhere = "mem_000000000000000000000other"
	t.Cleanup(func() {
		for _, member := range []string{memberID, elsewhere} {
			_, err := manager.Teardown(context.Background(), member)
			require.NoError(t, err)
		}
	})
	for member, class := range map[string]string{memberID: sandbox.ClassWholeNode, elsewhere: sandbox.ClassContainer} {
		_, err := manager.Ensure(t.Context(), sandbox.Member{ID: member, InstanceID: instanceID,
			Walls: sandbox.Walls{Class: class}})
		require.NoError(t, err)
	}
	way, err := manager.Reach(memberID)
	require.NoError(t, err)
	require.Equal(t, "192.0.2.7", way.Address)
	way, err = manager.Reach(elsewhere)
	require.NoError(t, err)
	require.Empty(t, way.Address)
	_, err = manager.Teardown(t.Context(), memberID)
	require.NoError(t, err)
	way, err = manager.Reach(memberID)
	require.NoError(t, err)
	require.Empty(t, way.Address, "what is gone has no ports")
}
