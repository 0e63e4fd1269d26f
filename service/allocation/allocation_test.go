package allocation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbevent "github.com/gpuaas/app-platform/ent/generated/db/event"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/kit/page"
)

// verbs keeps the service's fields below those of the kit, which have the same names.
type verbs struct{ *allocation.Service }

// bench is a project with an admin, and no node yet.
type bench struct {
	*platformtest.Kit
	verbs
	t       *testing.T
	tenant  *db.Tenant
	project *db.Project
	admin   context.Context
}

func newBench(t *testing.T) *bench {
	t.Helper()
	kit := platformtest.New(t)
	b := &bench{Kit: kit, verbs: verbs{&allocation.Service{DB: kit.DB}}, t: t}
	b.tenant = kit.Tenant()
	b.project = kit.Project(b.tenant)
	b.admin = kit.As(kit.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	return b
}

// slice requests slices of some GPUs each.
func (b *bench) slice(key string, count, gpus int) allocation.RequestInput {
	return allocation.RequestInput{ProjectID: b.project.ID, Shape: lifecycle.ShapeGPUSlice, Count: count,
		GPUCount: &gpus, IdempotencyKey: key}
}

// whole requests whole nodes.
func (b *bench) whole(key string, count int) allocation.RequestInput {
	return allocation.RequestInput{ProjectID: b.project.ID, Shape: lifecycle.ShapeBaremetal, Count: count,
		IdempotencyKey: key}
}

func (b *bench) got(in allocation.RequestInput) []*db.Allocation {
	b.t.Helper()
	got, err := b.Request(b.admin, in)
	require.NoError(b.t, err)
	return got
}

func TestARequestIsBoundToANodeAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	node, _ := b.Node(8)
	b.SQL(`UPDATE compute_node SET region = 'eu-1', sku = 'h100-8' WHERE id = $1`, node.ID)
	in := b.whole("k", 1)
	in.Name, in.SchedulerType, in.IntegrationMetadata = "rack", "any", json.RawMessage(`{"cluster":"c1"}`)
	got := b.got(in)
	require.Len(t, got, 1)
	require.Equal(t, lifecycle.AllocationReady, got[0].Status)
	require.Equal(t, node.ID, *got[0].NodeID)
	require.Equal(t, 8, got[0].GpuCount, "a whole node holds all of its GPUs")
	require.Equal(t, "eu-1", got[0].Region)
	require.Equal(t, "h100-8", got[0].Sku)
	require.Equal(t, "rack", got[0].Name)
	entries := b.Audit()
	require.Len(t, entries, 1)
	require.Equal(t, "requestAllocation", entries[0].Action)
	require.Equal(t, "allocation.create", entries[0].PermissionKey)
	require.Contains(t, string(entries[0].After), string(got[0].ID))
	require.Equal(t, []string{"1 apps.allocation.requested", "2 apps.allocation.ready"}, b.told(got[0]))
	b.got(in)
	require.Len(t, b.told(got[0]), 2, "a repeat tells nothing again")
}

// told returns the events of an allocation that no instance uses: number and type, in the order of their project's
// feed.
func (b *bench) told(row *db.Allocation) (list []string) {
	b.t.Helper()
	found := b.Ent.Event.Query().Where(dbevent.AllocationID(row.ID)).
		Order(db.Asc(dbevent.FieldXid, dbevent.FieldPosition)).AllX(b.t.Context())
	for _, one := range found {
		require.Equal(b.t, []any{row.ProjectID, authz.AllocationFamily}, []any{one.ProjectID, one.PermissionFamily})
		require.Contains(b.t, string(one.Payload), string(row.ID))
		list = append(list, fmt.Sprint(one.Seq, " ", one.Type))
	}
	return list
}

func TestSeveralAreGotOrNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Node(4)
	b.Node(4)
	_, err := b.Request(b.admin, b.slice("k", 3, 3))
	platformtest.Refused(t, err, fault.CapacityUnavailable, "")
	require.Zero(t, b.Count("allocation", ""))
	require.Zero(t, b.Count("idempotency", ""), "the key is not spent")
	_, err = b.Request(b.admin, b.whole("k", 3))
	platformtest.Refused(t, err, fault.CapacityUnavailable, "")
	require.Zero(t, b.Count("allocation", ""))

	in := b.slice("k", 2, 3)
	in.Name = "part"
	got := b.got(in)
	require.Len(t, got, 2)
	require.NotEqual(t, *got[0].NodeID, *got[1].NodeID)
	require.Equal(t, []string{"part-1", "part-2"}, []string{got[0].Name, got[1].Name})
	require.Equal(t, 3, got[0].GpuCount)
	_, err = b.Request(b.admin, b.whole("k2", 1))
	platformtest.Refused(t, err, fault.CapacityUnavailable, "")
	require.Len(t, b.got(b.slice("k3", 2, 1)), 2, "one GPU of each node was left")
}

