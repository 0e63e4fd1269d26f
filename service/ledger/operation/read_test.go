package operation_test

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
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// bundle is a project with an instance, and the callers that read its operations.
type bundle struct {
	*platformtest.Kit
	t        *testing.T
	tenant   *db.Tenant
	project  *db.Project
	stored   *db.Manifest
	made     *db.Instance
	admin    context.Context
	stranger context.Context
	blind    context.Context // sees the project but may not read operations
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{Kit: platformtest.New(t), t: t}
	b.tenant = b.Tenant()
	b.project = b.Project(b.tenant)
	_, b.stored = b.Launchable(b.project, "apps")
	b.made = b.instance()
	b.admin = b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	b.stranger = b.As(b.User(b.Tenant()))
	_, key := b.ServiceAccount(b.project, authz.AppsInstanceRead)
	b.blind = b.With(key)
	return b
}

func (b *bundle) instance() *db.Instance {
	node, _ := b.Node(1)
	return b.Instance(b.project, b.stored, lifecycle.InstanceRunning, b.Allocation(b.project, node))
}

func TestOneOperationIsShownToThoseWhoMayReadIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	op := b.Operation(b.made, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	found, err := operation.Get(b.admin, b.DB, op.ID)
	require.NoError(t, err)
	require.Equal(t, op.ID, found.ID)
	require.Nil(t, found.Error())
	require.Equal(t, "usr_fixture", found.Requester().ID)
	_, err = operation.Get(b.stranger, b.DB, op.ID)
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = operation.Get(b.blind, b.DB, op.ID)
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = operation.Get(b.admin, b.DB, ids.New(ids.Operation))
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = operation.Get(t.Context(), b.DB, op.ID)
	platformtest.Refused(t, err, fault.Unauthenticated, "")

	other := b.Operation(b.instance(), lifecycle.InstanceCreate, lifecycle.OperationRunning)
	confined := b.With(b.OperationToken(op, authz.OperationRead))
	_, err = operation.Get(confined, b.DB, op.ID)
	require.NoError(t, err)
	_, err = operation.Get(confined, b.DB, other.ID)
	platformtest.Refused(t, err, fault.NotFound, "")
	many, err := operation.Many(confined, b.DB, []ids.ID{op.ID, other.ID})
	require.NoError(t, err)
	require.Len(t, many, 1)
}

func TestAFailureSaysWhoCanMendIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	op := b.Operation(b.made, lifecycle.InstanceCreate, lifecycle.OperationFailed)
	b.SQL(`UPDATE operation SET error_code = 'ADAPTER_UNAVAILABLE', error_message = 'nobody answers', error_owner
		= 'adapter', error_retryable = true`)
	found, err := operation.Get(b.admin, b.DB, op.ID)
	require.NoError(t, err)
	require.Equal(t, &operation.Failure{Code: "ADAPTER_UNAVAILABLE", Message: "nobody answers", Owner: "adapter",
		Retryable: true}, found.Error())
}

func TestOperationsAreListedNewestFirstPageByPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var want []ids.ID
	for range 5 {
		want = append([]ids.ID{b.Operation(b.made, lifecycle.InstanceCreate, lifecycle.OperationSucceeded).ID}, want...)
	}
	running := b.Operation(b.instance(), lifecycle.InstanceCreate, lifecycle.OperationRunning).ID
	var seen []ids.ID
	args := page.Args{First: 2}
	for {
		got, err := operation.List(b.admin, b.DB, operation.Filter{InstanceID: b.made.ID}, args)
		require.NoError(t, err)
		for _, view := range got.Rows {
			seen = append(seen, view.ID)
		}
		if !got.HasNext {
			break
		}
		args.After = got.Cursors[len(got.Cursors)-1]
	}
	require.Equal(t, want, seen)
	all, err := operation.List(b.admin, b.DB, operation.Filter{ProjectID: b.project.ID}, page.Args{First: 10})
	require.NoError(t, err)
	require.Len(t, all.Rows, 6)
	open, err := operation.List(b.admin, b.DB, operation.Filter{ProjectID: b.project.ID,
		States: []lifecycle.OperationState{lifecycle.OperationRunning}}, page.Args{First: 10})
	require.NoError(t, err)
	require.Len(t, open.Rows, 1)
	require.Equal(t, running, open.Rows[0].ID)
	_, err = operation.List(b.admin, b.DB, operation.Filter{ProjectID: b.project.ID},
		page.Args{First: 1, After: page.Cursor("instances", "x")})
	platformtest.Refused(t, err, fault.CursorInvalid, "after")
}

func TestListsAreRefusedToThoseWhoMayNotReadThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Operation(b.made, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	inProject, ofInstance := operation.Filter{ProjectID: b.project.ID}, operation.Filter{InstanceID: b.made.ID}
	_, err := operation.List(b.stranger, b.DB, inProject, page.Args{First: 5})
	platformtest.Refused(t, err, fault.NotFound, "")
	hidden, err := operation.List(b.stranger, b.DB, ofInstance, page.Args{First: 5})
	require.NoError(t, err)
	require.Empty(t, hidden.Rows)
	_, err = operation.List(b.blind, b.DB, inProject, page.Args{First: 5})
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = operation.List(b.blind, b.DB, ofInstance, page.Args{First: 5})
	platformtest.Refused(t, err, fault.Forbidden, "")
}

func TestStepsComeInTheirOrderAndAWatcherSeesWhatDiffers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	op := b.Operation(b.made, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	b.SQL(`INSERT INTO operation_step (id, operation_id, tenant_id, project_id, name, ordinal, state)
		SELECT 'stp_' || n, id, tenant_id, project_id, 'step ' || n, 3 - n, 'PENDING'
		FROM operation, generate_series(1, 3) n`)
	steps, err := operation.Steps(b.admin, b.DB, []ids.ID{op.ID})
	require.NoError(t, err)
	latest, err := operation.Latest(t.Context(), b.DB, op.ID)
	require.NoError(t, err)
	for _, found := range [][]*db.OperationStep{steps[op.ID], latest.Loaded} {
		require.Len(t, found, 3)
		require.Equal(t, "step 3", found[0].Name)
		require.Equal(t, "step 1", found[2].Name)
	}
	hidden, err := operation.Steps(b.stranger, b.DB, []ids.ID{op.ID})
	require.NoError(t, err)
	require.Empty(t, hidden)
	_, err = operation.Latest(t.Context(), b.DB, ids.New(ids.Operation))
	require.Error(t, err)

	now := time.Now()
	before := &operation.View{Operation: op}
	require.False(t, before.Differs(before))
	for name, change := range map[string]func(*db.Operation){
		"state": func(o *db.Operation) { o.State = lifecycle.OperationFailed }, "phase": func(o *db.Operation) {
			o.Phase = "x"
		},
		"percent": func(o *db.Operation) { o.Percent = 1 }, "message": func(o *db.Operation) { o.Message = "x" },
		"attempt": func(o *db.Operation) { o.DispatchAttempt++ }, "epoch": func(o *db.Operation) { o.ClaimEpoch++ },
		"end": func(o *db.Operation) { o.EndedAt = &now },
	} {
		changed := *op
		change(&changed)
		require.True(t, before.Differs(&operation.View{Operation: &changed}), name)
	}
}
