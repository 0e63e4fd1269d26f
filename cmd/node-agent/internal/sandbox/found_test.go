package sandbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

func TestAMemberTakenAsFoundIsNotBroughtBack(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		asFound := sandbox.Member{ID: memberID, InstanceID: instanceID, AsFound: true}
		first, err := b.Ensure(t.Context(), asFound)
		require.NoError(t, err, "a member that was never here is made")
		killInit(t, b)
		_, err = b.Ensure(t.Context(), asFound)
		require.True(t, wire.HasCode(err, wire.CodeSandboxLost), "%v", err)
		_, err = b.Lookup(t.Context(), memberID)
		require.True(t, wire.HasCode(err, wire.CodeSandboxLost), "it was started again: %v", err)
		require.NotEqual(t, first.Epoch(), b.ensure(t).Epoch())

		left, err := b.Teardown(t.Context(), memberID)
		require.NoError(t, err)
		require.True(t, left.Empty())
		_, err = b.Ensure(t.Context(), asFound)
		require.True(t, wire.HasCode(err, wire.CodeSandboxLost), "%v", err)
		left, err = b.Residue(memberID)
		require.NoError(t, err)
		require.True(t, left.Empty(), "%+v", left)

		b.ensure(t) // an operation may use the id again
		found, err := b.Ensure(t.Context(), asFound)
		require.NoError(t, err)
		require.NotEmpty(t, found.Epoch())
	})
}
