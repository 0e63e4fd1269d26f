package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

func TestASearchFindsWhatFitsEveryPartOfItsFilter(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	admin := kit.User(tenant, platformtest.In(authz.ProjectAdmin, project))
	viewer := kit.User(tenant, platformtest.In(authz.ProjectViewer, project))
	for i := range 3 {
		require.NoError(t, attempt(kit.As(admin), kit, project, authz.ProjectUpdate, fmt.Sprint(i), nil))
	}
	require.Error(t, attempt(kit.As(viewer), kit, project, authz.ProjectUpdate, "", nil))
	entries := kit.Audit()
	require.Len(t, entries, 4)
	yes, no := true, false
	text := func(s string) *string { return &s }
	later := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		filter audit.Filter
		found  int
	}{
		"all":             {audit.Filter{}, 4},
		"an actor":        {audit.Filter{ActorID: text(string(viewer.ID))}, 1},
		"kinds":           {audit.Filter{ActorKinds: []string{"USER", "NODE"}}, 4},
		"another kind":    {audit.Filter{ActorKinds: []string{"NODE"}}, 0},
		"an object":       {audit.Filter{ObjectID: text(string(project.ID))}, 4},
		"a key":           {audit.Filter{PermissionKey: text("project.update")}, 4},
		"an action":       {audit.Filter{Action: text("other")}, 0},
		"what was denied": {audit.Filter{Allowed: &no}, 1},
		"what was not":    {audit.Filter{Allowed: &yes, ActorID: text(string(admin.ID))}, 3},
		"break-glass":     {audit.Filter{BreakGlass: &yes}, 0},
		"no break-glass":  {audit.Filter{BreakGlass: &no}, 4},
		"a correlation": {audit.Filter{CorrelationID: text(entries[0].CorrelationID), From: &entries[0].CreatedAt},
			len(sameCorrelation(entries[0].CorrelationID, kit))},
		"the past":   {audit.Filter{To: &entries[0].CreatedAt}, 0},
		"the future": {audit.Filter{From: &later}, 0},
	} {
		c.filter.ProjectID = &project.ID
		got, err := audit.Search(kit.As(admin), kit.DB, c.filter, page.Args{First: 50})
		require.NoError(t, err, name)
		require.Len(t, got.Rows, c.found, name)
	}
	first, err := audit.Search(kit.As(admin), kit.DB, audit.Filter{ProjectID: &project.ID}, page.Args{First: 3})
	require.NoError(t, err)
	require.True(t, first.HasNext)
	rest, err := audit.Search(kit.As(admin), kit.DB, audit.Filter{ProjectID: &project.ID},
		page.Args{First: 3, After: first.Cursors[2]})
	require.NoError(t, err)
	require.Equal(t, entries[0].ID, rest.Rows[0].ID, "newest first, and on from there")
}

func sameCorrelation(id string, kit *platformtest.Kit) []struct{} {
	return make([]struct{}, kit.Count("audit_entry", "correlation_id = $1", id))
}

func TestASearchStaysWithinItsScope(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	tenant, other := kit.Tenant(), kit.Tenant()
	project := kit.Project(tenant)
	admin := kit.As(kit.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	stranger := kit.As(kit.User(other, platformtest.Across(authz.TenantAdmin, other)))
	viewer := kit.As(kit.User(tenant, platformtest.In(authz.ProjectViewer, project)))
	require.NoError(t, attempt(kit.As(kit.Operator()), kit, project, authz.ProjectUpdate, "", nil))
	long := strings.Repeat("x", 300)
	now := time.Now()
	for name, c := range map[string]struct {
		as     context.Context
		filter audit.Filter
		code   fault.Code
		path   string
	}{
		"the tenant's admin": {admin, audit.Filter{TenantID: &tenant.ID}, "", ""},
		"the operator":       {kit.As(kit.Operator()), audit.Filter{}, "", ""},
		"a viewer":           {viewer, audit.Filter{ProjectID: &project.ID}, fault.Forbidden, ""},
		"another's project":  {stranger, audit.Filter{ProjectID: &project.ID}, fault.NotFound, ""},
		"another tenant":     {stranger, audit.Filter{TenantID: &tenant.ID}, fault.NotFound, ""},
		"everything":         {admin, audit.Filter{}, fault.Forbidden, ""},
		"a text without end": {admin, audit.Filter{TenantID: &tenant.ID, ObjectID: &long}, fault.InvalidArgument,
			"filter.objectId"},
		"too many kinds": {admin, audit.Filter{TenantID: &tenant.ID, ActorKinds: make([]string, 9)},
			fault.InvalidArgument, "filter.actorKinds"},
		"a time that is none": {admin, audit.Filter{TenantID: &tenant.ID, From: &now, To: &now}, fault.InvalidArgument,
			"filter.to"},
	} {
		got, err := audit.Search(c.as, kit.DB, c.filter, page.Args{First: 10})
		if c.code == "" {
			require.NoError(t, err, name)
			require.Len(t, got.Rows, 1, name)
			continue
		}
		require.True(t, fault.Is(err, c.code), "%s: %v", name, err)
		if c.path != "" {
			require.Equal(t, c.path, fault.From(err).Reasons[0].Path)
		}
	}
}

// However large the audit is, no search reads all of it.
func TestNoSearchScansTheWholeAudit(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	kit.SQL(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, permission_key, action, allowed,
		object_id, correlation_id, created_at, break_glass)
		SELECT 'aud_' || lpad(n::text, 26, '0'), 'ten_' || n % 50, 'prj_' || n % 500, 'USER', 'usr_' || n % 700, 'key.' || n
		% 60, 'action' || n % 80,
			n % 10 > 0, 'ins_' || n % 5000, 'c' || n, now() - interval '1 second' * (60000 - n), n % 20000 = 0
			FROM generate_series(1, 60000) n`)
	kit.SQL(`ANALYZE audit_entry`)
	text := func(s string) *string { return &s }
	id := func(s string) *ids.ID { i := ids.ID(s); return &i }
	yes, no := true, false
	recent := time.Now().Add(-time.Minute)
	for name, filter := range map[string]audit.Filter{
		"nothing": {}, "tenant": {TenantID: id("ten_7")}, "project": {ProjectID: id("prj_7")},
		"actor":  {ActorID: text("usr_7")},
		"object": {ObjectID: text("ins_7")}, "key": {PermissionKey: text("key.7")}, "action": {Action: text("action7")},
		"correlation": {CorrelationID: text("c7")}, "time": {From: &recent}, "break-glass": {BreakGlass: &yes},
		"denied": {Allowed: &no},
		"kind":   {ActorKinds: []string{"USER"}}, "actor and time": {ActorID: text("usr_7"), From: &recent},
	} {
		where, args := audit.Where(filter)
		var plan json.RawMessage
		require.NoError(t, kit.Admin.QueryRow(t.Context(),
			`EXPLAIN (FORMAT JSON) SELECT * FROM audit_entry WHERE `+where+` ORDER BY id DESC
				LIMIT 51`, args...).Scan(&plan),
			name)
		require.NotContains(t, string(plan), "Seq Scan", "%s: %s", name, plan)
	}
}
