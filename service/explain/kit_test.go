package explain_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/explain"
)

// house is a tenant with two projects, the first with something of everything.
type house struct {
	tenant         *db.Tenant
	first, second  *db.Project
	instance       *db.Instance
	allocation     *db.Allocation
	operation      *db.Operation
	app            *db.App // that its first project publishes
	manifest       *db.Manifest
	node           *db.ComputeNode
	nodeCredential string
	admin          *db.User // of the tenant
}

// bench is the service under test with two houses.
type bench struct {
	*platformtest.Kit
	*explain.Service
	t           *testing.T
	mine, other *house
	operator    context.Context
}

func newBench(t *testing.T) *bench {
	kit := platformtest.New(t)
	b := &bench{Kit: kit, Service: &explain.Service{DB: kit.DB}, t: t}
	b.mine, b.other, b.operator = b.house(), b.house(), b.As(b.Operator())
	return b
}

func (b *bench) house() *house {
	h := &house{tenant: b.Tenant()}
	h.first, h.second = b.Project(h.tenant), b.Project(h.tenant)
	h.node, h.nodeCredential = b.Node(4)
	app, stored := b.Launchable(h.first, "apps")
	h.app, h.manifest = app, stored
	b.SQL(`UPDATE app SET publisher_tenant_id = $1, publisher_project_id = $2 WHERE id = $3`, h.tenant.ID, h.first.ID,
		app.ID)
	h.allocation = b.Allocation(h.first, h.node)
	h.instance = b.Instance(h.first, stored, lifecycle.InstanceRunning, h.allocation)
	h.operation = b.Operation(h.instance, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	h.admin = b.User(h.tenant, platformtest.Across(authz.TenantAdmin, h.tenant))
	return h
}

// ask explains; who, what and the risk may be empty.
func (b *bench) ask(ctx context.Context, who, what ids.ID, key authz.Key,
	risk ...lifecycle.ActionRisk) (*explain.Explanation, error) {
	in := explain.Input{PermissionKey: key.String()}
	if len(risk) > 0 && risk[0] != "" {
		in.Risk = &risk[0]
	}
	if who != "" {
		in.SubjectID = &who
	}
	if what != "" {
		in.ObjectID = &what
	}
	return b.Permission(ctx, in)
}

func (b *bench) explained(ctx context.Context, who, what ids.ID, key authz.Key,
	risk ...lifecycle.ActionRisk) *explain.Explanation {
	b.t.Helper()
	said, err := b.ask(ctx, who, what, key, risk...)
	require.NoError(b.t, err)
	require.Equal(b.t, said.Allowed, len(said.Because) > 0)
	require.NotEqual(b.t, said.Allowed, len(said.Missing) > 0)
	if said.Allowed {
		require.Empty(b.t, said.AskWhom)
	}
	return said
}

// whom names those to ask.
func whom(said *explain.Explanation) []string {
	var names []string
	for _, ref := range said.AskWhom {
		names = append(names, ref.ID)
	}
	return names
}
