package audit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// attempt requires a key on the project as a verb does, and writes what was allowed.
func attempt(ctx context.Context, kit *platformtest.Kit, project *db.Project, key authz.Key, reason string,
	fail error) error {
	return kit.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		object := authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
		if err := audit.Require(t, "test", key, object, project.ID); err != nil {
			return err
		}
		return errors.Join(audit.Write(ctx, t, audit.Entry{Action: "test", Key: key, Object: object,
			ObjectID: project.ID, Before: map[string]any{"n": 1}, After: map[string]any{"n": 2}, Reason: reason}), fail)
	})
}

func TestTheAuditOfAProjectIsReadNewestFirstByWhoMay(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	tenant, other := kit.Tenant(), kit.Tenant()
	project, second := kit.Project(tenant), kit.Project(tenant)
	admin := kit.As(kit.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
	viewer := kit.As(kit.User(tenant, platformtest.In(authz.ProjectViewer, project)))
	for i := range 5 {
		require.NoError(t, attempt(admin, kit, project, authz.ProjectUpdate, fmt.Sprint(i), nil))
	}
	require.Error(t, attempt(viewer, kit, project, authz.ProjectUpdate, "", nil))
	require.NoError(t, attempt(kit.As(kit.Operator()), kit, second, authz.ProjectUpdate, "elsewhere", nil))
	require.Len(t, kit.Audit(), 7)

	var reasons []string
	args := page.Args{First: 2}
	for {
		p, err := audit.List(admin, kit.DB, project.ID, nil, args)
		require.NoError(t, err)
		for _, row := range p.Rows {
			reasons = append(reasons, row.Reason+row.Code)
		}
		if !p.HasNext {
			break
		}
		args.After = p.Cursors[len(p.Cursors)-1]
	}
	require.Equal(t, []string{"FORBIDDEN", "4", "3", "2", "1", "0"}, reasons)

	p, err := audit.List(admin, kit.DB, project.ID, nil, page.Args{First: 2})
	require.NoError(t, err)
	one, err := audit.Get(admin, kit.DB, p.Rows[1].ID)
	require.NoError(t, err)
	require.JSONEq(t, `{"n": 1}`, string(one.Before))
	require.JSONEq(t, `{"n": 2}`, string(one.After))
	for name, c := range map[string]struct {
		as   context.Context
		code fault.Code
	}{
		"a viewer":       {viewer, fault.Forbidden},
		"another tenant": {kit.As(kit.User(other, platformtest.Across(authz.TenantAdmin, other))), fault.NotFound},
	} {
		_, err = audit.List(c.as, kit.DB, project.ID, nil, page.Args{First: 2})
		require.True(t, fault.Is(err, c.code), "%s: %v", name, err)
		_, err = audit.Get(c.as, kit.DB, one.ID)
		require.True(t, fault.Is(err, c.code), "%s: %v", name, err)
	}
	_, err = audit.List(admin, kit.DB, second.ID, nil, page.Args{First: 2})
	require.True(t, fault.Is(err, fault.NotFound))
	_, err = audit.List(admin, kit.DB, project.ID, nil,
		page.Args{First: 2, After: page.Cursor("audit "+string(second.ID), ids.New(ids.Audit))})
	require.True(t, fault.Is(err, fault.CursorInvalid), "a cursor of another project's audit")
}

func TestAnEntryStandsIfAndOnlyIfTheChangeDoes(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	admin := kit.As(kit.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
	require.Error(t, attempt(admin, kit, project, authz.ProjectUpdate, "", errors.New("the change fails")))
	require.Empty(t, kit.Audit())
}

func TestARefusalRepeatedIsOneRowWithACount(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	viewer := kit.As(kit.User(tenant, platformtest.In(authz.ProjectViewer, project)))
	for range 20 {
		require.Error(t, attempt(viewer, kit, project, authz.ProjectUpdate, "", nil))
	}
	entries := kit.Audit()
	require.Len(t, entries, 1)
	require.Equal(t, 20, entries[0].Repeats)
	require.False(t, entries[0].Allowed)
	require.Equal(t, "project.update", entries[0].PermissionKey)
	require.Equal(t, project.ID, *entries[0].ProjectID)
	require.Error(t, attempt(viewer, kit, project, authz.ProjectUpdate, "", nil))
	require.Len(t, kit.Audit(), 2, "a written row is closed")
}
