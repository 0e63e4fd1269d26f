package explain_test

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
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/explain"
)

func TestAPersonLearnsWhichRowGivesAPermissionAndWhoCanGiveWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	projectAdmin := b.User(b.mine.tenant, platformtest.In(authz.ProjectAdmin, b.mine.first))
	b.User(b.mine.tenant, platformtest.In(authz.ProjectAdmin, b.mine.second))
	disabled := b.User(b.mine.tenant, platformtest.In(authz.ProjectAdmin, b.mine.first))
	b.SQL(`UPDATE person SET disabled_at = now() WHERE id = $1`, disabled.ID)
	viewer := b.User(b.mine.tenant)
	binding := b.Bind(viewer, platformtest.In(authz.ProjectViewer, b.mine.first))
	ctx := b.As(viewer)

	yes := b.explained(ctx, "", b.mine.instance.ID, authz.AppsInstanceRead)
	require.Len(t, yes.Because, 1)
	require.Equal(t, string(binding.ID), yes.Because[0].ID)
	require.Equal(t, "BINDING", yes.Because[0].Kind)
	require.Equal(t, "PROJECT", yes.Because[0].Scope)
	require.Equal(t, "project_viewer", yes.Because[0].Role)
	require.Equal(t, b.mine.tenant.ID, *yes.TenantID)
	require.Equal(t, b.mine.first.ID, *yes.ProjectID)
	require.Equal(t, "See instances, members, their timeline and health.", yes.Description)

	no := b.explained(ctx, "", b.mine.instance.ID, authz.AppsInstanceCreate)
	require.Equal(t, "project_admin", no.Missing[0].Role)
	require.Equal(t, "PROJECT", no.Missing[0].Scope)
	require.Equal(t, []string{string(projectAdmin.ID), string(b.mine.admin.ID)}, whom(no),
		"the project's first, and nobody disabled, of a sibling or of the platform")
	require.NotEmpty(t, no.AskWhom[0].Name)

	staff := b.explained(b.operator, viewer.ID, b.mine.instance.ID, authz.AppsInstanceCreate)
	require.Len(t, staff.AskWhom, 3, "whoever has a role at the platform is told of its staff too")
	none := b.explained(ctx, "", "", authz.TenantCreate)
	require.Nil(t, none.TenantID)
	require.Contains(t, none.Missing[0].Message, "platform staff")
	require.Empty(t, none.AskWhom)
}

// A binding that was given in an emergency is marked, and an account's limits are named beside what it may.
func TestEmergencyGrantsAndLimitsAreNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	person := b.User(b.mine.tenant)
	grant := b.Bind(person, platformtest.In(authz.ProjectAdmin, b.mine.first))
	require.False(t, b.explained(b.As(person), "", b.mine.instance.ID, authz.AppsInstanceRead).Because[0].BreakGlass)
	b.SQL(`UPDATE role_binding SET break_glass = true WHERE id = $1`, grant.ID)
	given := b.explained(b.As(person), "", b.mine.instance.ID, authz.AppsInstanceRead).Because[0]
	require.True(t, given.BreakGlass)
	require.Contains(t, given.Message, "break-glass")

	_, key := b.ServiceAccount(b.mine.first, authz.AppsQueueSubmit)
	b.SQL(`UPDATE service_account SET limits = '{"maxRisk": "READ", "operationsPerHour": 2}'`)
	robot := b.With(key)
	held := b.explained(robot, "", b.mine.instance.ID, authz.AppsQueueSubmit)
	require.Contains(t, held.Because[0].Message, "risk up to READ")
	require.Contains(t, held.Because[0].Message, "at most 2 operations an hour")
	require.True(t, b.explained(robot, "", b.mine.instance.ID, authz.AppsQueueSubmit, lifecycle.RiskRead).Allowed)
	beyond := b.explained(robot, "", b.mine.instance.ID, authz.AppsQueueSubmit, lifecycle.RiskWrite)
	require.False(t, beyond.Allowed)
	require.Equal(t, "LIMIT", beyond.Missing[0].Kind)
}

func TestABindingThatIsOverIsNamedAsWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	person := b.User(b.mine.tenant, platformtest.In(authz.ProjectViewer, b.mine.first))
	yesterday := time.Now().Add(-24 * time.Hour)
	grant := platformtest.In(authz.ProjectAdmin, b.mine.first)
	grant.ExpiresAt = &yesterday
	ended := b.Bind(person, grant)
	old := b.Bind(person, platformtest.In(authz.ProjectAdmin, b.mine.first))
	b.SQL(`UPDATE role_binding SET revoked_at = now() - interval '100 days' WHERE id = $1`, old.ID)
	no := b.explained(b.As(person), "", b.mine.instance.ID, authz.AppsInstanceCreate)
	require.Equal(t, string(ended.ID), no.Missing[0].ID)
	require.WithinDuration(t, yesterday, *no.Missing[0].ExpiresAt, time.Second)
	for _, ground := range no.Missing {
		require.NotEqual(t, string(old.ID), ground.ID, "what is over for long is no help")
	}
}

