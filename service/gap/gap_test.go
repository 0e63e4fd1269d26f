package gap_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/gap"
	"github.com/gpuaas/app-platform/service/kit/page"
)

// bench is an app that a tenant's project publishes.
type bench struct {
	*platformtest.Kit
	t                            *testing.T
	verbs                        *gap.Service
	operator, publisher, anybody context.Context
	project                      *db.Project
	app                          *db.App
	manifest                     *db.Manifest
}

func newBench(t *testing.T) *bench {
	kit := platformtest.New(t)
	b := &bench{Kit: kit, t: t, verbs: &gap.Service{DB: kit.DB}, operator: kit.As(kit.Operator())}
	tenant, other := b.Tenant(), b.Tenant()
	b.project = b.Project(tenant)
	b.publisher = b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	b.anybody = b.As(b.User(other, platformtest.Across(authz.TenantAdmin, other)))
	b.app, b.manifest = b.Launchable(b.project, "apps")
	b.SQL(`UPDATE app SET publisher_tenant_id = $1, publisher_project_id = $2
		WHERE id = $3`, tenant.ID, b.project.ID, b.app.ID)
	return b
}

func (b *bench) input(key string) gap.RaiseInput {
	return gap.RaiseInput{AppSlug: b.app.Slug, Version: "1.0.0", Kind: lifecycle.GapEvent,
		Title:       "No event of a full queue",
		Description: "Triage finds nothing when the queue is full.", Evidence: []string{"https://issues.example/1"},
		IdempotencyKey: key}
}

func (b *bench) raised(key string) *gap.Gap {
	b.t.Helper()
	made, err := b.verbs.Raise(b.publisher, b.input(key))
	require.NoError(b.t, err)
	return made
}

func (b *bench) audited(action string) (allowed, denied int) {
	for _, entry := range b.Audit() {
		switch {
		case entry.Action != action:
		case entry.Allowed:
			allowed++
		default:
			denied++
		}
	}
	return allowed, denied
}

func TestAGapIsRaisedDecidedAndClosedByARelease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.raised("k")
	require.Equal(t, lifecycle.GapOpen, made.State)
	require.Equal(t, b.manifest.ID, *made.ManifestID)
	require.Nil(t, made.Condition)
	require.Equal(t, made.ID, b.raised("k").ID, "a repeat answers the same one")
	require.Equal(t, 1, b.Count("gap", ""))

	decide := func(to lifecycle.GapState) (*gap.Gap, error) {
		return b.verbs.Decide(b.operator, gap.DecideInput{GapID: made.ID, To: to, Reason: "as " + string(to)})
	}
	release := gap.CloseInput{GapID: made.ID, Release: "0.42.0", ManifestID: &b.manifest.ID, Reason: "it has the event"}
	_, err := b.verbs.Close(b.operator, release)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.gapId")
	later, err := decide(lifecycle.GapDeferred)
	require.NoError(t, err)
	require.Equal(t, "as DEFERRED", later.Decision)
	taken, err := decide(lifecycle.GapAccepted)
	require.NoError(t, err)
	require.NotEmpty(t, taken.DecidedBy.ID)
	_, err = decide(lifecycle.GapAccepted)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.to")
	_, err = decide(lifecycle.GapClosed)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.to")

	draft := b.Manifest(lifecycle.StageDraft, platformtest.Document(b.app, "2.0.0",
		&db.Adapter{Name: b.manifest.AdapterName}, b.Artifact(lifecycle.StageActive)))
	_, foreign := b.Launchable(b.project, "apps")
	for id, code := range map[ids.ID]fault.Code{draft.ID: fault.FailedPrecondition, foreign.ID: fault.InvalidArgument,
		ids.New(ids.Manifest): fault.NotFound} {
		bad := release
		bad.ManifestID = &id
		_, err = b.verbs.Close(b.operator, bad)
		platformtest.Refused(t, err, code, "input.manifestId")
	}
	closed, err := b.verbs.Close(b.operator, release)
	require.NoError(t, err)
	require.Equal(t, []any{lifecycle.GapClosed, "0.42.0", b.manifest.ID, "it has the event"},
		[]any{closed.State, closed.Release, *closed.ReleaseManifestID, closed.CloseReason})
	require.NotNil(t, closed.ClosedAt)
	_, err = decide(lifecycle.GapDeclined)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.to")

	read, err := b.verbs.Get(b.publisher, made.ID)
	require.NoError(t, err)
	require.Equal(t, closed, read)
	for action, want := range map[string]int{"raiseGap": 1, "decideGap": 2, "closeGap": 1} {
		allowed, _ := b.audited(action)
		require.Equal(t, want, allowed, action)
	}
}

