package adaptertest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/nacl/box"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
)

// Nodes are the sandboxes of this package for the conformance suite (its Options.Runner), which has
// none with namespaces of its own.
type Nodes struct {
	// Artifacts are what members fetch; the test puts them there.
	Artifacts *sandbox.Artifacts

	runner *runner
}

// NewNodes returns sandboxes that end with the test.
func NewNodes(t testing.TB, options ...Option) *Nodes {
	t.Helper()
	public, private, err := box.GenerateKey(rand.Reader)
	require.NoError(t, err)
	n := &Nodes{runner: newRunner(t, public, private)}
	n.Artifacts = n.runner.artifacts
	for _, option := range options {
		option(n.runner)
	}
	return n
}

// SealingKey returns the public key for sealed values, base64.
func (n *Nodes) SealingKey() string { return base64.StdEncoding.EncodeToString(n.runner.public[:]) }

// Do carries a node task out; ending ctx cancels it.
func (n *Nodes) Do(ctx context.Context, task sandbox.Task) sandbox.Outcome {
	return n.runner.run(ctx, task)
}

// Residue returns what is left of a member.
func (n *Nodes) Residue(memberID string) (adapter.Residue, error) {
	return n.runner.residue(memberID), nil
}

// Wipe deletes all of a member, as when its node is lost.
func (n *Nodes) Wipe(memberID string) error { return n.runner.teardown(memberID) }
