package drills_test

import (
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// forThePlatform makes the drill one of the platform's own: its app is a system app, in a project of the platform's
// tenant, and the operator is who reads and acts.
func (w *ward) forThePlatform() {
	w.t.Helper()
	own := shared.Demo.PlatformTenantID
	made, err := gql.CreateProject(w.ctx, w.operator, gql.CreateProjectInput{TenantId: own,
		Slug: "drill-" + client.NewKey()[:10], DisplayName: "A drill's", IdempotencyKey: client.NewKey()})
	w.fine(err)
	_, err = gql.GrantRole(w.ctx, w.operator, gql.GrantRoleInput{SubjectId: shared.Demo.OperatorID,
		Role: "project_admin", ProjectId: made.CreateProject.Id, Reason: "a drill"})
	w.fine(err)
	w.project, w.tenant, w.smokes, w.system = made.CreateProject.Id, own, made.CreateProject.Id, true
	w.admin, w.walker.Person = w.operator, shared.Operator
	w.about.ProjectID, w.about.TenantID = w.project, w.tenant
}

// systemDrills are those of apps that the operator runs for the platform.
var systemDrills = map[string]drill{
	"operator/system-app/failed": {
		fault: func(w *ward) {
			w.forThePlatform()
			r := w.releases(nil)
			does(&r.create, broken)
			_, version := r.draft()
			r.artifact(gql.StageActive)
			instance, operation := r.smoke(version)
			w.ends(operation)
			w.about.ID, w.about.ArtifactID = operation, ""
			w.mend = func() {
				does(&r.create, nil)
				w.succeeds(w.decommission(instance, false))
				_, again := r.smoke(version)
				w.succeeds(again)
				w.about.ID = again
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"operator/system-app/unwell": {
		fault: func(w *ward) {
			w.forThePlatform()
			r := w.releases(nil)
			_, version := r.draft()
			r.artifact(gql.StageActive)
			w.retired(func() string {
				instance, operation := r.smoke(version)
				w.succeeds(operation)
				return instance
			})
			w.about.ArtifactID = ""
		},
		cure: func(w *ward) { w.replaces(w.about.ID) },
	},
}
