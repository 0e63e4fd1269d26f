package instance_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

func TestALaunchWritesEverythingItPromisesInOneTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	queue := b.Hub.Wait(event.QueueTopic)
	defer queue.Close()
	started, err := b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
		in.Config = []byte(`{"note":"hi"}`)
	}))
	require.NoError(t, err)
	select {
	case <-queue.C:
	case <-time.After(soon):
		require.FailNow(t, "the workers were not woken")
	}
	row, err := b.Ent.Instance.Get(t.Context(), started.Instance.ID)
	require.NoError(t, err)
	require.Equal(t, lifecycle.InstanceCreated, row.Status)
	require.Equal(t, []any{"demo", b.app.Slug, "1.0.0", "apps", b.adapter.Name, b.stored.ID},
		[]any{row.Name, row.AppSlug, row.AppVersion, row.PermissionFamily, row.RuntimeBackend, row.ManifestID})
	require.JSONEq(t, `{"note":"hi","size":2}`, string(row.Config), "the schema's defaults are filled in")
	require.Equal(t, 2, row.Revision)
	require.Equal(t, started.Operation.ID, *row.LastOperationID)
	counts, err := (&instance.View{Instance: row}).Roles()
	require.NoError(t, err)
	require.Equal(t, []*roles.Count{
		{ComponentKey: "head", DisplayName: "Head", Desired: 1, Summary: "0 of 1 active"},
		{ComponentKey: "worker", DisplayName: "Workers", Desired: 2, Summary: "0 of 2 active"}}, counts)

	op, err := b.Ent.Operation.Get(t.Context(), started.Operation.ID)
	require.NoError(t, err)
	require.Equal(t, []any{lifecycle.InstanceCreate, lifecycle.OperationPending, "a test", b.admin.ID},
		[]any{op.Kind, op.State, op.Reason, op.RequesterID})
	require.Equal(t, row.AppSlug, op.AppSlug)
	require.WithinDuration(t, op.CreatedAt.Add(10*time.Minute), op.Deadline, time.Second)
	require.Equal(t, []string{"head 0 " + string(b.one.ID), "worker 0 " + string(b.one.ID),
		"worker 1 " + string(b.two.ID)}, b.seats(row.ID))
	require.Equal(t, 2, b.Count("allocation", "instance_id = $1", row.ID))
	events, err := b.service.Events(b.ctx, row.ID, first(10, ""))
	require.NoError(t, err)
	require.Equal(t, []string{string(lifecycle.EventInstanceRequested), string(lifecycle.EventOperationAccepted)},
		[]string{events.Rows[0].Type, events.Rows[1].Type})
	require.Equal(t, 1, b.Count("audit_entry", "allowed AND action = 'launchInstance' AND object_id = $1 AND "+
		"permission_key = 'apps.instance.create' AND reason = 'a test' AND instance_id = $1 AND app_slug = $2", row.ID,
		row.AppSlug))
}

// seats are the members of an instance, "component ordinal allocation".
func (b *bundle) seats(id ids.ID) (seats []string) {
	rows, err := b.Admin.Query(b.t.Context(), `SELECT m.component_key || ' ' || m.ordinal || ' ' || m.allocation_id,
		m.node_id = a.node_id AND m.status = 'PENDING'
		FROM member m JOIN allocation a ON a.id = m.allocation_id WHERE m.instance_id = $1
		ORDER BY m.component_key, m.ordinal`, id)
	require.NoError(b.t, err)
	defer rows.Close()
	for rows.Next() {
		var seat string
		var bound bool
		require.NoError(b.t, rows.Scan(&seat, &bound))
		require.True(b.t, bound, "each member is pending on its allocation's node")
		seats = append(seats, seat)
	}
	return seats
}

