package automation_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/automation"
	"github.com/gpuaas/app-platform/service/instance"
)

// world is an instance of one tenant, whose adapter has an account in another tenant's project.
type world struct {
	*platformtest.Kit
	verbs    *automation.Service
	project  *db.Project
	admin    context.Context
	instance *db.Instance
	account  *db.ServiceAccount // of the instance's project
	own      *db.ServiceAccount // the adapter's
	key      string             // of own
}

func setup(t *testing.T) *world {
	t.Helper()
	kit := platformtest.New(t)
	w := &world{Kit: kit, verbs: &automation.Service{DB: kit.DB, Keys: kit.Ring}}
	tenant := kit.Tenant()
	w.project = kit.Project(tenant)
	w.admin = kit.As(kit.User(tenant, platformtest.In(authz.ProjectAdmin, w.project)))
	node, _ := kit.Node(2)
	_, stored := kit.Launchable(w.project, "apps")
	w.instance = kit.Instance(w.project, stored, lifecycle.InstanceRunning, kit.Allocation(w.project, node))
	w.account, _ = kit.ServiceAccount(w.project, authz.AppsInstanceRead, authz.AppsInstanceUpdate, authz.AppsNodeRead)
	home := kit.Project(kit.Tenant())
	w.own, w.key = kit.ServiceAccount(home, authz.AdapterAct)
	for table, column := range map[string]string{"service_account": "id", "service_account_key": "service_account_id"} {
		maker := kit.Operator()
		kit.SQL(`UPDATE `+table+` SET maker_id = $1 WHERE `+column+` = $2`, maker.ID, w.own.ID)
	}
	kit.SQL(`UPDATE adapter SET service_account_id = $1 WHERE name = $2`, w.own.ID, w.instance.RuntimeBackend)
	return w
}

func (w *world) choose(account *db.ServiceAccount) automation.ChooseInput {
	in := automation.ChooseInput{InstanceID: w.instance.ID, Reason: "scales by its load"}
	if account != nil {
		in.ServiceAccountID = &account.ID
	}
	return in
}

// chosen chooses the account, and issues a token for it.
func (w *world) chosen(t *testing.T) *automation.Token {
	t.Helper()
	_, err := w.verbs.Choose(w.admin, w.choose(w.account))
	require.NoError(t, err)
	issued, err := w.verbs.IssueToken(w.With(w.key), w.instance.ID)
	require.NoError(t, err)
	return issued
}

func TestAnAdapterActsForAnInstanceByTheAccountThatWasChosenForIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	out, err := w.verbs.Choose(w.admin, w.choose(w.account))
	require.NoError(t, err)
	require.Equal(t, w.account.ID, *out.OperatorServiceAccountID)
	require.Equal(t, 1, w.Count("audit_entry", `allowed AND action = 'setOperatorAccount' AND project_id = $1
		AND after->>'operatorServiceAccountId' = $2 AND reason = 'scales by its load'`, w.project.ID, w.account.ID))

	issued, err := w.verbs.IssueToken(w.With(w.key), w.instance.ID)
	require.NoError(t, err)
	require.Equal(t, w.account.ID, issued.ServiceAccountID)
	require.ElementsMatch(t, w.account.PermissionKeys, issued.PermissionKeys)
	require.WithinDuration(t, time.Now().Add(automation.TokenLife), issued.ExpiresAt, time.Minute)
	require.Equal(t, 1, w.Count("audit_entry",
		`allowed AND action = 'issueOperatorToken' AND tenant_id = $1 AND object_id = $2`,
		w.own.TenantID, w.instance.ID))

	actor, err := w.DB.Read(w.With(issued.Token))
	require.NoError(t, err)
	require.Equal(t, authz.KindServiceAccount, actor.Kind)
	require.Equal(t, w.account.ID, actor.ID)
	require.Equal(t, string(w.own.ID), actor.For.ID, "who acted is told from whom it acted as")
	where := authz.Object{TenantID: w.project.TenantID, ProjectID: w.project.ID, InstanceID: w.instance.ID}
	require.True(t, actor.AllowsOn(authz.AppsInstanceUpdate, where))
	require.False(t, actor.AllowsOn(authz.AppsInstanceDelete, where), "it has no key that the account lacks")
	where.InstanceID = ids.New(ids.Instance)
	require.False(t, actor.AllowsOn(authz.AppsInstanceUpdate, where), "it reaches no other instance of the project")
	where.InstanceID = ""
	require.False(t, actor.AllowsOn(authz.AppsInstanceRead, where), "nor the project itself")

	in := instance.RepairInput{InstanceID: w.instance.ID, Mode: "MANUAL", Budget: 2, BackOffSeconds: 30}
	_, err = (&instance.Service{DB: w.DB}).SetRepair(w.With(issued.Token), in)
	require.NoError(t, err)
	require.Equal(t, 1, w.Count("audit_entry", `allowed AND action = 'setRepairPolicy' AND actor_id = $1`,
		w.account.ID))
}