func TestSkuAndRegionAreHeld(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	node, _ := b.Node(2)
	b.SQL(`UPDATE compute_node SET region = 'eu-1', sku = 'a' WHERE id = $1`, node.ID)
	for _, change := range []func(*allocation.RequestInput){
		func(in *allocation.RequestInput) { in.SKU = "b" },
		func(in *allocation.RequestInput) { in.Region = "us-1" },
	} {
		in := b.whole("k", 1)
		change(&in)
		_, err := b.Request(b.admin, in)
		platformtest.Refused(t, err, fault.CapacityUnavailable, "")
	}
	b.SQL(`UPDATE compute_node SET status = 'OFFLINE'`)
	_, err := b.Request(b.admin, b.whole("k", 1))
	platformtest.Refused(t, err, fault.CapacityUnavailable, "")
	b.SQL(`UPDATE compute_node SET status = 'ONLINE'`)
	in := b.whole("k", 1)
	in.SKU, in.Region = "a", "eu-1"
	b.got(in)
}

func TestTheSameRequestIsAnsweredTheSame(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Node(8)
	first := b.got(b.slice("k", 2, 1))
	again := b.got(b.slice("k", 2, 1))
	require.Equal(t, []ids.ID{first[0].ID, first[1].ID}, []ids.ID{again[0].ID, again[1].ID})
	_, err := b.Request(b.admin, b.slice("k", 2, 2))
	platformtest.Refused(t, err, fault.IdempotencyKeyReused, "input.idempotencyKey")
	require.Equal(t, 2, b.Count("allocation", ""))
	require.Equal(t, 1, b.Count("audit_entry", ""))
}

func TestTheLastGPUsGoToOneOfManyRequests(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Node(4)
	b.Node(4)
	const callers = 8
	failures := make([]error, callers)
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() { _, failures[i] = b.Request(b.admin, b.slice(fmt.Sprint("k", i), 1, 3)) })
	}
	running.Wait()
	won := 0
	for _, err := range failures {
		if err == nil {
			won++
			continue
		}
		platformtest.Refused(t, err, fault.CapacityUnavailable, "")
	}
	require.Equal(t, 2, won, "one of each node")
	require.Equal(t, 2, b.Count("allocation", ""))
}

func TestBadRequestsAreRefusedByTheirField(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Node(8)
	zero, many, one := 0, 65, 1
	for name, c := range map[string]struct {
		path   string
		change func(*allocation.RequestInput)
	}{
		"none":          {"input.count", func(in *allocation.RequestInput) { in.Count = 0 }},
		"too many":      {"input.count", func(in *allocation.RequestInput) { in.Count = 65 }},
		"no GPUs":       {"input.gpuCount", func(in *allocation.RequestInput) { in.GPUCount = nil }},
		"zero GPUs":     {"input.gpuCount", func(in *allocation.RequestInput) { in.GPUCount = &zero }},
		"too many GPUs": {"input.gpuCount", func(in *allocation.RequestInput) { in.GPUCount = &many }},
		"GPUs of a node": {"input.gpuCount", func(in *allocation.RequestInput) {
			in.Shape, in.GPUCount = lifecycle.ShapeBaremetal, &one
		}},
		"shape":     {"input.shape", func(in *allocation.RequestInput) { in.Shape = "HALF" }},
		"sku":       {"input.sku", func(in *allocation.RequestInput) { in.SKU = "a b" }},
		"region":    {"input.region", func(in *allocation.RequestInput) { in.Region = strings.Repeat("x", 65) }},
		"scheduler": {"input.schedulerType", func(in *allocation.RequestInput) { in.SchedulerType = "a\nb" }},
		"name":      {"input.name", func(in *allocation.RequestInput) { in.Name = "a\x00" }},
		"metadata": {"input.integrationMetadata", func(in *allocation.RequestInput) {
			in.IntegrationMetadata = json.RawMessage(`"` + strings.Repeat("x", 4<<10) + `"`)
		}},
		"metadata, NUL": {"input.integrationMetadata", func(in *allocation.RequestInput) {
			in.IntegrationMetadata = json.RawMessage(`"\u0000"`)
		}},
		"key": {"input.idempotencyKey", func(in *allocation.RequestInput) { in.IdempotencyKey = "" }},
	} {
		in := b.slice("k", 1, 1)
		c.change(&in)
		_, err := b.Request(b.admin, in)
		require.Error(t, err, name)
		platformtest.Refused(t, err, fault.InvalidArgument, c.path)
	}
	require.Zero(t, b.Count("allocation", ""))
}

