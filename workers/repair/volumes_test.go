package repair_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/volume"
)

// A worker keeps the volumes of an instance from being deleted while it decides, as the API's verbs do.
func TestAMemberWithVolumesIsReplacedByItself(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	class, home := ids.New(ids.StorageClass), ids.New(ids.Volume)
	b.SQL(`INSERT INTO storage_class (id, name, kind, title, created_at, updated_at)
		VALUES ($1, 'parallel', 'SHARED', 'Parallel', now(), now())`, class)
	b.SQL(`INSERT INTO volume (id, tenant_id, project_id, storage_class_id, name, size_gib, status, created_by,
		created_at,
		updated_at) VALUES ($1, $2, $3, $4, 'home', 2, 'READY', '', now(), now())`, home, b.instance.TenantID,
		b.instance.ProjectID, class)
	bound, err := json.Marshal([]volume.Binding{{Slot: "home", VolumeID: home, Path: "/home", Components: []string{}}})
	require.NoError(t, err)
	b.SQL(`UPDATE instance SET volumes = $2 WHERE id = $1`, b.instance.ID, bound)
	spare, _ := b.Node(0)
	b.SQL(`UPDATE compute_node SET storage = '[{"name": "parallel", "kind": "SHARED", "reason": ""}]'`)
	b.policy(nil)
	b.away(b.members[1])
	ops := b.look()
	require.Len(t, ops, 1, "%s", b.now().RepairStopped)
	require.Equal(t, lifecycle.MemberReplace, ops[0].Kind)
	require.Equal(t, 1, b.Count("volume_node", "volume_id = $1 AND node_id = $2", home, spare.ID))
}
