package prereq

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const permissive = "#!/bin/sh\nexit 0\n"

func policyAt(t *testing.T, script string) policy {
	t.Helper()
	p := policy{filepath.Join(t.TempDir(), "policy-rc.d")}
	if script != "" {
		require.NoError(t, writeProgram(p.path, script))
	}
	return p
}

func contents(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func TestServicesAreHeldWhileInstallingAndThePolicyIsPutBack(t *testing.T) {
	t.Parallel()
	p := policyAt(t, permissive)
	require.False(t, p.forbids(t.Context()))
	restore, err := p.hold(t.Context())
	require.NoError(t, err)
	require.True(t, p.forbids(t.Context()))
	require.NoError(t, restore())
	require.Equal(t, permissive, contents(t, p.path))
	require.NoFileExists(t, p.aside())
}

func TestMachineWithoutAPolicyHasNoneAfterwards(t *testing.T) {
	t.Parallel()
	p := policyAt(t, "")
	restore, err := p.hold(t.Context())
	require.NoError(t, err)
	require.True(t, p.forbids(t.Context()))
	require.NoError(t, restore())
	require.NoFileExists(t, p.path)
}

func TestForbiddingPolicyOfTheMachineIsNotTouched(t *testing.T) {
	t.Parallel()
	own := "#!/bin/sh\nexit 101\n"
	p := policyAt(t, own)
	restore, err := p.hold(t.Context())
	require.NoError(t, err)
	require.Equal(t, own, contents(t, p.path))
	require.NoError(t, restore())
	require.Equal(t, own, contents(t, p.path))
}

func TestPolicyOfAKilledRunIsPutRight(t *testing.T) {
	t.Parallel()
	p := policyAt(t, permissive)
	_, err := p.hold(t.Context()) // and never restored
	require.NoError(t, err)
	restore, err := p.hold(t.Context())
	require.NoError(t, err)
	require.NoError(t, restore())
	require.Equal(t, permissive, contents(t, p.path))
}
