package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// The agents of the nodes that get members, and of the control planes that the project is attached to, give them a
// network.
func TestALaunchWakesTheNodesWhoseNetworkItChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	host := b.Instance(b.Project(b.tenant), b.stored, lifecycle.InstanceRunning)
	b.SQL(`INSERT INTO control_plane_share (id, tenant_id, project_id, instance_id, owner_project_id, status,
		created_at)
		VALUES ($1, $2, $3, $4, $5, 'ATTACHED', now())`, ids.New(ids.ControlPlane), b.tenant.ID, b.project.ID, host.ID,
		host.ProjectID)
	for _, topic := range []string{event.InstanceTopic(host.ID), event.NodeTopic(*b.one.NodeID),
		event.NodeTopic(*b.two.NodeID)} {
		waiter := b.Hub.Wait(topic)
		defer waiter.Close()
		defer func() { require.Len(t, waiter.C, 1, topic) }()
	}
	b.launched()
}
