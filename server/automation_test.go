package server

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/adapter/automation"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// An adapter with the key of its own account in a file changes an instance by the account that the instance's project
// chose, over the public API and the SDK alone; rotation of its key and another choice need no restart of it.
func TestAnAdapterActsByAccountsOverTheWire(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	project := b.Project(tenant)
	node, _ := b.Node(2)
	_, stored := b.Launchable(project, "apps")
	instance := b.Instance(project, stored, lifecycle.InstanceRunning, b.Allocation(project, node))
	chosen, _ := b.ServiceAccount(project, authz.AppsInstanceRead, authz.AppsInstanceUpdate)
	own, key := b.ServiceAccount(b.Project(b.Tenant()), authz.AdapterAct)
	b.SQL(`UPDATE adapter SET service_account_id = $1 WHERE name = $2`, own.ID, instance.RuntimeBackend)

	file := filepath.Join(t.TempDir(), "adapter.key")
	_, err := automation.Open(b.url, file)
	require.ErrorContains(t, err, "service account")
	require.NoError(t, os.WriteFile(file, []byte(key+"\n"), 0o600))
	account, err := automation.Open(b.url, file)
	require.NoError(t, err)
	mine, err := account.Own()
	require.NoError(t, err)
	viewer, err := gql.GetViewer(t.Context(), mine)
	require.NoError(t, err)
	require.Equal(t, string(own.ID), viewer.Viewer.Actor.Id)

	change := gql.SetRepairPolicyInput{InstanceId: string(instance.ID), Mode: gql.RepairModeManual, Budget: 7,
		BackOffSeconds: 30, Reason: "it grows"}
	_, err = gql.SetRepairPolicy(t.Context(), mine, change)
	require.Equal(t, client.CodeNotFound, codeOf(err), "by its own account it reaches no instance")
	acting, err := account.For(string(instance.ID))
	require.NoError(t, err)
	_, err = gql.SetRepairPolicy(t.Context(), acting, change)
	require.True(t, automation.Unchosen(err), "%v", err)

	admin, err := client.New(b.url, client.Options{Token: b.Session(b.User(tenant,
		platformtest.In(authz.ProjectAdmin, project)))})
	require.NoError(t, err)
	id := string(chosen.ID)
	made, err := gql.SetOperatorAccount(t.Context(), admin,
		gql.SetOperatorAccountInput{InstanceId: string(instance.ID), ServiceAccountId: &id, Reason: "it may"})
	require.NoError(t, err)
	require.Equal(t, id, made.SetOperatorAccount.OperatorServiceAccountId)
	_, err = gql.SetRepairPolicy(t.Context(), acting, change)
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("audit_entry",
		`allowed AND action = 'setRepairPolicy' AND actor_id = $1 AND tenant_id = $2`, chosen.ID, tenant.ID))

	require.NoError(t, os.WriteFile(file, []byte("gpu_sa_wrong"), 0o600))
	_, err = gql.SetRepairPolicy(t.Context(), acting, change)
	require.NoError(t, err, "the token that it holds is good until its end")
	account.Forget(string(instance.ID))
	_, err = gql.SetRepairPolicy(t.Context(), acting, change)
	require.Equal(t, client.CodeUnauthenticated, codeOf(err), "the file is read again")
}

func codeOf(err error) string {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return ""
	}
	return refused.Code
}