func TestATokenForAnInstanceEndsWithTheChoiceTheKeyAndTheInstance(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(w *world){
		"another choice": func(w *world) {
			other, _ := w.ServiceAccount(w.project, authz.AppsInstanceRead)
			w.set(other.ID)
		},
		"none": func(w *world) { w.set(nil) },
		"the account's deletion": func(w *world) {
			w.SQL(`UPDATE service_account SET deleted_at = now()
			WHERE id = $1`, w.account.ID)
		},
		"the key's end":              func(w *world) { w.SQL(`UPDATE service_account_key SET revoked_at = now()`) },
		"the key's time":             func(w *world) { w.SQL(`UPDATE service_account_key SET expires_at = now()`) },
		"the adapter's registration": func(w *world) { w.SQL(`UPDATE adapter SET service_account_id = NULL`) },
		"the adapter's own account": func(w *world) {
			w.SQL(`UPDATE service_account SET deleted_at = now()
			WHERE id = $1`, w.own.ID)
		},
		"the key's maker's disabling": func(w *world) {
			w.SQL(`UPDATE person SET disabled_at = now() WHERE id = (SELECT maker_id FROM service_account_key
				WHERE service_account_id = $1)`,
				w.own.ID)
		},
		"the end of the key's maker's right": func(w *world) {
			w.SQL(`UPDATE role_binding SET revoked_at = now() WHERE user_id = (SELECT maker_id FROM service_account_key
				WHERE service_account_id = $1)`, w.own.ID)
		},
		"the own account's maker's disabling": func(w *world) {
			w.SQL(`UPDATE person SET disabled_at = now() WHERE id = (SELECT maker_id FROM service_account
				WHERE id = $1)`, w.own.ID)
		},
		"the adapter's right to act": func(w *world) {
			w.SQL(`UPDATE service_account SET permission_keys = '["project.read"]' WHERE id = $1`, w.own.ID)
		},
		"the instance's teardown": func(w *world) { w.SQL(`UPDATE instance SET released_at = now()`) },
		"a limit to something else": func(w *world) {
			w.SQL(`UPDATE service_account SET limits = '{"objectIds": ["ins_other"]}' WHERE id = $1`, w.account.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			issued := w.chosen(t)
			_, err := w.DB.Read(w.With(issued.Token))
			require.NoError(t, err)
			ends(w)
			_, err = w.DB.Read(w.With(issued.Token))
			require.True(t, fault.Is(err, fault.Unauthenticated), "%v", err)
		})
	}
}

func (w *world) set(account any) {
	w.SQL(`UPDATE instance SET operator_service_account_id = $1 WHERE id = $2`, account, w.instance.ID)
}