func TestAGapIsItsPublishersAndTheStaffsAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.raised("k")
	_, err := b.verbs.Raise(b.anybody, b.input("k2"))
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.verbs.Get(b.anybody, made.ID)
	platformtest.Refused(t, err, fault.NotFound)
	for as, code := range map[context.Context]fault.Code{b.anybody: fault.NotFound, b.publisher: fault.Forbidden} {
		_, err = b.verbs.Decide(as, gap.DecideInput{GapID: made.ID, To: lifecycle.GapDeclined, Reason: "mine"})
		platformtest.Refused(t, err, code)
		_, err = b.verbs.Close(as, gap.CloseInput{GapID: made.ID, Release: "mine", Reason: "mine"})
		platformtest.Refused(t, err, code)
	}
	require.Equal(t, 1, b.Count("gap", "state = 'OPEN'"))
	_, denied := b.audited("decideGap")
	require.Equal(t, 2, denied)

	first := page.Args{First: 10}
	list := func(as context.Context, filter *gap.Filter) ([]*gap.Gap, error) {
		found, err := b.verbs.List(as, filter, first)
		if err != nil {
			return nil, err
		}
		return found.Rows, nil
	}
	slug := &gap.Filter{AppSlug: &b.app.Slug}
	project := &gap.Filter{ProjectID: &b.project.ID}
	for _, c := range []struct {
		as     context.Context
		filter *gap.Filter
		code   fault.Code
	}{
		{b.operator, nil, ""}, {b.operator, slug, ""}, {b.operator, project, ""}, {b.publisher, slug, ""},
		{b.publisher, project, ""}, {b.publisher, nil, fault.Forbidden}, {b.anybody, slug, fault.NotFound},
		{b.anybody, project, fault.NotFound}, {b.anybody, nil, fault.Forbidden},
	} {
		rows, err := list(c.as, c.filter)
		if c.code != "" {
			platformtest.Refused(t, err, c.code)
			continue
		}
		require.NoError(t, err)
		require.Len(t, rows, 1)
	}
	rows, err := list(b.operator, &gap.Filter{States: []lifecycle.GapState{lifecycle.GapAccepted}})
	require.NoError(t, err)
	require.Empty(t, rows)
	rows, err = list(b.operator, &gap.Filter{Kinds: []lifecycle.GapKind{lifecycle.GapEvent},
		States: []lifecycle.GapState{lifecycle.GapOpen}})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	missing := "nothing"
	_, err = list(b.operator, &gap.Filter{AppSlug: &missing})
	platformtest.Refused(t, err, fault.NotFound)
	b.raised("k3")
	first.First = 1
	newest, err := b.verbs.List(b.publisher, slug, first)
	require.NoError(t, err)
	require.True(t, newest.HasNext)
	first.After = newest.Cursors[0]
	last, err := b.verbs.List(b.publisher, slug, first)
	require.NoError(t, err)
	require.Equal(t, made.ID, last.Rows[0].ID)
	require.False(t, last.HasNext)
}

func TestAGapNamesAnInstanceThatItsReadersMayKnowOf(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	own := b.Instance(b.project, b.manifest, lifecycle.InstanceRunning)
	elsewhere := b.Instance(b.Project(b.Tenant()), b.manifest, lifecycle.InstanceRunning)
	_, foreign := b.Launchable(b.project, "apps")
	another := b.Instance(b.project, foreign, lifecycle.InstanceRunning)
	for id, code := range map[ids.ID]fault.Code{elsewhere.ID: fault.InvalidArgument, another.ID: fault.InvalidArgument,
		ids.New(ids.Instance): fault.NotFound} {
		in := b.input("k")
		in.InstanceID = &id
		_, err := b.verbs.Raise(b.operator, in)
		platformtest.Refused(t, err, code, "input.instanceId")
	}
	in := b.input("k")
	in.InstanceID = &elsewhere.ID
	_, err := b.verbs.Raise(b.publisher, in)
	platformtest.Refused(t, err, fault.NotFound, "input.instanceId")
	in.InstanceID = &own.ID
	made, err := b.verbs.Raise(b.publisher, in)
	require.NoError(t, err)
	require.Equal(t, own.ID, *made.InstanceID)
}

func TestAGapIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for path, spoil := range map[string]func(*gap.RaiseInput){
		"input.title":       func(in *gap.RaiseInput) { in.Title = "" },
		"input.description": func(in *gap.RaiseInput) { in.Description = "" },
		"input.evidence":    func(in *gap.RaiseInput) { in.Evidence = make([]string, 21) },
		"input.evidence.0":  func(in *gap.RaiseInput) { in.Evidence = []string{""} },
	} {
		in := b.input("k")
		spoil(&in)
		_, err := b.verbs.Raise(b.publisher, in)
		require.Contains(t, []string{path, "input.evidence.0"}, fault.From(err).Reasons[0].Path)
		require.True(t, fault.Is(err, fault.InvalidArgument))
	}
	in := b.input("k")
	in.Version = "9.9.9"
	_, err := b.verbs.Raise(b.publisher, in)
	platformtest.Refused(t, err, fault.NotFound, "input.version")
	in.AppSlug = "nothing"
	_, err = b.verbs.Raise(b.publisher, in)
	platformtest.Refused(t, err, fault.NotFound, "input.appSlug")
	b.raised("first")
	b.SQL(`INSERT INTO gap SELECT (json_populate_record(g, json_build_object('id', 'gap_' || n))).*
		FROM gap g, generate_series(2, 200) n`)
	_, err = b.verbs.Raise(b.publisher, b.input("one-too-many"))
	platformtest.Refused(t, err, fault.LimitExceeded, "input.appSlug")
	b.SQL(`UPDATE gap SET state = 'DECLINED' WHERE id = 'gap_2'`)
	b.raised("there-is-room-again")
}
