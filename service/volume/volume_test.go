package volume_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	domain "github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/volume"
)

func TestAVolumeIsMadeOnceAndListed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.made("home", b.shared, 20)
	require.Equal(t, []any{b.project.TenantID, b.project.ID, "home", "parallel", 20, domain.Ready},
		[]any{first.TenantID, first.ProjectID, first.Name, first.StorageClass.Name, first.SizeGiB, first.Status})
	require.Equal(t, first, b.made("home", b.shared, 20), "a repeat answers what there is")
	in := b.wanted("scratch", b.local, 5)
	in.StorageClass = string(b.local.ID)
	second, err := b.Create(b.admin, in)
	require.NoError(t, err)
	entries := b.trail()
	require.Len(t, entries, 2)
	require.Equal(t, []string{"createVolume", "volume.create"}, []string{entries[0].Action, entries[0].PermissionKey})

	viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project)))
	listed, err := b.List(viewer, volume.Filter{ProjectID: b.project.ID}, page.Args{First: 1})
	require.NoError(t, err)
	require.Equal(t, []*volume.Volume{second}, listed.Rows)
	require.True(t, listed.HasNext)
	listed, err = b.List(viewer, volume.Filter{ProjectID: b.project.ID}, page.Args{First: 1, After: listed.Cursors[0]})
	require.NoError(t, err)
	require.Equal(t, []*volume.Volume{first}, listed.Rows)
	got, err := b.Get(viewer, first.ID)
	require.NoError(t, err)
	require.Equal(t, first, got)
}

func TestBadVolumesAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.made("taken", b.shared, 1)
	for path, change := range map[string]func(*volume.CreateInput){
		"input.name":           func(in *volume.CreateInput) { in.Name = "a_b" },
		"input.sizeGiB":        func(in *volume.CreateInput) { in.SizeGiB = 0 },
		"input.idempotencyKey": func(in *volume.CreateInput) { in.IdempotencyKey = "" },
	} {
		in := b.wanted("good", b.shared, 1)
		change(&in)
		_, err := b.Create(b.admin, in)
		platformtest.Refused(t, err, fault.InvalidArgument, path)
	}
	in := b.wanted("good", b.shared, domain.MaxSizeGiB+1)
	_, err := b.Create(b.admin, in)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.sizeGiB")
	in = b.wanted("taken", b.shared, 1)
	in.IdempotencyKey = "again"
	_, err = b.Create(b.admin, in)
	platformtest.Refused(t, err, fault.Conflict, "input.name")
	in = b.wanted("good", b.shared, 1)
	in.StorageClass = "tape"
	_, err = b.Create(b.admin, in)
	platformtest.Refused(t, err, fault.NotFound, "input.storageClass")
	in = b.wanted("taken", b.shared, 2)
	_, err = b.Create(b.admin, in)
	platformtest.Refused(t, err, fault.IdempotencyKeyReused, "input.idempotencyKey")
	require.Equal(t, []int{1, 1, 1}, []int{b.Count("volume", ""), b.Count("idempotency", ""),
		b.done()})
}

func TestNobodyReachesVolumesWithoutTheRight(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v := b.made("home", b.shared, 1)
	other := b.Tenant()
	_, reader := b.ServiceAccount(b.project, authz.VolumeRead)
	for code, callers := range map[fault.Code][]context.Context{
		fault.Forbidden: {b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project))), b.With(reader),
			b.operator},
		fault.NotFound: {b.As(b.User(other, platformtest.Across(authz.TenantAdmin, other)))},
	} {
		for _, caller := range callers {
			_, err := b.Create(caller, b.wanted("more", b.shared, 1))
			platformtest.Refused(t, err, code)
			_, err = b.Resize(caller, volume.ResizeInput{VolumeID: v.ID, SizeGiB: 2})
			platformtest.Refused(t, err, code)
			_, err = b.Delete(caller, v.ID, "mine")
			platformtest.Refused(t, err, code)
			_, err = b.Get(caller, v.ID)
			require.Equal(t, code == fault.NotFound, err != nil, "%v", err)
			_, err = b.List(caller, volume.Filter{ProjectID: b.project.ID}, page.Args{First: 1})
			require.Equal(t, code == fault.NotFound, err != nil, "%v", err)
		}
	}
	require.Equal(t, 1, b.Count("volume", "status = 'READY' AND size_gib = 1"))
	require.Equal(t, []int{1, 12}, []int{b.done(), len(b.trail()) - 1}, "each refusal is recorded")
}

func TestTwoAtOnceAreCountedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.SQL(`UPDATE project SET max_volume_gib = 10 WHERE id = $1`, b.project.ID)
	const callers = 6
	failures := make([]error, callers)
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() { _, failures[i] = b.Create(b.admin, b.wanted(fmt.Sprint("v", i), b.shared, 4)) })
	}
	running.Wait()
	won := 0
	for _, err := range failures {
		if err == nil {
			won++
			continue
		}
		platformtest.Refused(t, err, fault.LimitExceeded, "input.sizeGiB")
	}
	require.Equal(t, []int{2, 2, 2}, []int{won, b.Count("volume", ""), b.Count("idempotency", "")})
}

func TestPolicyRulesWhatIsStored(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v := b.made("home", b.local, 3)
	for document, want := range map[string]struct {
		code fault.Code
		path string
	}{
		`{"storageClasses":{"allow":["disk"]}}`:    {fault.StorageClassDenied, "input.storageClass"},
		`{"storageClasses":{"deny":["parallel"]}}`: {fault.StorageClassDenied, "input.storageClass"},
		`{"maxVolumeGiB":4}`:                       {fault.VolumesCeiling, "input.sizeGiB"},
	} {
		b.Policy(b.project, document)
		_, err := b.Create(b.admin, b.wanted("more", b.shared, 2))
		platformtest.Refused(t, err, fault.PolicyDenied, want.path)
		require.Equal(t, want.code, fault.From(err).Reasons[0].Code)
	}
	b.Policy(b.project, `{"maxVolumeGiB":6}`)
	_, err := b.Resize(b.admin, volume.ResizeInput{VolumeID: v.ID, SizeGiB: 5})
	require.NoError(t, err, "its own size is counted once")
	_, err = b.Resize(b.admin, volume.ResizeInput{VolumeID: v.ID, SizeGiB: 7})
	platformtest.Refused(t, err, fault.PolicyDenied, "input.sizeGiB")
	require.Equal(t, []int{1, 1}, []int{b.Count("volume", ""), b.Count("volume", "size_gib = 5")})
}

func TestAVolumeGrowsAndItsNodesAreTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.SQL(`UPDATE project SET max_volume_gib = 10 WHERE id = $1`, b.project.ID)
	v, node := b.made("home", b.shared, 4), b.serve()
	b.seated(v, node)
	woken := b.Hub.Wait(event.NodeTopic(node))
	defer woken.Close()
	for _, c := range []struct {
		gib  int
		code fault.Code
		path string
	}{{0, fault.InvalidArgument, "input.sizeGiB"}, {3, fault.FailedPrecondition, "input.sizeGiB"},
		{11, fault.LimitExceeded, "input.sizeGiB"}} {
		_, err := b.Resize(b.admin, volume.ResizeInput{VolumeID: v.ID, SizeGiB: c.gib})
		platformtest.Refused(t, err, c.code, c.path)
	}
	require.Equal(t, []int{1, 1}, []int{b.Count("volume", "size_gib = 4"), b.done()})
	for range 2 {
		grown, err := b.Resize(b.admin, volume.ResizeInput{VolumeID: v.ID, SizeGiB: 10, Reason: "it fills"})
		require.NoError(t, err)
		require.Equal(t, 10, grown.SizeGiB)
	}
	require.Equal(t, 1, b.Count("audit_entry", "allowed AND action = 'resizeVolume' AND after ->> 'sizeGiB' = '10'"))
	<-woken.C
}