func TestOnlyTheInstancesOwnAdapterGetsATokenForIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ctx := w.With(w.key)
	_, err := w.verbs.IssueToken(ctx, w.instance.ID)
	platformtest.Refused(t, err, fault.FailedPrecondition, "instanceId")
	require.Contains(t, err.Error(), "setOperatorAccount", "the remedy is named")
	issued := w.chosen(t)

	_, other := w.ServiceAccount(w.Project(w.Tenant()), authz.AdapterAct)
	_, err = w.verbs.IssueToken(w.With(other), w.instance.ID)
	platformtest.Refused(t, err, fault.NotFound)
	_, err = w.verbs.IssueToken(ctx, ids.New(ids.Instance))
	platformtest.Refused(t, err, fault.NotFound)
	_, err = w.verbs.IssueToken(w.As(w.Operator()), w.instance.ID)
	platformtest.Refused(t, err, fault.NotFound)
	_, err = w.verbs.IssueToken(w.With(issued.Token), w.instance.ID)
	platformtest.Refused(t, err, fault.Forbidden)
	w.SQL(`UPDATE service_account SET permission_keys = '["apps.instance.read"]' WHERE id = $1`, w.own.ID)
	_, err = w.verbs.IssueToken(ctx, w.instance.ID)
	platformtest.Refused(t, err, fault.Forbidden)
	w.SQL(`UPDATE service_account SET permission_keys = '["adapter.act"]' WHERE id = $1`, w.own.ID)
	w.SQL(`UPDATE service_account SET limits = '{"objectIds": ["ins_other"]}' WHERE id = $1`, w.account.ID)
	_, err = w.verbs.IssueToken(ctx, w.instance.ID)
	platformtest.Refused(t, err, fault.FailedPrecondition, "instanceId")
}

func TestAnAccountIsChosenByThoseWhoCouldGiveItsKeys(t *testing.T) {
	t.Parallel()
	w := setup(t)
	elsewhere, _ := w.ServiceAccount(w.Project(w.Tenant()), authz.AppsInstanceRead)
	sibling, _ := w.ServiceAccount(&db.Project{ID: w.Project(&db.Tenant{ID: w.project.TenantID}).ID,
		TenantID: w.project.TenantID}, authz.AppsInstanceRead)
	deleted, _ := w.ServiceAccount(w.project, authz.AppsInstanceRead)
	w.SQL(`UPDATE service_account SET deleted_at = now() WHERE id = $1`, deleted.ID)
	for _, account := range []*db.ServiceAccount{elsewhere, sibling, deleted, {ID: ids.New(ids.ServiceAccount)}} {
		_, err := w.verbs.Choose(w.admin, w.choose(account))
		platformtest.Refused(t, err, fault.NotFound, "input.serviceAccountId")
	}
	broad, _ := w.ServiceAccount(w.project, authz.AppsInstanceUpdate, authz.AppsInstanceDelete)
	_, narrow := w.ServiceAccount(w.project, authz.AppsInstanceRead, authz.AppsInstanceUpdate)
	_, err := w.verbs.Choose(w.With(narrow), w.choose(broad))
	platformtest.Refused(t, err, fault.Forbidden, "input.serviceAccountId")
	_, err = w.verbs.Choose(w.As(w.User(&db.Tenant{ID: w.project.TenantID},
		platformtest.In(authz.ProjectViewer, w.project))),
		w.choose(nil))
	platformtest.Refused(t, err, fault.Forbidden)
	bound, limited := w.ServiceAccount(w.project, authz.AppsInstanceRead, authz.AppsInstanceUpdate, authz.AppsNodeRead)
	w.SQL(`UPDATE service_account SET limits = '{"operationsPerHour": 5}' WHERE id = $1`, bound.ID)
	_, err = w.verbs.Choose(w.With(limited), w.choose(w.account))
	platformtest.Refused(t, err, fault.Forbidden, "input.serviceAccountId")
	require.Zero(t, w.Count("instance", "operator_service_account_id IS NOT NULL"), "a refusal writes nothing")
	w.SQL(`UPDATE instance SET released_at = now()`)
	_, err = w.verbs.Choose(w.admin, w.choose(w.account))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.instanceId")
}

// The database holds the project's wall too, whatever a verb forgets.
func TestARowCannotNameAnotherProjectsAccount(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, err := w.Admin.Exec(t.Context(), `UPDATE instance SET operator_service_account_id = $1`, w.own.ID)
	require.ErrorContains(t, err, "foreign key")
}
