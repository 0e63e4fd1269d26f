package share_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/share"
)

// soon bounds what is waited for.
const soon = 20 * time.Second

// bundle is a tenant with two projects, each with an admin and a member, and a running control plane of the first that
// serves the tenant.
type bundle struct {
	*platformtest.Kit
	t                     *testing.T
	tenant                *db.Tenant
	home, guest           *db.Project
	owner, other          context.Context
	member, guestMember   *db.User
	stored                *db.Manifest
	made                  *db.Instance
	service               *share.Service
	instances             *instance.Service
	standIn               *platformtest.StandIn
	homeAdmin, guestAdmin *db.User
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{Kit: platformtest.New(t), t: t}
	b.standIn = b.StandIn()
	b.tenant = b.Tenant()
	b.home, b.guest = b.Project(b.tenant), b.Project(b.tenant)
	b.homeAdmin = b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.home))
	b.guestAdmin = b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.guest))
	b.owner, b.other = b.As(b.homeAdmin), b.As(b.guestAdmin)
	b.member = b.User(b.tenant, platformtest.In(authz.ProjectMember, b.home))
	b.guestMember = b.User(b.tenant, platformtest.In(authz.ProjectMember, b.guest))
	_, b.stored = b.Launchable(b.home, "apps")
	b.SQL(`UPDATE adapter SET url = $1`, b.standIn.URL)
	node, _ := b.Node(4)
	b.made = b.Instance(b.home, b.stored, lifecycle.InstanceRunning, b.Allocation(b.home, node))
	b.SQL(`UPDATE instance SET control_plane_scope = 'TENANT' WHERE id = $1`, b.made.ID)
	b.service = &share.Service{DB: b.DB}
	b.instances = &instance.Service{DB: b.DB, Calls: b.standIn.Calls}
	return b
}

func (b *bundle) offer(key string) share.OfferInput {
	return share.OfferInput{InstanceID: b.made.ID, ProjectID: b.guest.ID, Reason: "one queue for all",
		IdempotencyKey: key}
}

func (b *bundle) offered() *db.ControlPlaneShare {
	b.t.Helper()
	row, err := b.service.Offer(b.owner, b.offer("offer"))
	require.NoError(b.t, err)
	return row
}

func (b *bundle) attached() *db.ControlPlaneShare {
	b.t.Helper()
	row, err := b.service.Accept(b.other, share.Input{ShareID: b.offered().ID, Reason: "we need it"})
	require.NoError(b.t, err)
	require.Equal(b.t, lifecycle.ShareAttached, row.Status)
	return row
}

// action is an action of the shared control plane that the other project requests.
func (b *bundle) action(key string) instance.ActionInput {
	return instance.ActionInput{InstanceID: b.made.ID, Action: "queue.read", ProjectID: b.guest.ID, IdempotencyKey: key,
		Reason: "a reading with a reason is in the audit each time"}
}

// told returns the types of the instance's events, in order.
func (b *bundle) told() []string {
	b.t.Helper()
	var types []string
	require.NoError(b.t, b.Admin.QueryRow(b.t.Context(),
		`SELECT coalesce(array_agg(type ORDER BY seq), '{}') FROM app_instance_event WHERE instance_id = $1`,
		b.made.ID).Scan(&types))
	return types
}

// written is how much there is of what the verbs write.
func (b *bundle) written() [4]int {
	b.t.Helper()
	return [4]int{b.Count("control_plane_share", ""),
		b.Count("control_plane_share", "ended_at IS NULL AND status = 'ATTACHED'"),
		b.Count("app_instance_event", ""), b.Count("audit_entry", "allowed")}
}

// nobody is an id that no share has.
var nobody = ids.New(ids.ControlPlane)
