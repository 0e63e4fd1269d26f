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

// NewNodes makes sandboxes that end with the test.
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

// SealingKey is the public key for sealed values, base64.
func (n *Nodes) SealingKey() string { return base64.StdEncoding.EncodeToString(n.runner.public[:]) }

// Do carries a node task out; ending ctx cancels it.
func (n *Nodes) Do(ctx context.Context, task sandbox.Task) sandbox.Outcome {
	said := n.runner.run(ctx, taskInput{
		MemberID: task.MemberID, Kind: task.Kind, Spec: task.Spec, TimeoutSeconds: max(int(task.Timeout.Seconds()), 1),
	})
	out := sandbox.Outcome{}
	out.State, _ = said["state"].(adapter.TaskState)
	out.Message, _ = said["message"].(string)
	out.Result, _ = said["result"].(map[string]any)
	if code, ok := out.Result["exitCode"].(int); ok {
		out.ExitCode = &code
	}
	out.Stdout, _ = out.Result["stdout"].(string)
	out.Stderr, _ = out.Result["stderr"].(string)
	return out
}

// Residue says what is left of a member.
func (n *Nodes) Residue(memberID string) (adapter.Residue, error) {
	return n.runner.residue(memberID), nil
}

// Wipe deletes all of a member, as when its node is lost.
func (n *Nodes) Wipe(memberID string) error { return n.runner.teardown(memberID) }