func TestAMachineLearnsWhatStandsBetweenItAndAnObject(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	account, _ := b.ServiceAccount(b.mine.first, authz.AppsInstanceRead)
	admin := b.As(b.mine.admin)
	about := func(key authz.Key, what ids.ID) *explain.Explanation {
		return b.explained(admin, account.ID, what, key)
	}
	require.Equal(t, "ALLOW_LIST", about(authz.AppsInstanceRead, b.mine.instance.ID).Because[0].Kind)
	listless := about(authz.AppsInstanceCreate, b.mine.first.ID)
	require.Equal(t, "ALLOW_LIST", listless.Missing[0].Kind)
	require.Equal(t, []string{string(b.mine.admin.ID)}, whom(listless), "who can put the key on the list")
	require.Equal(t, "CEILING", about(authz.BindingGrant, b.mine.first.ID).Missing[0].Kind)
	require.Empty(t, about(authz.BindingGrant, b.mine.first.ID).AskWhom)
	require.Equal(t, "LIMIT", about(authz.AppsInstanceRead, b.mine.second.ID).Missing[0].Kind)

	b.SQL(`UPDATE service_account SET limits = jsonb_build_object('objectIds', jsonb_build_array($1::text))
		WHERE id = $2`,
		b.mine.allocation.ID, account.ID)
	require.Contains(t, about(authz.AppsInstanceRead, b.mine.instance.ID).Missing[0].Message, "limits do not reach")
	b.SQL(`UPDATE service_account SET limits = NULL, deleted_at = now() WHERE id = $1`, account.ID)
	require.Contains(t, about(authz.AppsInstanceRead, b.mine.instance.ID).Missing[0].Message, "was deleted")

	token := b.explained(admin, b.mine.operation.ID, b.mine.instance.ID, authz.TaskRun)
	require.Equal(t, "TOKEN", token.Because[0].Kind)
	require.False(t, b.explained(admin, b.mine.operation.ID, b.mine.first.ID, authz.TaskRun).Allowed)
	b.SQL(`UPDATE operation SET ended_at = now(), state = 'SUCCEEDED' WHERE id = $1`, b.mine.operation.ID)
	require.Contains(t, b.explained(admin, b.mine.operation.ID, b.mine.instance.ID, authz.TaskRun).Missing[0].Message,
		"ended")

	require.True(t, b.explained(b.operator, b.mine.node.ID, b.mine.node.ID, authz.NodeReport).Allowed)
	require.False(t, b.explained(b.operator, b.mine.node.ID, b.other.node.ID, authz.NodeReport).Allowed)
	b.SQL(`UPDATE compute_node SET status = 'RETIRED' WHERE id = $1`, b.mine.node.ID)
	require.Contains(t, b.explained(b.operator, b.mine.node.ID, b.mine.node.ID, authz.NodeReport).Missing[0].Message,
		"retired")
}

func TestMachinesMayAskAboutThemselves(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, key := b.ServiceAccount(b.mine.first, authz.AppsInstanceRead)
	require.True(t, b.explained(b.With(key), "", b.mine.instance.ID, authz.AppsInstanceRead).Allowed)
	require.Equal(t, "ALLOW_LIST", b.explained(b.With(key), "", b.mine.instance.ID,
		authz.AllocationRead).Missing[0].Kind)
	token := b.With(b.OperationToken(b.mine.operation, authz.TaskRun))
	require.True(t, b.explained(token, "", b.mine.instance.ID, authz.TaskRun).Allowed)
	require.False(t, b.explained(token, "", b.mine.instance.ID, authz.OperationReport).Allowed,
		"the token in use does not carry it")
	node := b.With(b.mine.nodeCredential)
	require.True(t, b.explained(node, "", b.mine.node.ID, authz.TaskExecute).Allowed)
	require.False(t, b.explained(node, "", b.mine.node.ID, authz.NodeRead).Allowed)
	_, err := b.ask(node, "", b.mine.instance.ID, authz.AppsInstanceRead)
	platformtest.Refused(t, err, fault.Forbidden)
}

func TestWhoMayNotKnowIsToldNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	viewer := b.User(b.mine.tenant, platformtest.In(authz.ProjectViewer, b.mine.first))
	projectAdmin := b.User(b.mine.tenant, platformtest.In(authz.ProjectAdmin, b.mine.first))
	stranger := b.User(b.other.tenant, platformtest.In(authz.ProjectViewer, b.other.first))
	as := b.As(viewer)
	for name, c := range map[string]struct {
		who, what ids.ID
		want      fault.Code
	}{
		"another tenant's instance":     {"", b.other.instance.ID, fault.NotFound},
		"another tenant":                {"", b.other.tenant.ID, fault.NotFound},
		"a sibling project":             {"", b.mine.second.ID, fault.NotFound},
		"an instance that is not there": {"", ids.New(ids.Instance), fault.NotFound},
		"an id of no object":            {"", ids.New(ids.Worker), fault.NotFound},
		"no id at all":                  {"", "nonsense", fault.NotFound},
		"another person":                {projectAdmin.ID, b.mine.first.ID, fault.Forbidden},
		"another person, elsewhere":     {projectAdmin.ID, b.other.first.ID, fault.NotFound},
		"another tenant's person":       {stranger.ID, b.mine.first.ID, fault.NotFound},
		"a subject that is none":        {b.mine.first.ID, b.mine.first.ID, fault.NotFound},
		"a person, of the platform":     {projectAdmin.ID, "", fault.Forbidden},
	} {
		_, err := b.ask(as, c.who, c.what, authz.AppsInstanceRead)
		require.True(t, fault.Is(err, c.want), "%s: want %s, got %v", name, c.want, err)
	}
	require.True(t, b.explained(b.As(projectAdmin), b.mine.admin.ID, b.mine.instance.ID,
		authz.AppsInstanceCreate).Allowed,
		"a project's admin learns of the tenant's roles that reach the project")
	_, err := b.ask(b.As(projectAdmin), viewer.ID, b.mine.tenant.ID, authz.TenantRead)
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.Permission(as, explain.Input{PermissionKey: "apps.instance.fly"})
	platformtest.Refused(t, err, fault.InvalidArgument)
	require.ErrorContains(t, err, "input.permissionKey")
	_, err = b.Permission(t.Context(), explain.Input{PermissionKey: "tenant.read"})
	platformtest.Refused(t, err, fault.Unauthenticated)
}

func TestTheCatalogIsAskedForInAnyScope(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	app := b.App("scheduler")
	viewer := b.User(b.mine.tenant, platformtest.In(authz.ProjectViewer, b.mine.first))
	require.True(t, b.explained(b.As(viewer), "", app.ID, authz.SchedulerCatalogRead).Allowed)
	require.False(t, b.explained(b.As(viewer), "", app.ID, authz.AppManage).Allowed)
	require.False(t, b.explained(b.As(b.User(b.mine.tenant)), "", app.ID, authz.SchedulerCatalogRead).Allowed)
}

func TestEveryKindOfIdIsLookedUpOrUnknown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	admin := b.As(b.mine.admin)
	for _, kind := range ids.Kinds() {
		for _, ctx := range []context.Context{b.operator, admin} {
			_, err := b.ask(ctx, "", ids.New(kind), authz.TenantRead)
			require.True(t, fault.Is(err, fault.NotFound), "%s: %v", kind, err)
		}
	}
}

// A client that keeps objects by type and id must not take one ground for another.
func TestEveryGroundHasAnIDOfItsOwnThatStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	account, _ := b.ServiceAccount(b.mine.first, authz.AppsInstanceRead)
	admin, says := b.As(b.mine.admin), map[string]string{}
	for range 2 {
		for _, of := range []struct {
			what ids.ID
			key  authz.Key
		}{
			{b.mine.instance.ID, authz.AppsInstanceRead}, {b.mine.instance.ID, authz.AllocationRead},
			{b.mine.second.ID, authz.BindingGrant}, {b.mine.second.ID, authz.AllocationRead},
		} {
			got := b.explained(admin, account.ID, of.what, of.key)
			for _, ground := range append(got.Because, got.Missing...) {
				require.NotEmpty(t, ground.ID)
				require.Equal(t, string(account.ID), ground.RowID)
				whole := fmt.Sprint(ground.Kind, ground.Role, ground.Scope, ground.Message, of.what, of.key)
				if said, known := says[ground.ID]; known {
					require.Equal(t, said, whole, "one id for two grounds")
				}
				says[ground.ID] = whole
			}
		}
	}
	viewer, seen := b.As(b.User(b.mine.tenant, platformtest.In(authz.ProjectViewer, b.mine.first))), map[string]bool{}
	for _, ground := range b.explained(viewer, "", b.mine.first.ID, authz.AppsInstanceCreate).Missing {
		require.False(t, seen[ground.ID], "the roles that would give it are told apart")
		seen[ground.ID] = true
		require.Empty(t, ground.RowID, "no one has given them yet")
	}
	require.Greater(t, len(seen), 1)
}
