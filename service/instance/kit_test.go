package instance_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
)

// bundle is a project whose admin may launch an app with the components head and worker into two
// whole nodes.
type bundle struct {
	*platformtest.Kit
	t        *testing.T
	tenant   *db.Tenant
	project  *db.Project
	admin    *db.User
	ctx      context.Context
	adapter  *db.Adapter
	app      *db.App
	stored   *db.Manifest
	one, two *db.Allocation
	standIn  *platformtest.StandIn
	service  *instance.Service
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{Kit: platformtest.New(t), t: t}
	b.standIn = b.StandIn()
	b.tenant = b.Tenant()
	b.project = b.Project(b.tenant)
	b.admin = b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project))
	b.ctx = b.As(b.admin)
	b.app, b.adapter = b.App("apps"), b.Adapter(b.standIn.URL, nil)
	b.stored = b.Manifest(lifecycle.StageActive, b.document("1.0.0"))
	b.Entitle(b.project, b.app)
	b.one, b.two = b.allocation(), b.allocation()
	b.service = &instance.Service{DB: b.DB, Calls: b.standIn.Calls}
	return b
}

// document is a manifest with two components, a config of bounds and an action of a schema.
func (b *bundle) document(version string) map[string]any {
	document := platformtest.Document(b.app, version, b.adapter, b.Artifact(lifecycle.StageActive))
	document["components"] = []map[string]any{
		{"key": "head", "displayName": "Head", "min": 1, "max": 1, "default": 1},
		{"key": "worker", "displayName": "Workers", "min": 1, "max": 4, "default": 2},
	}
	document["configSchema"] = map[string]any{"type": "object", "additionalProperties": false,
		"properties": map[string]any{
			"size": map[string]any{"type": "integer", "minimum": 1, "default": 2},
			"note": map[string]any{"type": "string"}}}
	schema := func(required string) map[string]any {
		return map[string]any{"type": "object", "required": []string{required},
			"properties": map[string]any{required: map[string]any{"type": "integer"}}}
	}
	document["actions"] = []map[string]any{
		{"name": "queue.submit", "displayName": "Submit", "risk": "write", "permissionKey": "apps.queue.submit",
			"inputSchema": schema("n"), "outputSchema": schema("id")},
		{"name": "queue.read", "displayName": "Read", "risk": "read", "permissionKey": "apps.queue.read",
			"inputSchema": map[string]any{"type": "object"}, "outputSchema": map[string]any{"type": "object"}},
	}
	return document
}

func (b *bundle) allocation() *db.Allocation {
	node, _ := b.Node(4)
	return b.Allocation(b.project, node)
}

// launch is an input that is accepted as it is.
func (b *bundle) launch(change ...func(*instance.LaunchInput)) instance.LaunchInput {
	in := instance.LaunchInput{
		ProjectID: b.project.ID, AppSlug: b.app.Slug, Name: "demo", AllocationIDs: []ids.ID{b.one.ID, b.two.ID},
		DeadlineSeconds: 600, Reason: "a test", IdempotencyKey: "k",
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

func (b *bundle) launched() *instance.Started {
	b.t.Helper()
	started, err := b.service.Launch(b.ctx, b.launch())
	require.NoError(b.t, err)
	return started
}

// status moves an instance along the state table, and its operation to an end.
func (b *bundle) status(of *instance.Started, path ...lifecycle.InstanceStatus) {
	b.t.Helper()
	for _, status := range path {
		b.SQL(`UPDATE instance SET status = $2 WHERE id = $1`, of.Instance.ID, status)
	}
	b.SQL(`UPDATE operation SET state = 'RUNNING' WHERE id = $1`, of.Operation.ID)
	b.SQL(`UPDATE operation SET state = 'SUCCEEDED', ended_at = now() WHERE id = $1`, of.Operation.ID)
}

// written is how many rows there are of everything that a verb writes.
func (b *bundle) written() string {
	b.t.Helper()
	counts := ""
	for _, table := range []string{"instance", "member", "operation", "operation_step", "app_instance_event",
		"idempotency"} {
		counts += fmt.Sprint(table, "=", b.Count(table, ""), " ")
	}
	return counts + fmt.Sprint("bound=", b.Count("allocation", "instance_id IS NOT NULL"), " allowed=",
		b.Count("audit_entry", "allowed"))
}

// paths are the fields that a refusal names.
func paths(err error) (named []string) {
	for _, reason := range fault.From(err).Reasons {
		named = append(named, reason.Path)
	}
	return named
}

// soon is a bound for what is waited for.
const soon = 20 * time.Second

// publishes makes the project the publisher of the app.
func (b *bundle) publishes() {
	b.t.Helper()
	b.SQL(`UPDATE app SET publisher_tenant_id = $1, publisher_project_id = $2 WHERE id = $3`, b.project.TenantID,
		b.project.ID, b.app.ID)
}
