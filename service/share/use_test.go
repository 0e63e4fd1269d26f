package share_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/blocker"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/share"
)

func TestAnAttachedProjectAsksTheAppForWhatItsOwnKeysAllow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.attached()
	out, err := b.instances.InvokeAction(b.As(b.guestMember), b.action("k"))
	require.NoError(t, err)
	require.JSONEq(t, `{}`, string(out.Output))
	_, robot := b.ServiceAccount(b.guest, authz.AppsQueueRead)
	_, err = b.instances.InvokeAction(b.With(robot), b.action("k"))
	require.NoError(t, err)
	require.Len(t, b.standIn.Actions, 2)
	call := b.standIn.Actions[0]
	require.Equal(t, []string{string(b.guest.ID), string(b.guestMember.ID), string(b.made.ID), "queue.read",
		out.CorrelationID},
		[]string{call.Requester.ProjectID, call.Requester.ID, call.Instance.ID, call.Name, call.CorrelationID})
	require.Len(t, call.Members, 1, "the adapter is told of the members that the requester does not see")
	require.NotEmpty(t, call.Members[0].Node.ID)
	require.NotEmpty(t, call.Members[0].Node.AllocationID)
	require.Equal(t, 2, b.Count("audit_entry",
		"allowed AND permission_key = 'apps.queue.read' AND project_id = $1 AND object_id = $2", b.guest.ID, b.made.ID))
	require.Zero(t, b.Count("idempotency", "result -> 'output' IS NOT NULL"), "what was read is not kept")

	_, err = b.instances.InvokeAction(b.As(b.member),
		instance.ActionInput{InstanceID: b.made.ID, Action: "queue.read", ProjectID: b.home.ID, IdempotencyKey: "own"})
	require.NoError(t, err, "the instance's own project may be named")
	require.Equal(t, string(b.home.ID), b.standIn.Actions[2].Requester.ProjectID)
}

func TestTheOwnersTimelineIsToldWhatAnAttachedProjectDid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	document := platformtest.Document(b.App("apps"), "1.0.0", b.Adapter(b.standIn.URL, nil),
		b.Artifact(lifecycle.StageActive))
	object := map[string]any{"type": "object"}
	document["actions"] = []map[string]any{{"name": "queue.submit", "displayName": "Submit", "risk": "write",
		"permissionKey": "apps.queue.submit",
		"inputSchema":   object, "outputSchema": object}}
	writing := b.Manifest(lifecycle.StageActive, document)
	b.SQL(`UPDATE instance SET manifest_id = $2 WHERE id = $1`, b.made.ID, writing.ID)
	b.SQL(`UPDATE instance SET runtime_backend = $2 WHERE id = $1`, b.made.ID, writing.AdapterName)
	row := b.attached()
	in := b.action("k")
	in.Action = "queue.submit"
	b.standIn.Act = func() (int, string) { // the project leaves while the app still works for it
		if _, err := b.service.Detach(b.other, share.Input{ShareID: row.ID}); err != nil {
			return http.StatusInternalServerError, `{}`
		}
		return http.StatusOK, `{"output":{}}`
	}
	_, err := b.instances.InvokeAction(b.As(b.guestMember), in)
	require.NoError(t, err, "what was begun before the detachment is brought to its end")
	require.Equal(t, 1, b.Count("app_instance_event",
		"type = 'apps.instance.action_invoked' AND payload ->> 'project' = $1 AND project_id = $2", b.guest.ID,
		b.home.ID))
	require.Equal(t, []string{"apps.instance.control_plane_offered", "apps.instance.control_plane_attached",
		"apps.instance.control_plane_detached", "apps.instance.action_invoked"}, b.told())
	_, err = b.instances.InvokeAction(b.As(b.guestMember), in)
	platformtest.Refused(t, err, fault.NotFound, "")
	require.Len(t, b.standIn.Actions, 1, "not even the stored answer is given out")
}

func TestWithoutAnAttachedShareThereIsNothingToAsk(t *testing.T) {
	t.Parallel()
	b := setup(t)
	third := b.Project(b.tenant)
	thirdAdmin := b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, third)))
	tenantAdmin := b.As(b.User(b.tenant, platformtest.Across(authz.ProjectAdmin, b.tenant)))
	guest := b.As(b.guestMember)
	offered := b.offered()
	none := func(ctx context.Context, project ids.ID, why string) {
		in := b.action("k")
		in.ProjectID = project
		_, err := b.instances.InvokeAction(ctx, in)
		require.True(t, fault.Is(err, fault.NotFound), "%s: %v", why, err)
	}
	none(guest, b.guest.ID, "offered is not attached")
	_, err := b.service.Accept(b.other, share.Input{ShareID: offered.ID})
	require.NoError(t, err)
	none(guest, "", "the key is asked for in the attached project, which must be named")
	none(guest, third.ID, "a project that is not attached")
	none(thirdAdmin, b.guest.ID, "somebody else's attachment")
	none(tenantAdmin, third.ID, "a tenant's admin naming a project that is not attached")
	none(b.As(b.member), b.guest.ID, "the owner's people, who hold nothing in the attached project")
	viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.guest)))
	in := b.action("k")
	in.Action = "queue.burn"
	_, err = b.instances.InvokeAction(viewer, in)
	platformtest.Refused(t, err, fault.NotFound, "input.action")
	_, robot := b.ServiceAccount(b.guest, authz.AppsInstanceRead)
	_, err = b.instances.InvokeAction(b.With(robot), b.action("k"))
	platformtest.Refused(t, err, fault.Forbidden, "")
	b.SQL(`UPDATE instance SET status = 'STOPPING' WHERE id = $1`, b.made.ID)
	_, err = b.instances.InvokeAction(guest, b.action("k"))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.instanceId")
	require.Empty(t, b.standIn.Actions)
	require.Zero(t, b.Count("idempotency", "project_id = $1", b.guest.ID))
}

