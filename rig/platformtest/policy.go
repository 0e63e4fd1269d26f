package platformtest

import (
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// Policy writes a project's overlay in the place of the one that holds, or the platform's for no project.
func (k *Kit) Policy(project *db.Project, document string) {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	create := k.Ent.PolicyOverlay.Create().SetID(ids.New(ids.PolicyOverlay)).SetDocument([]byte(document)).
		SetScope(lifecycle.PolicyPlatform)
	place := ""
	if project != nil {
		create.SetScope(lifecycle.PolicyProject).SetTenantID(project.TenantID).SetProjectID(project.ID)
		place = string(project.ID)
	}
	held := k.Count("policy_overlay", "coalesce(project_id, tenant_id, '') = $1", place)
	k.SQL(`UPDATE policy_overlay SET superseded_at = now() WHERE superseded_at IS NULL
		AND coalesce(project_id, tenant_id, '') = $1`, place)
	require.NoError(k.t, create.SetRevision(held+1).Exec(ctx))
}