func TestMembersSitWhereTheCallerPutTheirComponent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started, err := b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
		in.Components = []instance.Component{{Key: "head", Count: 1, AllocationIDs: []ids.ID{b.two.ID}},
			{Key: "worker", Count: 3}}
	}))
	require.NoError(t, err)
	require.Equal(t, []string{"head 0 " + string(b.two.ID), "worker 0 " + string(b.one.ID),
		"worker 1 " + string(b.two.ID), "worker 2 " + string(b.one.ID)}, b.seats(started.Instance.ID))
}

func TestARepeatedLaunchIsTheSameLaunch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	once := b.launched()
	before := b.written()
	again, err := b.service.Launch(b.ctx, b.launch())
	require.NoError(t, err)
	require.Equal(t, once.Instance.ID, again.Instance.ID)
	require.Equal(t, once.Operation.ID, again.Operation.ID)
	_, err = b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) { in.Name = "other" }))
	platformtest.Refused(t, err, fault.IdempotencyKeyReused, "input.idempotencyKey")
	require.Equal(t, before, b.written())
}

func TestOfTwoLaunchesIntoOneAllocationOneIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var running sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		running.Go(func() {
			_, errs[i] = b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
				in.Name, in.IdempotencyKey = "demo-"+string(rune('a'+i)), string(rune('a'+i))
				if i%2 == 1 { // asked for in another order: no deadlock
					in.AllocationIDs = []ids.ID{b.two.ID, b.one.ID}
				}
			}))
		})
	}
	running.Wait()
	accepted := 0
	for _, err := range errs {
		if err == nil {
			accepted++
			continue
		}
		require.True(t, fault.Is(err, fault.Conflict), "%v", err)
		require.Contains(t, fault.From(err).Reasons[0].Path, "input.allocationIds.")
	}
	require.Equal(t, 1, accepted, "%v", errors.Join(errs...))
	require.Equal(t, 1, b.Count("instance", ""))
	require.Equal(t, 1, b.Count("operation", ""))
}

func TestANameIsFreeAgainOnceItsInstanceIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.launched()
	third := b.allocation()
	again := func() error {
		_, err := b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
			in.AllocationIDs, in.IdempotencyKey = []ids.ID{third.ID}, "k2"
		}))
		return err
	}
	before := b.written()
	platformtest.Refused(t, again(), fault.Conflict, "input.name")
	require.Equal(t, before, b.written())
	b.SQL(`UPDATE instance SET released_at = now()`)
	require.NoError(t, again())
	require.Equal(t, 2, b.Count("instance", "name = 'demo'"))
}

func TestASmokeLaunchTestsWhatOthersCannotLaunch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publishes() // others do not see a version before it is launchable
	b.Manifest(lifecycle.StageStaged, b.document("2.0.0"))
	b.Manifest(lifecycle.StageDeprecated, b.document("0.9.0"))
	in := func(version, key string, smoke bool) instance.LaunchInput {
		return b.launch(func(in *instance.LaunchInput) {
			in.Version, in.IdempotencyKey, in.Smoke = version, key, smoke
		})
	}
	before := b.written()
	_, err := b.service.Launch(b.ctx, in("2.0.0", "a", false))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.version")
	_, err = b.service.Launch(b.ctx, in("2.0.0", "a", true))
	platformtest.Refused(t, err, fault.Forbidden, "") // an admin of the project does not test manifests
	require.Len(t, b.denials("manifest.smoke"), 1)
	operator := b.As(b.User(nil, platformtest.OnPlatform(authz.PlatformOperator),
		platformtest.In(authz.ProjectAdmin, b.project)))
	_, err = b.service.Launch(operator, in("0.9.0", "a", true))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.version")
	require.Equal(t, before, b.written())
	started, err := b.service.Launch(operator, in("2.0.0", "a", true))
	require.NoError(t, err)
	require.True(t, started.Instance.Smoke)
}

// denials are the refusals recorded under a key.
func (b *bundle) denials(key string) (found []*db.AuditEntry) {
	for _, entry := range b.Audit() {
		if !entry.Allowed && entry.PermissionKey == key {
			found = append(found, entry)
		}
	}
	return found
}

