package instance_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
)

func first(n int, after string) page.Args { return page.Args{First: n, After: after} }

func TestAListIsPagedNewestFirstWithoutGapOrRepeat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var want []ids.ID
	for range 7 {
		want = append([]ids.ID{b.Instance(b.project, b.stored, lifecycle.InstanceRunning).ID}, want...)
	}
	var seen []ids.ID
	args := first(3, "")
	for pages := 0; ; pages++ {
		got, err := b.service.List(b.ctx, b.project.ID, instance.Filter{}, args)
		require.NoError(t, err)
		require.Equal(t, pages > 0, got.HasPrev)
		for _, view := range got.Rows {
			seen = append(seen, view.ID)
		}
		if !got.HasNext {
			require.Len(t, got.Rows, 1)
			break
		}
		args.After = got.Cursors[len(got.Cursors)-1]
	}
	require.Equal(t, want, seen)
}

func TestAListShowsWhatWasAskedForAndMayBeRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	running := b.Instance(b.project, b.stored, lifecycle.InstanceRunning)
	failed := b.Instance(b.project, b.stored, lifecycle.InstanceFailed)
	_, scheduler := b.Launchable(b.project, "scheduler")
	queue := b.Instance(b.project, scheduler, lifecycle.InstanceRunning)
	list := func(filter instance.Filter) (seen []ids.ID) {
		got, err := b.service.List(b.ctx, b.project.ID, filter, first(10, ""))
		require.NoError(t, err)
		for _, view := range got.Rows {
			seen = append(seen, view.ID)
		}
		return seen
	}
	require.Equal(t, []ids.ID{queue.ID, failed.ID, running.ID}, list(instance.Filter{}))
	require.Equal(t, []ids.ID{queue.ID, running.ID},
		list(instance.Filter{Statuses: []lifecycle.InstanceStatus{lifecycle.InstanceRunning}}))
	require.Equal(t, []ids.ID{queue.ID}, list(instance.Filter{AppSlug: queue.AppSlug}))
	require.Equal(t, []ids.ID{failed.ID}, list(instance.Filter{Search: failed.Name[4:], AppSlug: failed.AppSlug,
		Statuses: []lifecycle.InstanceStatus{lifecycle.InstanceFailed}}))
	require.Empty(t, list(instance.Filter{Search: "%"}), "a search is for text, not a pattern")

	_, narrow := b.ServiceAccount(b.project, authz.SchedulerInstanceRead)
	got, err := b.service.List(b.With(narrow), b.project.ID, instance.Filter{}, first(1, ""))
	require.NoError(t, err)
	require.Len(t, got.Rows, 1)
	require.True(t, got.HasNext)
	_, none := b.ServiceAccount(b.project, authz.AllocationRead)
	_, err = b.service.List(b.With(none), b.project.ID, instance.Filter{}, first(1, ""))
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = b.service.List(b.As(b.User(b.Tenant())), b.project.ID, instance.Filter{}, first(1, ""))
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = b.service.List(b.ctx, b.project.ID, instance.Filter{Search: long(101)}, first(1, ""))
	platformtest.Refused(t, err, fault.InvalidArgument, "filter.search")
	_, err = b.service.List(b.ctx, b.project.ID, instance.Filter{Search: "\x00"}, first(1, ""))
	platformtest.Refused(t, err, fault.InvalidArgument, "")
}

func TestCursorsOfOtherListsAndBrokenOnesAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.launched().Instance.ID
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, cursor := range []string{
		page.Cursor("members", "x"), page.Cursor("operations", "x"), page.Cursor("instances"),
		page.Cursor("instances", "x", "y"), page.Cursor("instances", 7),
		"s1", "!", "%", encode(`{}`), encode(`[]`), encode(`"instances"`), encode(`["instances",null]`), long(600),
	} {
		_, err := b.service.List(b.ctx, b.project.ID, instance.Filter{}, first(1, cursor))
		platformtest.Refused(t, err, fault.CursorInvalid, "after")
	}
	_, err := b.service.Members(b.ctx, id, first(1, page.Cursor("instances", "x")))
	platformtest.Refused(t, err, fault.CursorInvalid, "after")
	_, err = b.service.Events(b.ctx, id, first(1, page.Cursor("members", "x")))
	platformtest.Refused(t, err, fault.CursorInvalid, "after")
	for _, n := range []int{0, -1, 101} {
		_, err = page.Of(&n, nil, 50, page.Max)
		platformtest.Refused(t, err, fault.InvalidArgument, "first")
	}
	args, err := page.Of(nil, nil, 50, page.Max)
	require.NoError(t, err)
	require.Equal(t, first(50, ""), args)
}

func TestADetailBringsItsNeighboursInOneRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.launched()
	members, events := first(2, ""), first(1, "s1")
	view, err := b.service.Get(b.ctx, started.Instance.ID, instance.Want{
		Members: &members, Events: &events, LastOperation: true, Steps: true, Nodes: true, Allocations: true,
		Manifest: true})
	require.NoError(t, err)
	got := view.Loaded
	require.Len(t, got.Members.Rows, 2)
	require.True(t, got.Members.HasNext)
	require.Equal(t, 2, got.Events.Rows[0].Seq)
	require.False(t, got.Events.HasNext)
	require.Equal(t, started.Operation.ID, got.LastOperation.ID)
	require.Empty(t, got.LastOperation.Loaded)
	require.NotNil(t, got.LastOperation.Loaded)
	require.Len(t, got.Nodes, 2)
	require.Len(t, got.Allocations, 2)
	require.Equal(t, b.stored.ID, got.Manifest.ID)
	rest, err := b.service.Members(b.ctx, started.Instance.ID, first(2, got.Members.Cursors[1]))
	require.NoError(t, err)
	require.Len(t, rest.Rows, 1)
	require.NotContains(t, []ids.ID{got.Members.Rows[0].ID, got.Members.Rows[1].ID}, rest.Rows[0].ID)
}

func TestNeighboursThatNeedAnotherKeyDoNotComeAlong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.launched()
	id := started.Instance.ID
	all := instance.Want{LastOperation: true, Steps: true, Nodes: true, Allocations: true, Manifest: true}
	_, narrow := b.ServiceAccount(b.project, authz.AppsInstanceRead)
	view, err := b.service.Get(b.With(narrow), id, all)
	require.NoError(t, err)
	require.Equal(t, &instance.Loaded{}, view.Loaded)
	_, err = b.service.Allocations(b.With(narrow), id)
	platformtest.Refused(t, err, fault.Forbidden, "")
	some := first(10, "")
	view, err = b.service.Get(b.With(narrow), id, instance.Want{Members: &some})
	require.NoError(t, err)
	require.Nil(t, view.Loaded.Members)
	_, err = b.service.Members(b.With(narrow), id, some)
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, wider := b.ServiceAccount(b.project, authz.AppsInstanceRead, authz.AllocationRead)
	view, err = b.service.Get(b.With(wider), id, all)
	require.NoError(t, err)
	require.Len(t, view.Loaded.Allocations, 2)
	require.Len(t, view.Loaded.Nodes, 2)
	require.Nil(t, view.Loaded.LastOperation)
	found, err := b.service.Allocations(b.With(wider), id)
	require.NoError(t, err)
	require.Len(t, found, 2)
}

// Accounts from before reads of members required a key keep what they could read, and get nothing else.
func TestAccountsThatReadMembersKeepIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reader, _ := b.ServiceAccount(b.project, authz.SchedulerInstanceRead, authz.AppsInstanceRead)
	other, _ := b.ServiceAccount(b.project, authz.ProjectRead)
	text, err := os.ReadFile("../../migrations/20261122193401_member_reads.sql")
	require.NoError(t, err)
	for range 2 {
		b.SQL(strings.TrimPrefix(string(text), "-- +goose Up\n"))
	}
	require.Equal(t, 1, b.Count("service_account",
		`id = $1 AND permission_keys = '["apps.instance.read", "apps.node.read", "scheduler.instance.read", "scheduler.node.read"]'`, reader.ID))
	require.Equal(t, 1, b.Count("service_account", `id = $1 AND permission_keys = '["project.read"]'`, other.ID))
}

