package canary_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/canary"
)

// bundle is an app that a project publishes, with an active version and a canary that began an hour ago, and two
// projects of other tenants that launch it.
type bundle struct {
	*platformtest.Kit
	t         *testing.T
	publisher *db.Project
	one, two  *db.Project
	app       *db.App
	adapter   *db.Adapter
	active    *db.Manifest
	canary    *db.Manifest
	began     time.Time
	clock     time.Duration // since began, of the next launch
	service   *canary.Service
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{Kit: platformtest.New(t), t: t, began: time.Now().UTC().Add(-time.Hour).Truncate(time.Second)}
	b.publisher, b.one, b.two = b.Project(b.Tenant()), b.Project(b.Tenant()), b.Project(b.Tenant())
	b.app, b.adapter = b.App("apps"), b.Adapter("http://adapter.test", nil)
	b.SQL(`UPDATE app SET publisher_tenant_id = $2, publisher_project_id = $3 WHERE id = $1`, b.app.ID,
		b.publisher.TenantID, b.publisher.ID)
	b.active = b.version("1.0.0", lifecycle.StageActive)
	b.canary = b.version("1.1.0", lifecycle.StageCanary)
	b.SQL(`UPDATE manifest SET canary_percent = 20, canary_started_at = $2 WHERE id = $1`, b.canary.ID, b.began)
	b.service = &canary.Service{DB: b.DB}
	return b
}

func (b *bundle) version(version string, stage lifecycle.Stage) *db.Manifest {
	return b.Manifest(stage, platformtest.Document(b.app, version, b.adapter, b.Artifact(lifecycle.StageActive)))
}

// launch is a launch of a version a second after the one before, which came to the state after so long.
func (b *bundle) launch(of *db.Manifest, project *db.Project, state lifecycle.OperationState,
	took time.Duration) *db.Instance {
	b.t.Helper()
	b.clock += time.Second
	return b.launchAt(of, project, state, b.began.Add(b.clock), took)
}

func (b *bundle) launchAt(of *db.Manifest, project *db.Project, state lifecycle.OperationState, at time.Time,
	took time.Duration) *db.Instance {
	b.t.Helper()
	row := b.Instance(project, of, lifecycle.InstanceRunning)
	op := b.Operation(row, lifecycle.InstanceCreate, state)
	b.SQL(`UPDATE operation SET created_at = $2, ended_at = CASE WHEN ended_at IS NULL THEN NULL
		ELSE $3::timestamptz END
		WHERE id = $1`, op.ID, at, at.Add(took))
	require.NoError(b.t, b.Ent.Generation.Create().SetID(ids.New(ids.Generation)).SetTenantID(row.TenantID).
		SetProjectID(row.ProjectID).
		SetInstanceID(row.ID).SetNumber(1).SetManifestID(of.ID).SetAppVersion(of.Version).SetConfig(row.Config).
		SetOperationID(op.ID).
		SetCreatedAt(at).Exec(b.t.Context()))
	return row
}

// launches are many in turn, of project two: C and A came to run, c and a failed, of the canary and the active version.
func (b *bundle) launches(runs string) {
	b.t.Helper()
	for _, one := range runs {
		of, state := b.active, lifecycle.OperationSucceeded
		if one == 'C' || one == 'c' {
			of = b.canary
		}
		if one == 'c' || one == 'a' {
			state = lifecycle.OperationFailed
		}
		b.launch(of, b.two, state, 100*time.Millisecond)
	}
}

func (b *bundle) staff() context.Context { return b.As(b.Operator()) }

func (b *bundle) report() *canary.Report {
	b.t.Helper()
	report, err := b.service.Report(b.staff(), b.canary.ID)
	require.NoError(b.t, err)
	return report
}

func (b *bundle) stored() *db.Manifest {
	b.t.Helper()
	row, err := b.Ent.Manifest.Get(b.t.Context(), b.canary.ID)
	require.NoError(b.t, err)
	return row
}

// step notes a promotion, as the verb does.
func (b *bundle) step(of *db.Manifest, from, to lifecycle.Stage, at time.Time) {
	b.t.Helper()
	b.SQL(`UPDATE manifest SET stage = $2 WHERE id = $1`, of.ID, to)
	require.NoError(b.t, b.Ent.Promotion.Create().SetID(ids.New(ids.Promotion)).SetObjectID(of.ID).SetFromStage(from).
		SetToStage(to).
		SetCreatedAt(at).Exec(b.t.Context()))
}

func (b *bundle) viewer(project *db.Project) context.Context {
	tenant, err := b.Ent.Tenant.Get(b.t.Context(), project.TenantID)
	require.NoError(b.t, err)
	return b.As(b.User(tenant, platformtest.In(authz.ProjectViewer, project)))
}

// seenBy returns how many launches a login role can see.
func (b *bundle) seenBy(from *pgxpool.Pool) (n int) {
	b.t.Helper()
	require.NoError(b.t, from.QueryRow(b.t.Context(), `SELECT count(*) FROM platform.canary_launches($1, 100, true)`,
		b.canary.ID).Scan(&n))
	return n
}
