package graph_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

func TestBlockersOfAListCostTheSameWhateverItsLength(t *testing.T) {
	t.Parallel()
	b := newWholeBench(t)
	token := b.Session(b.viewer)
	reads := b.countReads()
	look := func() (codes []string, cost int) {
		var out struct {
			Instances struct {
				Edges []struct {
					Node struct {
						Blockers      []struct{ Code, Message, Owner, Since string }
						LastOperation struct{ Blockers []struct{ Code string } }
					}
				}
			}
		}
		before := reads()
		b.ask(token, `query($p: ID!) { instances(projectId: $p) { edges { node {
			blockers { code message owner subject since nextRetryAt permissionKey } lastOperation { blockers { code } } } } } }`,
			map[string]any{"p": b.project.ID}, &out)
		for _, instance := range out.Instances.Edges {
			require.NotEmpty(t, instance.Node.Blockers)
			first := instance.Node.Blockers[0]
			require.NotEmpty(t, first.Message)
			require.Equal(t, "platform", first.Owner)
			require.NotEmpty(t, first.Since)
			require.Equal(t, first.Code, instance.Node.LastOperation.Blockers[0].Code)
			codes = append(codes, first.Code)
		}
		return codes, reads() - before
	}
	codes, cost := look()
	require.Equal(t, []string{"NO_WORKER"}, codes)
	stored, err := b.Ent.Manifest.Query().Only(t.Context())
	require.NoError(t, err)
	for range 20 {
		b.Operation(b.Instance(b.project, stored, lifecycle.InstanceRunning), lifecycle.InstanceUpgrade,
			lifecycle.OperationRunning)
	}
	codes, later := look()
	require.Len(t, codes, 21)
	require.Equal(t, cost, later)
}
