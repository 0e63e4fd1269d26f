package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// Through the whole API, an attached project's people get to a shared control plane by its share and its actions, and
// by nothing else that takes the ids of it and of what lies below it.
func TestAnAttachedProjectGetsToNothingButTheControlPlane(t *testing.T) {
	t.Parallel()
	b, schema := newBench(t), sdl(t)
	victim := b.build()
	guest := &db.Project{ID: victim.Sibling, TenantID: victim.Tenant}
	admin := b.Session(b.Kit.User(&db.Tenant{ID: victim.Tenant}, platformtest.In(authz.ProjectAdmin, guest)))
	stranger := &house{Project: victim.Sibling, Instance: victim.Instance, Slug: victim.Slug}

	accept := b.post(admin,
		`mutation($id: ID!) { acceptControlPlane(shareId: $id) { status controlPlane { name actions { name } } } }`,
		arguments{"id": victim.Share})
	require.Empty(t, accept.Errors)
	require.Contains(t, accept.Data, `"ATTACHED"`)
	require.Contains(t, accept.Data, `"queue.read"`)
	require.Contains(t, b.post(admin, `query($id: ID!) { node(id: $id) { id ... on ControlPlaneShare { status } } }`,
		arguments{"id": victim.Share}).Data, `"ATTACHED"`)
	const act = `mutation($input: InvokeActionInput!) { invokeAction(input: $input) { output } }`
	asked := b.post(admin, act, arguments{"input": object{"instanceId": victim.Instance, "action": "queue.read",
		"projectId": victim.Sibling, "idempotencyKey": "k"}})
	require.Contains(t, []string{string(fault.AdapterUnavailable), string(fault.DialRefused),
		string(fault.AdapterInsecure)}, asked.code(),
		"allowed, and on its way to the adapter that is not there: %+v", asked)

	for _, field := range []string{
		"query instance", "query member", "query operation", "query nodeTask", "query impactOf",
		"query planUpgradeInstance",
		"query planDecommissionInstance",
		"query planDrainMember", "subscription instanceTimeline", "subscription operationProgress",
		"mutation upgradeInstance", "mutation decommissionInstance",
		"mutation drainMember", "mutation addMembers", "mutation cancelOperation", "mutation runNodeTask",
		"mutation withdrawControlPlane",
	} {
		for _, r := range roots(schema) {
			if r.String() != field {
				continue
			}
			for _, with := range recipes[field](victim, stranger) {
				got := b.call(schema, r, admin, with)
				require.Equal(t, string(fault.NotFound), got.code(), "%s with %v: %+v", field, with, got)
				require.Empty(t, got.Data, field)
			}
		}
	}
	for _, id := range []any{victim.Instance, victim.Member, victim.Operation, victim.Event, victim.Used, victim.Task,
		victim.Orphan} {
		got := b.post(admin, `query($id: ID!) { node(id: $id) { id } }`, arguments{"id": id})
		require.Equal(t, string(fault.NotFound), got.code(), "%v: %+v", id, got)
	}
	require.Equal(t, 1, b.Count("control_plane_share", "status = $1", lifecycle.ShareAttached))
}