func TestOneReadsAskForTheirKeysAndHideOthersRows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.launched()
	id := started.Instance.ID
	member, err := b.Ent.Member.Query().First(t.Context())
	require.NoError(t, err)
	happened, err := b.Ent.Event.Query().First(t.Context())
	require.NoError(t, err)
	_, blind := b.ServiceAccount(b.project, authz.AllocationRead)
	stranger, unprivileged := b.As(b.User(b.Tenant())), b.With(blind)
	_, err = b.service.Get(stranger, id, instance.Want{})
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = b.service.Get(unprivileged, id, instance.Want{})
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = b.service.Member(stranger, member.ID)
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = b.service.Member(unprivileged, member.ID)
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = b.service.Event(stranger, happened.ID)
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = b.service.Event(unprivileged, happened.ID)
	platformtest.Refused(t, err, fault.Forbidden, "")
	many, err := b.service.Many(stranger, []ids.ID{id})
	require.NoError(t, err)
	require.Empty(t, many)
	many, err = b.service.Many(b.ctx, []ids.ID{id, ids.New(ids.Instance)})
	require.NoError(t, err)
	require.Len(t, many, 1)
	read, err := b.service.Member(b.ctx, member.ID)
	require.NoError(t, err)
	require.Equal(t, member.ID, read.ID)
	told, err := b.service.Event(b.ctx, happened.ID)
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf(`^s%d\.\w+$`, happened.Seq), told.Cursor)
}

func TestOptionsSayWhatALaunchWouldAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	node, _ := b.Node(0)
	weak := b.Allocation(b.project, node)
	b.SQL(`UPDATE allocation SET gpu_count = 0 WHERE id = $1`, weak.ID)
	node, _ = b.Node(4)
	used := b.Allocation(b.project, node)
	b.Instance(b.project, b.stored, lifecycle.InstanceRunning, used)
	hungry := b.App("apps")
	document := platformtest.Document(hungry, "1.0.0", b.adapter, b.Artifact(lifecycle.StageActive))
	document["compatibility"] = map[string]any{"requires_capacity_shape": []string{"baremetal"}, "min_gpu_count": 2,
		"requires_exclusive_node": true, "network_span": "allocation"}
	b.Manifest(lifecycle.StageActive, document)
	options, err := b.service.LaunchOptions(b.ctx, b.project.ID, hungry.Slug, "")
	require.NoError(t, err)
	require.False(t, options.Entitled)
	verdicts := map[ids.ID]int{}
	for _, verdict := range options.Allocations {
		verdicts[verdict.Allocation.ID] = len(verdict.Reasons)
	}
	require.Equal(t, map[ids.ID]int{b.one.ID: 0, b.two.ID: 0, weak.ID: 1}, verdicts, "free ones alone are offered")
	b.Entitle(b.project, hungry)
	for id, reasons := range verdicts {
		_, err := b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
			in.AppSlug, in.AllocationIDs, in.Name, in.IdempotencyKey = hungry.Slug, []ids.ID{id},
				"n"+id.Suffix(), string(id)
		}))
		require.Equal(t, reasons == 0, err == nil, "the verdict and the launch agree: %v", err)
	}
	options, err = b.service.LaunchOptions(b.ctx, b.project.ID, hungry.Slug, "1.0.0")
	require.NoError(t, err)
	require.True(t, options.Entitled)
	require.Len(t, options.Allocations, 1)

	_, err = b.service.LaunchOptions(b.ctx, b.project.ID, hungry.Slug, "7.0.0")
	platformtest.Refused(t, err, fault.NotFound, "version")
	_, err = b.service.LaunchOptions(b.ctx, b.project.ID, "nothing", "")
	platformtest.Refused(t, err, fault.NotFound, "appSlug")
	_, err = b.service.LaunchOptions(b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project))),
		b.project.ID, "nothing", "")
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = b.service.LaunchOptions(b.As(b.User(b.Tenant())), b.project.ID, hungry.Slug, "")
	platformtest.Refused(t, err, fault.NotFound, "")
}
