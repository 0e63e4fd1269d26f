package share_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/share"
)

func TestAShareGoesFromOfferByConsentToDetachment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.offered()
	require.Equal(t, []any{lifecycle.ShareOffered, b.home.ID, b.guest.ID, b.made.ID, "one queue for all",
		b.homeAdmin.DisplayName},
		[]any{row.Status, row.OwnerProjectID, row.ProjectID, row.InstanceID, row.Reason, row.OfferedBy})
	again, err := b.service.Offer(b.owner, b.offer("offer"))
	require.NoError(t, err)
	require.Equal(t, row.ID, again.ID, "a repeat makes nothing")

	accepted, err := b.service.Accept(b.other, share.Input{ShareID: row.ID})
	require.NoError(t, err)
	require.Equal(t, lifecycle.ShareAttached, accepted.Status)
	require.Equal(t, b.guestAdmin.DisplayName, accepted.AnsweredBy)
	require.NotNil(t, accepted.AnsweredAt)
	require.Nil(t, accepted.EndedAt)

	left, err := b.service.Detach(b.other, share.Input{ShareID: row.ID, Reason: "we have our own"})
	require.NoError(t, err)
	require.Equal(t, []any{lifecycle.ShareDetached, "we have our own"}, []any{left.Status, left.EndReason})
	require.NotNil(t, left.EndedAt)
	require.Equal(t, []string{"apps.instance.control_plane_offered", "apps.instance.control_plane_attached",
		"apps.instance.control_plane_detached"}, b.told())
	for _, project := range []ids.ID{b.home.ID, b.guest.ID} {
		for action, key := range map[string]string{"offerControlPlane": "control_plane.offer",
			"acceptControlPlane": "control_plane.attach", "detachControlPlane": "control_plane.detach"} {
			require.Equal(t, 1, b.Count("audit_entry",
				"allowed AND action = $1 AND permission_key = $2 AND project_id = $3 AND object_id = $4",
				action, key, project, row.ID), "%s in %s", action, project)
		}
	}
	fresh, err := b.service.Offer(b.owner, b.offer("another"))
	require.NoError(t, err, "what has ended can be offered anew")
	require.NotEqual(t, row.ID, fresh.ID)
}

func TestAnOfferIsDeclinedOrWithdrawnAndAnAttachedProjectPutOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	declined, err := b.service.Decline(b.other, share.Input{ShareID: b.offered().ID, Reason: "no need"})
	require.NoError(t, err)
	require.Equal(t, []any{lifecycle.ShareDeclined, "no need"}, []any{declined.Status, declined.EndReason})
	require.NotNil(t, declined.EndedAt)

	second, err := b.service.Offer(b.owner, b.offer("second"))
	require.NoError(t, err)
	withdrawn, err := b.service.Withdraw(b.owner, share.Input{ShareID: second.ID, Reason: "a mistake"})
	require.NoError(t, err)
	require.Equal(t, lifecycle.ShareWithdrawn, withdrawn.Status)

	third, err := b.service.Offer(b.owner, b.offer("third"))
	require.NoError(t, err)
	_, err = b.service.Accept(b.other, share.Input{ShareID: third.ID})
	require.NoError(t, err)
	out, err := b.service.Withdraw(b.owner, share.Input{ShareID: third.ID, Reason: "too many jobs"})
	require.NoError(t, err)
	require.Equal(t, lifecycle.ShareDetached, out.Status)
	require.Equal(t, []string{
		"apps.instance.control_plane_offered", "apps.instance.control_plane_declined",
		"apps.instance.control_plane_offered",
		"apps.instance.control_plane_withdrawn",
		"apps.instance.control_plane_offered", "apps.instance.control_plane_attached",
		"apps.instance.control_plane_detached"}, b.told())
}

func TestWhatMayNotBeOfferedIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stranger := b.Tenant()
	theirs, dead := b.Project(stranger), b.Project(b.tenant)
	b.SQL(`UPDATE project SET deleted_at = now() WHERE id = $1`, dead.ID)
	node, _ := b.Node(4)
	alone := b.Instance(b.home, b.stored, lifecycle.InstanceRunning, b.Allocation(b.home, node))
	strangers := b.As(b.User(stranger, platformtest.In(authz.ProjectAdmin, theirs)))
	to := func(project ids.ID) share.OfferInput { in := b.offer("k"); in.ProjectID = project; return in }
	reason := func(text string) share.OfferInput { in := b.offer("k"); in.Reason = text; return in }
	before := b.written()
	for name, c := range map[string]struct {
		ctx  context.Context
		in   share.OfferInput
		code fault.Code
		path string
	}{
		"another tenant's project": {b.owner, to(theirs.ID), fault.NotFound, "input.projectId"},
		"a deleted project":        {b.owner, to(dead.ID), fault.NotFound, "input.projectId"},
		"no project":               {b.owner, to(ids.New(ids.Project)), fault.NotFound, "input.projectId"},
		"its own project":          {b.owner, to(b.home.ID), fault.InvalidArgument, "input.projectId"},
		"no instance": {b.owner, share.OfferInput{InstanceID: ids.New(ids.Instance), ProjectID: b.guest.ID,
			Reason: "r", IdempotencyKey: "k"}, fault.NotFound, ""},
		"one that serves a project": {b.owner, share.OfferInput{InstanceID: alone.ID, ProjectID: b.guest.ID,
			Reason: "r", IdempotencyKey: "k"},
			fault.FailedPrecondition, "input.instanceId"},
		"by a member":          {b.As(b.member), b.offer("k"), fault.Forbidden, ""},
		"by the other project": {b.other, b.offer("k"), fault.NotFound, ""},
		"by another tenant":    {strangers, b.offer("k"), fault.NotFound, ""},
		"no reason":            {b.owner, reason("  "), fault.InvalidArgument, "input.reason"},
		"a long reason":        {b.owner, reason(strings.Repeat("x", 1001)), fault.InvalidArgument, "input.reason"},
		"no key":               {b.owner, b.offer(""), fault.InvalidArgument, "input.idempotencyKey"},
	} {
		_, err := b.service.Offer(c.ctx, c.in)
		require.Error(t, err, name)
		platformtest.Refused(t, err, c.code, c.path)
	}
	require.Equal(t, before, b.written())
	row := b.offered()
	_, err := b.service.Offer(b.owner, b.offer("twice"))
	platformtest.Refused(t, err, fault.Conflict, "input.projectId")
	require.Contains(t, err.Error(), string(row.ID))
	b.SQL(`UPDATE instance SET status = 'STOPPING' WHERE id = $1`, b.made.ID)
	_, err = b.service.Offer(b.owner, b.offer("late"))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.instanceId")
}

func TestEachEndMovesAShareByItsOwnKeyAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.offered()
	guestMember, stranger := b.As(b.guestMember), b.Tenant()
	strangers := b.As(b.User(stranger, platformtest.Across(authz.TenantAdmin, stranger),
		platformtest.In(authz.ProjectAdmin, b.Project(stranger))))
	third := b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.Project(b.tenant))))
	_, robot := b.ServiceAccount(b.guest, authz.Keys()...)
	verbs := map[string]func(context.Context, share.Input) (*db.ControlPlaneShare, error){
		"accept": b.service.Accept, "decline": b.service.Decline, "withdraw": b.service.Withdraw,
		"detach": b.service.Detach,
	}
	before := b.written()
	for name, c := range map[string]struct {
		ctx  context.Context
		verb string
		code fault.Code
	}{
		"the owner accepts":                  {b.owner, "accept", fault.NotFound},
		"the owner declines":                 {b.owner, "decline", fault.NotFound},
		"the owner detaches":                 {b.owner, "detach", fault.NotFound},
		"the other withdraws":                {b.other, "withdraw", fault.NotFound},
		"a member accepts":                   {guestMember, "accept", fault.Forbidden},
		"a member detaches":                  {guestMember, "detach", fault.Forbidden},
		"a robot accepts":                    {b.With(robot), "accept", fault.Forbidden},
		"another tenant accepts":             {strangers, "accept", fault.NotFound},
		"another tenant withdraws":           {strangers, "withdraw", fault.NotFound},
		"a third project accepts":            {third, "accept", fault.NotFound},
		"the other leaves what it is not in": {b.other, "detach", fault.FailedPrecondition},
	} {
		_, err := verbs[c.verb](c.ctx, share.Input{ShareID: row.ID, Reason: "mine"})
		require.True(t, fault.Is(err, c.code), "%s: %v", name, err)
	}
	for name, verb := range verbs {
		_, err := verb(b.other, share.Input{ShareID: nobody, Reason: "mine"})
		platformtest.Refused(t, err, fault.NotFound, "")
		_, err = verb(b.other, share.Input{ShareID: row.ID, Reason: strings.Repeat("x", 1001)})
		platformtest.Refused(t, err, fault.InvalidArgument, "reason")
		require.NotEmpty(t, name)
	}
	_, err := b.service.Withdraw(b.owner, share.Input{ShareID: row.ID, Reason: " "})
	platformtest.Refused(t, err, fault.InvalidArgument, "reason")
	require.Equal(t, before, b.written())
	var denied int
	for _, entry := range b.Audit() {
		if !entry.Allowed && entry.ActorID == string(b.guestMember.ID) {
			denied++
		}
	}
	require.Equal(t, 2, denied, "refusals are audited")
}

func TestATenantsAdminStandsAtBothEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin := b.As(b.User(b.tenant, platformtest.Across(authz.TenantAdmin, b.tenant),
		platformtest.Across(authz.ProjectAdmin, b.tenant)))
	row, err := b.service.Offer(admin, b.offer("k"))
	require.NoError(t, err)
	_, err = b.service.Accept(admin, share.Input{ShareID: row.ID})
	require.NoError(t, err)
	_, err = b.service.Detach(admin, share.Input{ShareID: row.ID})
	require.NoError(t, err)
}

func TestWhatHasEndedMovesNoMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.attached()
	_, err := b.service.Accept(b.other, share.Input{ShareID: row.ID})
	platformtest.Refused(t, err, fault.FailedPrecondition, "shareId")
	_, err = b.service.Withdraw(b.owner, share.Input{ShareID: row.ID, Reason: "over"})
	require.NoError(t, err)
	before := b.written()
	for _, verb := range []func(context.Context, share.Input) (*db.ControlPlaneShare, error){
		b.service.Accept, b.service.Decline, b.service.Detach} {
		_, err := verb(b.other, share.Input{ShareID: row.ID})
		platformtest.Refused(t, err, fault.FailedPrecondition, "shareId")
	}
	_, err = b.service.Withdraw(b.owner, share.Input{ShareID: row.ID, Reason: "again"})
	platformtest.Refused(t, err, fault.FailedPrecondition, "shareId")
	require.Equal(t, before, b.written())
}

func TestOnlyALiveControlPlaneIsAccepted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.offered()
	b.SQL(`UPDATE instance SET status = 'STOPPING' WHERE id = $1`, b.made.ID)
	before := b.written()
	_, err := b.service.Accept(b.other, share.Input{ShareID: row.ID})
	platformtest.Refused(t, err, fault.FailedPrecondition, "shareId")
	require.Equal(t, before, b.written())
	_, err = b.service.Decline(b.other, share.Input{ShareID: row.ID})
	require.NoError(t, err, "to say no is always possible")
}

func TestPolicyOfTheOtherProjectHasASay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.offered()
	for _, document := range []string{`{"controlPlaneScopes":{"deny":["TENANT"]}}`,
		`{"apps":{"deny":["` + b.made.AppSlug + `"]}}`} {
		b.SQL(`INSERT INTO policy_overlay (id, scope, tenant_id, project_id, revision, document, created_at)
			VALUES ($1, 'PROJECT', $2, $3, 1, $4, now())`,
			ids.New(ids.PolicyOverlay), b.tenant.ID, b.guest.ID, document)
		before := b.written()
		_, err := b.service.Accept(b.other, share.Input{ShareID: row.ID})
		platformtest.Refused(t, err, fault.PolicyDenied, "shareId")
		require.Equal(t, before, b.written())
		b.SQL(`UPDATE policy_overlay SET superseded_at = now()`)
	}
	_, err := b.service.Accept(b.other, share.Input{ShareID: row.ID})
	require.NoError(t, err)
}

func TestSharesAreListedAtBothEndsAndNowhereElse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, err := b.service.Decline(b.other, share.Input{ShareID: b.offered().ID})
	require.NoError(t, err)
	second, err := b.service.Offer(b.owner, b.offer("second"))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		ctx     context.Context
		project ids.ID
	}{"the owner": {b.owner, b.home.ID}, "the other": {b.other, b.guest.ID},
		"a member": {b.As(b.guestMember), b.guest.ID}} {
		open, err := b.service.List(c.ctx, c.project, false, page.Args{First: 10})
		require.NoError(t, err, name)
		require.Len(t, open.Rows, 1, name)
		require.Equal(t, second.ID, open.Rows[0].ID)
		all, err := b.service.List(c.ctx, c.project, true, page.Args{First: 1})
		require.NoError(t, err, name)
		require.True(t, all.HasNext)
		rest, err := b.service.List(c.ctx, c.project, true, page.Args{First: 1, After: all.Cursors[0]})
		require.NoError(t, err, name)
		require.Equal(t, first.ID, rest.Rows[0].ID)
		found, err := b.service.Get(c.ctx, second.ID)
		require.NoError(t, err, name)
		require.Equal(t, lifecycle.ShareOffered, found.Status)
	}
	_, err = b.service.List(b.owner, b.guest.ID, true, page.Args{First: 10})
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = b.service.List(b.owner, b.home.ID, true, page.Args{First: 10, After: "?"})
	platformtest.Refused(t, err, fault.CursorInvalid, "after")
	third := b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.Project(b.tenant))))
	_, err = b.service.Get(third, second.ID)
	platformtest.Refused(t, err, fault.NotFound, "")
}

func TestTheOtherProjectSeesWhatIsSharedAsLongAsItIs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.offered()
	see := func(ctx context.Context) *share.ControlPlane {
		found, err := b.service.ControlPlanes(ctx, []ids.ID{row.ID, nobody})
		require.NoError(t, err)
		return found[row.ID]
	}
	for _, ctx := range []context.Context{b.owner, b.other, b.As(b.guestMember)} {
		seen := see(ctx)
		require.NotNil(t, seen, "what is offered is shown before it is accepted")
		require.Equal(t, []any{b.made.ID, b.made.Name, b.made.AppSlug, "1.0.0", "apps", lifecycle.InstanceRunning,
			lifecycle.HealthUnknown},
			[]any{seen.InstanceID, seen.Name, seen.AppSlug, seen.AppVersion, seen.PermissionFamily, seen.Status,
				seen.Health})
		require.Equal(t, "queue.read", seen.Actions[0].Name)
	}
	third := b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.Project(b.tenant))))
	require.Nil(t, see(third))
	_, err := b.service.Decline(b.other, share.Input{ShareID: row.ID})
	require.NoError(t, err)
	require.Nil(t, see(b.other))
	require.NotNil(t, see(b.owner))
}
