package node_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/node"
)

// served is a volume of a storage class that an online node serves, as it is once a member there had it.
func (b *bench) served(project *db.Project, kind volume.Kind, name string) (ids.ID, *db.ComputeNode, context.Context) {
	b.t.Helper()
	at, credential := b.Node(4)
	storages, err := json.Marshal([]volume.Storage{{Name: name, Kind: kind}})
	require.NoError(b.t, err)
	b.SQL(`UPDATE compute_node SET storage = $2, status = 'ONLINE' WHERE id = $1`, at.ID, storages)
	class, id := ids.New(ids.StorageClass), ids.New(ids.Volume)
	b.SQL(`INSERT INTO storage_class (id, name, kind, title, created_at, updated_at)
		VALUES ($1, $2, $3, $2, now(), now())`, class, name, string(kind))
	b.SQL(`INSERT INTO volume (id, tenant_id, project_id, storage_class_id, name, size_gib, status, node_id, created_by,
		created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, 1, 'READY', $6, 'usr_x', now(),
		now())`, id, project.TenantID, project.ID, class, name,
		map[bool]*ids.ID{true: &at.ID}[kind == volume.Local])
	b.SQL(`INSERT INTO volume_node (volume_id, node_id) VALUES ($1, $2)`, id, at.ID)
	return id, at, b.With(credential)
}

func (b *bench) report(agent context.Context, id ids.ID, state volume.Finding, used float64) []ids.ID {
	b.t.Helper()
	gone, err := b.ReportVolumes(agent, node.ReportVolumesInput{Volumes: []node.VolumeReport{{ID: id, State: state,
		UsedBytes: used}}})
	require.NoError(b.t, err)
	return gone
}

func TestAnAgentLooksAfterTheVolumesOfItsNodeAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	project := b.Project(b.Tenant())
	mine, _, agent := b.served(project, volume.Shared, "shared")
	_, _, other := b.served(project, volume.Local, "fast")

	charges, err := b.Volumes(agent, "", 0)
	require.NoError(t, err)
	require.Equal(t, []volume.Charge{{ID: mine, Storage: "shared", SizeBytes: 1 << 30}}, charges.Volumes)

	require.Empty(t, b.report(other, mine, volume.Present, 7), "it is another node's")
	require.Equal(t, 1, b.Count("volume", "id = '"+string(mine)+"' AND used_bytes IS NULL"))
	b.report(agent, mine, volume.Busy, 0)
	require.Zero(t, b.Count("volume_fact", ""), "that proves nothing")
	b.report(agent, mine, volume.Present, 4096)
	require.Equal(t, 1, b.Count("volume_fact", "volume_id = $1 AND state = 'PRESENT'", mine), "the first proof")
	b.report(agent, mine, volume.Present, 4096)
	require.Equal(t, 1, b.Count("volume_fact", ""), "and no other")
	require.Equal(t, 1, b.Count("volume", "id = '"+string(mine)+"' AND used_bytes = 4096 AND measured_at IS NOT NULL"))
	b.report(agent, mine, volume.Busy, 0)
	require.Equal(t, 1, b.Count("volume", "id = '"+string(mine)+"' AND used_bytes = 4096"),
		"what could not be measured stays")

	_, err = b.ReportVolumes(agent, node.ReportVolumesInput{Volumes: []node.VolumeReport{{ID: mine,
		State: volume.Present, UsedBytes: 1.5}}})
	require.Equal(t, "input.volumes.0.usedBytes", fault.From(err).Reasons[0].Path)
	_, err = b.Volumes(b.operator, "", 0)
	require.Equal(t, fault.Forbidden, fault.From(err).Code)
}

func TestAVolumeIsDeletedByTheProofOfTheNodeThatDeletesIt(t *testing.T) {
	t.Parallel()
	for _, kind := range []volume.Kind{volume.Shared, volume.Local} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t)
			project := b.Project(b.Tenant())
			id, at, agent := b.served(project, kind, "store")
			_, _, other := b.served(project, kind, "another")
			require.Empty(t, b.report(agent, id, volume.Gone, 0), "nobody has asked for it to be deleted")

			charges, err := b.Volumes(agent, "", 0)
			require.NoError(t, err)
			waited := make(chan *volume.Charges, 1)
			go func() {
				next, _ := b.Volumes(agent, charges.Version, 20)
				waited <- next
			}()
			b.SQL(`UPDATE volume SET status = 'DELETING' WHERE id = $1`, id)
			b.Hub.Wake(event.NodeTopic(at.ID))
			select {
			case next := <-waited:
				require.True(t, next.Volumes[0].Gone)
			case <-time.After(30 * time.Second):
				t.Fatal("the agent was not woken")
			}
			b.report(agent, id, volume.Present, 1)
			require.Zero(t, b.Count("volume_fact", ""), "it is first proved while it is deleted: nobody pays for it")
			require.Empty(t, b.report(other, id, volume.Gone, 0), "it is not that node's to delete")
			require.Equal(t, []ids.ID{id}, b.report(agent, id, volume.Gone, 0))
			require.Equal(t, 1, b.Count("volume", "id = '"+string(id)+
				"' AND status = 'DELETED' AND deleted_at IS NOT NULL"))
			require.Empty(t, b.report(agent, id, volume.Present, 1), "what is deleted is at its end")
		})
	}
}

func TestANodeReportsWhatItServesVolumesFrom(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	enrolled := b.enrolled("n1")
	agent := b.With(enrolled.Token)
	inventory := enrolment("n1").Inventory
	inventory.Storage = []volume.Storage{{Name: "shared", Kind: volume.Shared, TotalBytes: 1 << 40, FreeBytes: 1 << 39}}
	in := beat
	in.Inventory = &inventory
	row, err := b.Heartbeat(agent, in)
	require.NoError(t, err)
	require.Equal(t, inventory.Storage, row.Storage)
	require.Equal(t, lifecycle.NodeOnline, row.Status)

	inventory.Storage = []volume.Storage{{Name: "Shared", Kind: volume.Shared},
		{Name: "Shared", Kind: volume.Shared, FreeBytes: -1}}
	_, err = b.Heartbeat(agent, in)
	var paths []string
	for _, reason := range fault.From(err).Reasons {
		paths = append(paths, reason.Path)
	}
	require.Equal(t, []string{"input.inventory.storage.0.name", "input.inventory.storage.1.name",
		"input.inventory.storage.1.freeBytes", "input.inventory.storage.1"}, paths)
}