func TestRefusedLaunchesNameCodeAndFieldAndWriteNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sibling := b.Project(b.tenant)
	node, _ := b.Node(1)
	elsewhere := b.Allocation(sibling, node)
	node, _ = b.Node(1)
	releasing := b.Allocation(b.project, node)
	b.SQL(`UPDATE allocation SET status = 'RELEASING' WHERE id = $1`, releasing.ID)
	unentitled := b.App("apps")
	b.Manifest(lifecycle.StageActive, platformtest.Document(unentitled, "1.0.0", b.adapter,
		b.Artifact(lifecycle.StageActive)))
	empty := b.App("apps")
	b.Entitle(b.project, empty)
	picky := b.App("apps")
	b.Entitle(b.project, picky)
	document := platformtest.Document(picky, "1.0.0", b.adapter, b.Artifact(lifecycle.StageActive))
	document["compatibility"] = map[string]any{"requires_capacity_shape": []string{"gpu_slice"}, "min_gpu_count": 0,
		"requires_exclusive_node": false, "network_span": "multi_allocation"}
	b.Manifest(lifecycle.StageActive, document)
	type change = func(*instance.LaunchInput)
	component := func(c ...instance.Component) change { return func(in *instance.LaunchInput) { in.Components = c } }
	config := func(text string) change { return func(in *instance.LaunchInput) { in.Config = []byte(text) } }
	allocations := func(list ...ids.ID) change { return func(in *instance.LaunchInput) { in.AllocationIDs = list } }
	before := b.written()
	for name, c := range map[string]struct {
		change change
		code   fault.Code
		path   string
	}{
		"unknown app": {func(in *instance.LaunchInput) { in.AppSlug = "nothing" }, fault.NotFound,
			"input.appSlug"},
		"unknown version": {func(in *instance.LaunchInput) { in.Version = "9.9.9" }, fault.NotFound,
			"input.version"},
		"no active version": {func(in *instance.LaunchInput) { in.AppSlug = empty.Slug },
			fault.FailedPrecondition, "input.appSlug"},
		"not entitled": {func(in *instance.LaunchInput) { in.AppSlug = unentitled.Slug }, fault.NotEntitled,
			"input.appSlug"},
		"incompatible": {func(in *instance.LaunchInput) { in.AppSlug = picky.Slug }, fault.Incompatible,
			"input.allocationIds.1"},
		"another's allocation": {allocations(b.one.ID, elsewhere.ID), fault.NotFound, "input.allocationIds.1"},
		"unknown allocation":   {allocations("alc_nothing"), fault.NotFound, "input.allocationIds.0"},
		"allocation not ready": {allocations(b.one.ID, b.two.ID, releasing.ID), fault.FailedPrecondition,
			"input.allocationIds.2"},
		"no allocation":         {allocations(), fault.InvalidArgument, "input.allocationIds"},
		"allocation twice":      {allocations(b.one.ID, b.one.ID), fault.InvalidArgument, "input.allocationIds.1"},
		"too many allocations":  {allocations(make([]ids.ID, 257)...), fault.InvalidArgument, "input.allocationIds"},
		"config: unknown field": {config(`{"x":1}`), fault.ConfigInvalid, "input.config.x"},
		"config: out of bounds": {config(`{"size":0}`), fault.ConfigInvalid, "input.config.size"},
		"config: wrong type":    {config(`{"size":"big"}`), fault.ConfigInvalid, "input.config.size"},
		"config: no object":     {config(`[1]`), fault.ConfigInvalid, "input.config"},
		"config: a NUL":         {config(`{"note":"\u0000"}`), fault.ConfigInvalid, "input.config.note"},
		"config: too big":       {config(`{"note":"` + long(1<<20) + `"}`), fault.InvalidArgument, "input.config"},
		"count too high": {component(instance.Component{Key: "worker", Count: 5}), fault.InvalidArgument,
			"input.components.0.count"},
		"count negative": {component(instance.Component{Key: "worker", Count: -1}), fault.InvalidArgument,
			"input.components.0.count"},
		"unknown component": {component(instance.Component{Key: "disk", Count: 1}), fault.InvalidArgument,
			"input.components.0.key"},
		"component twice": {component(instance.Component{Key: "worker", Count: 1},
			instance.Component{Key: "worker", Count: 2}), fault.InvalidArgument, "input.components.1.key"},
		"component elsewhere": {component(instance.Component{Key: "head", Count: 1,
			AllocationIDs: []ids.ID{elsewhere.ID}}), fault.InvalidArgument, "input.components.0.allocationIds.0"},
		"name: upper case": {func(in *instance.LaunchInput) { in.Name = "Demo" }, fault.InvalidArgument,
			"input.name"},
		"name: too long": {func(in *instance.LaunchInput) { in.Name = long(41) }, fault.InvalidArgument,
			"input.name"},
		"name: a trailing hyphen": {func(in *instance.LaunchInput) { in.Name = "demo-" }, fault.InvalidArgument,
			"input.name"},
		"name: a new line": {func(in *instance.LaunchInput) { in.Name = "demo\n" }, fault.InvalidArgument,
			"input.name"},
		"reason too long": {func(in *instance.LaunchInput) { in.Reason = long(1_001) }, fault.InvalidArgument,
			"input.reason"},
		"reason with a NUL": {func(in *instance.LaunchInput) { in.Reason = "\x00" }, fault.InvalidArgument, ""},
		"deadline too short": {func(in *instance.LaunchInput) { in.DeadlineSeconds = 29 }, fault.InvalidArgument,
			"input.deadlineSeconds"},
		"deadline too long": {func(in *instance.LaunchInput) { in.DeadlineSeconds = 86_401 }, fault.InvalidArgument,
			"input.deadlineSeconds"},
		"no idempotency key": {func(in *instance.LaunchInput) { in.IdempotencyKey = "" }, fault.InvalidArgument,
			"input.idempotencyKey"},
		"unknown project": {func(in *instance.LaunchInput) {
			in.ProjectID = ids.New(ids.Project)
		}, fault.NotFound, ""},
		"project of others": {func(in *instance.LaunchInput) { in.ProjectID = sibling.ID }, fault.NotFound, ""},
	} {
		_, err := b.service.Launch(b.ctx, b.launch(c.change))
		require.True(t, fault.Is(err, c.code), "%s: %v", name, err)
		if c.path != "" {
			require.Contains(t, paths(err), c.path, name)
		}
	}
	require.Equal(t, before, b.written())
}

