package operation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// TestAStepOfAMembersLifeWritesNoIndex moves a member from state to state, and reads from PostgreSQL which new versions
// of its row needed no new entry in an index. The last step does: a member that is REMOVED leaves four indexes.
func TestAStepOfAMembersLifeWritesNoIndex(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	tenant := k.Tenant()
	project := k.Project(tenant)
	app := k.App("apps")
	stand := k.StandIn()
	stored := k.Manifest(lifecycle.StageActive,
		platformtest.Document(app, "1.0.0", k.Adapter(stand.URL, nil), k.Artifact(lifecycle.StageActive)))
	node, _ := k.Node(4)
	k.Instance(project, stored, lifecycle.InstanceRunning, k.Allocation(project, node))

	work, err := k.Admin.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = work.Rollback(t.Context()) }()
	steps := []lifecycle.MemberStatus{lifecycle.MemberDraining, lifecycle.MemberDrained, lifecycle.MemberActive,
		lifecycle.MemberRemoving, lifecycle.MemberRemoved}
	for i, status := range steps {
		_, err = work.Exec(t.Context(), `UPDATE member SET status = $1, health = 'UNKNOWN', updated_at = now()`, status)
		require.NoError(t, err)
		var moved, inPlace int
		require.NoError(t, work.QueryRow(t.Context(), `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables
			WHERE relname = 'member'`).Scan(&moved, &inPlace))
		require.Equal(t, i+1, moved)
		require.Equal(t, min(i+1, len(steps)-1), inPlace, "after the step to %s", status)
	}
}