func TestBothWaysOutEndTheUseAtOnce(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*bundle, ids.ID) error{
		"detached": func(b *bundle, id ids.ID) error {
			_, err := b.service.Detach(b.other, share.Input{ShareID: id})
			return err
		},
		"withdrawn": func(b *bundle, id ids.ID) error {
			_, err := b.service.Withdraw(b.owner, share.Input{ShareID: id, Reason: "out"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			row := b.attached()
			guest := b.As(b.guestMember)
			_, err := b.instances.InvokeAction(guest, b.action("before"))
			require.NoError(t, err)
			require.NoError(t, leave(b, row.ID))
			for _, key := range []string{"before", "after"} {
				_, err = b.instances.InvokeAction(guest, b.action(key))
				platformtest.Refused(t, err, fault.NotFound, "")
			}
			require.Len(t, b.standIn.Actions, 1)
		})
	}
}

// An attached project's people see the control plane through the share and through nothing else.
func TestAnAttachedProjectSeesNothingThroughTheReadsOfInstances(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.attached()
	var member, told ids.ID
	require.NoError(t, b.Admin.QueryRow(t.Context(), `SELECT id FROM member WHERE instance_id = $1`,
		b.made.ID).Scan((*string)(&member)))
	require.NoError(t, b.Admin.QueryRow(t.Context(), `SELECT min(id) FROM app_instance_event WHERE instance_id = $1`,
		b.made.ID).Scan((*string)(&told)))
	_, robot := b.ServiceAccount(b.guest, authz.Keys()...)
	blockers := &blocker.Service{DB: b.DB}
	for name, ctx := range map[string]context.Context{"its admin": b.other, "its robot": b.With(robot)} {
		for what, read := range map[string]func() error{
			"instance": func() error { _, err := b.instances.Get(ctx, b.made.ID, instance.Want{}); return err },
			"members": func() error {
				_, err := b.instances.Members(ctx, b.made.ID, page.Args{First: 10})
				return err
			},
			"timeline": func() error {
				_, err := b.instances.Events(ctx, b.made.ID, page.Args{First: 10})
				return err
			},
			"allocations": func() error { _, err := b.instances.Allocations(ctx, b.made.ID); return err },
			"member":      func() error { _, err := b.instances.Member(ctx, member); return err },
			"event":       func() error { _, err := b.instances.Event(ctx, told); return err },
			"upgrade": func() error {
				_, err := b.instances.Upgrade(ctx, instance.UpgradeInput{InstanceID: b.made.ID,
					Config: json.RawMessage(`{"size":3}`), DeadlineSeconds: 60, IdempotencyKey: "k"})
				return err
			},
			"decommission": func() error {
				_, err := b.instances.Decommission(ctx, instance.DecommissionInput{InstanceID: b.made.ID, Force: true,
					Reason: "mine", DeadlineSeconds: 60, IdempotencyKey: "k"})
				return err
			},
			"plan": func() error { _, err := b.instances.PlanDecommission(ctx, b.teardown(true)); return err },
		} {
			require.True(t, fault.Is(read(), fault.NotFound), "%s reads %s: %v", name, what, read())
		}
		many, err := b.instances.Many(ctx, []ids.ID{b.made.ID})
		require.NoError(t, err)
		require.Empty(t, many, name)
		listed, err := b.instances.List(ctx, b.guest.ID, instance.Filter{}, page.Args{First: 10})
		require.NoError(t, err)
		require.Empty(t, listed.Rows, name)
		blocked, err := blockers.Instances(ctx, []ids.ID{b.made.ID})
		if err == nil {
			require.Empty(t, blocked[b.made.ID], name)
		}
	}
}

// asWorker changes the instance as the workers do when they end it.
func (b *bundle) asWorker(sql string) {
	b.t.Helper()
	require.NoError(b.t, b.DB.As(b.t.Context(), authz.System("worker"), func(ctx context.Context, w *tx.Tx) error {
		_, err := w.Exec(ctx, sql, b.made.ID)
		return err
	}))
}

func TestSharesEndWithTheirControlPlane(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*bundle){
		"stopped": func(b *bundle) {
			b.asWorker(`UPDATE instance SET status = 'STOPPING' WHERE id = $1`)
			b.asWorker(`UPDATE instance SET status = 'STOPPED' WHERE id = $1`)
		},
		"failed and released": func(b *bundle) {
			b.asWorker(`UPDATE instance SET status = 'FAILED' WHERE id = $1`)
			require.Equal(b.t, 2, b.Count("control_plane_share", "ended_at IS NULL"), "a failed one is not over yet")
			b.asWorker(`UPDATE instance SET released_at = now() WHERE id = $1`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.attached()
			in := b.offer("third")
			in.ProjectID = b.Project(b.tenant).ID
			_, err := b.service.Offer(b.owner, in)
			require.NoError(t, err)
			end(b)
			require.Zero(t, b.Count("control_plane_share", "ended_at IS NULL"))
			require.Equal(t, 1, b.Count("control_plane_share", "status = 'DETACHED' AND project_id = $1", b.guest.ID))
			require.Equal(t, 1, b.Count("control_plane_share", "status = 'WITHDRAWN' AND project_id = $1",
				in.ProjectID))
		})
	}
}
