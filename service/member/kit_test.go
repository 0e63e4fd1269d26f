package member_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/member"
)

// bundle is a running instance of three workers on two whole nodes, of a component that has 2 to 5.
type bundle struct {
	*platformtest.Kit
	t       *testing.T
	service *member.Service
	adapter *platformtest.StandIn
	tenant  *db.Tenant
	project *db.Project
	app     *db.App
	stored  *db.Manifest
	admin   context.Context
	one     *db.Allocation
	two     *db.Allocation
	made    *db.Instance
	members []*db.Member
}

func setup(t *testing.T, change ...func(document map[string]any)) *bundle {
	t.Helper()
	b := &bundle{Kit: platformtest.New(t), t: t}
	b.adapter = b.StandIn()
	b.tenant = b.Tenant()
	b.project = b.Project(b.tenant)
	b.admin = b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	b.app = b.App("apps")
	document := platformtest.Document(b.app, "1.0.0", b.Adapter(b.adapter.URL, nil), b.Artifact(lifecycle.StageActive))
	document["components"] = []map[string]any{
		{"key": "worker", "displayName": "Workers", "min": 2, "max": 5, "default": 2},
		{"key": "spare", "displayName": "Spares", "min": 0, "max": 70, "default": 0},
	}
	for _, c := range change {
		c(document)
	}
	b.stored = b.Manifest(lifecycle.StageActive, document)
	b.Entitle(b.project, b.app)
	b.one, b.two = b.allocation(), b.allocation()
	b.made = b.Instance(b.project, b.stored, lifecycle.InstanceRunning, b.one, b.one, b.two)
	b.SQL(`INSERT INTO instance_generation (id, tenant_id, project_id, instance_id, number, manifest_id, app_version,
		config, created_at)
		SELECT 'gen_1', tenant_id, project_id, id, 1, manifest_id, app_version, config, created_at FROM instance`)
	b.members = b.Ent.Member.Query().Order(db.Asc(dbmember.FieldOrdinal)).AllX(t.Context())
	b.service = &member.Service{DB: b.DB, Calls: b.adapter.Calls}
	return b
}

func (b *bundle) allocation() *db.Allocation {
	node, _ := b.Node(4)
	return b.Allocation(b.project, node)
}

// on is an input that is accepted as it is.
func (b *bundle) on(i int, key string) member.Input {
	return member.Input{MemberID: b.members[i].ID, DeadlineSeconds: 600, Reason: "a test", IdempotencyKey: key}
}

func (b *bundle) add(key string, count int, allocations ...*db.Allocation) member.AddInput {
	in := member.AddInput{InstanceID: b.made.ID, ComponentKey: "worker", Count: count, DeadlineSeconds: 600,
		Reason: "a test", IdempotencyKey: key}
	for _, allocation := range allocations {
		in.AllocationIDs = append(in.AllocationIDs, allocation.ID)
	}
	return in
}

// stands moves a member to a state past every rule but the table of states.
func (b *bundle) stands(i int, path ...lifecycle.MemberStatus) {
	b.t.Helper()
	for _, status := range path {
		b.SQL(`UPDATE member SET status = $2 WHERE id = $1`, b.members[i].ID, status)
	}
}

// open makes an open operation of a kind on some of the members.
func (b *bundle) open(kind lifecycle.OperationKind, on ...int) *db.Operation {
	b.t.Helper()
	op := b.Operation(b.made, kind, lifecycle.OperationRunning)
	targets := []ids.ID{}
	for _, i := range on {
		targets = append(targets, b.members[i].ID)
	}
	return b.Ent.Operation.UpdateOneID(op.ID).SetTargets(targets).SaveX(b.t.Context())
}

// written is how many rows there are of everything that a verb writes, and what they hold that it changes.
func (b *bundle) written() string {
	b.t.Helper()
	counts := ""
	for _, table := range []string{"instance", "member", "operation", "operation_step", "app_instance_event",
		"idempotency", "allocation"} {
		counts += fmt.Sprint(table, "=", b.Count(table, ""), " ")
	}
	var state string
	err := b.Admin.QueryRow(context.Background(), `SELECT (SELECT string_agg(id || status || coalesce(last_operation_id,
		''), ',' ORDER BY id) FROM member) ||
		(SELECT string_agg(id || status || roles::text || revision, ',' ORDER BY id)
		FROM instance) || coalesce((SELECT string_agg(id || state, ',' ORDER BY id) FROM operation), '')`).Scan(&state)
	require.NoError(b.t, err)
	return counts + fmt.Sprint("bound=", b.Count("allocation", "instance_id IS NOT NULL"), " allowed=",
		b.Count("audit_entry", "allowed"), state)
}

func (b *bundle) operation(op ids.ID) *db.Operation { return b.Ent.Operation.GetX(b.t.Context(), op) }