func long(n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = 'a'
	}
	return string(text)
}

func TestWhoMayNotLaunchIsRefusedAndAudited(t *testing.T) {
	t.Parallel()
	b := setup(t)
	viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project)))
	stranger := b.As(b.User(b.Tenant()))
	_, narrow := b.ServiceAccount(b.project, authz.AppsInstanceRead, authz.SchedulerInstanceCreate)
	before := b.written()
	_, err := b.service.Launch(viewer, b.launch())
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = b.service.Launch(viewer, b.launch(func(in *instance.LaunchInput) { in.AppSlug = "nothing" }))
	platformtest.Refused(t, err, fault.Forbidden, "") // whether the app exists is not told
	_, err = b.service.Launch(stranger, b.launch())
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = b.service.Launch(b.With(narrow), b.launch())
	platformtest.Refused(t, err, fault.Forbidden, "") // another family's key does not open this one
	_, err = b.service.Launch(t.Context(), b.launch())
	platformtest.Refused(t, err, fault.Unauthenticated, "")
	require.Equal(t, before, b.written())
	repeats := 0
	for _, entry := range b.denials("apps.instance.create") {
		repeats += entry.Repeats
	}
	require.Equal(t, 4, repeats)
	_, wide := b.ServiceAccount(b.project, authz.AppsInstanceCreate)
	_, err = b.service.Launch(b.With(wide), b.launch())
	require.NoError(t, err)
}