func TestOnlyWhoMayRequestsAndReads(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Node(8)
	held := b.got(b.slice("k", 1, 1))[0]
	outsider := b.Tenant()
	viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project)))
	stranger := b.As(b.User(outsider, platformtest.Across(authz.TenantAdmin, outsider)))
	operator := b.As(b.Operator())
	_, key := b.ServiceAccount(b.project, authz.AllocationCreate)

	_, err := b.Request(viewer, b.slice("v", 1, 1))
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = b.Request(operator, b.slice("o", 1, 1))
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = b.Request(stranger, b.slice("s", 1, 1))
	platformtest.Refused(t, err, fault.NotFound, "")
	require.Equal(t, 1, b.Count("allocation", ""))
	_, err = b.Request(b.With(key), b.slice("a", 1, 1))
	require.NoError(t, err)

	for _, ctx := range []context.Context{viewer, operator, b.admin} {
		row, err := b.Get(ctx, held.ID)
		require.NoError(t, err)
		require.Equal(t, held.ID, row.ID)
		found, err := b.List(ctx, b.project.ID, nil, page.Args{First: 10})
		require.NoError(t, err)
		require.Len(t, found.Rows, 2)
	}
	_, err = b.Get(stranger, held.ID)
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = b.List(stranger, b.project.ID, nil, page.Args{First: 10})
	platformtest.Refused(t, err, fault.NotFound, "")
	many, err := b.Many(stranger, []ids.ID{held.ID})
	require.NoError(t, err)
	require.Empty(t, many)
	_, err = b.List(b.With(key), b.project.ID, nil, page.Args{First: 10})
	require.True(t, fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound), "%v", err)
}

func TestListIsByStatusAndPage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Node(8)
	all := b.got(b.slice("k", 5, 1))
	b.SQL(`UPDATE allocation SET status = 'FAILED' WHERE id = $1`, all[2].ID)
	var seen []ids.ID
	args := page.Args{First: 2}
	for more := true; more; {
		found, err := b.List(b.admin, b.project.ID, nil, args)
		require.NoError(t, err)
		for _, row := range found.Rows {
			seen = append(seen, row.ID)
		}
		more, args.After = found.HasNext, found.Cursors[len(found.Cursors)-1]
	}
	require.Equal(t, []ids.ID{all[4].ID, all[3].ID, all[2].ID, all[1].ID, all[0].ID}, seen)
	found, err := b.List(b.admin, b.project.ID, []lifecycle.AllocationStatus{lifecycle.AllocationFailed},
		page.Args{First: 10})
	require.NoError(t, err)
	require.Len(t, found.Rows, 1)
	require.Equal(t, all[2].ID, found.Rows[0].ID)
}

func TestAllocationsWithoutANameGetOneFromTheirID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Node(4)
	b.Node(4)
	for prefix, in := range map[string]allocation.RequestInput{"slice-": b.slice("a", 2, 1), "node-": b.whole("b", 1)} {
		for _, got := range b.got(in) {
			require.Equal(t, prefix+string(got.ID[len(got.ID)-6:]), got.Name)
		}
	}
}

func TestTheQuotaOfGPUsLetsOneOfManyRequestsWin(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Node(8)
	b.SQL(`UPDATE project SET max_gpus = 4 WHERE id = $1`, b.project.ID)
	failures := make([]error, 4)
	var running sync.WaitGroup
	for i := range failures {
		running.Go(func() { _, failures[i] = b.Request(b.admin, b.slice(fmt.Sprint("k", i), 1, 3)) })
	}
	running.Wait()
	won := 0
	for _, err := range failures {
		if err == nil {
			won++
			continue
		}
		platformtest.Refused(t, err, fault.LimitExceeded, "input.count")
	}
	require.Equal(t, 1, won)
	require.Equal(t, 1, b.Count("allocation", ""))
	require.Equal(t, 1, b.Count("idempotency", ""), "a refused request spends no key")
}
