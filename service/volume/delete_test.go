package volume_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	domain "github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/volume"
)

func TestAVolumeThatNoNodeHadIsDeletedAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve(domain.Storage{Name: "parallel", Kind: domain.Shared})
	v := b.made("home", b.shared, 1)
	_, err := b.Delete(b.admin, v.ID, "")
	platformtest.Refused(t, err, fault.InvalidArgument, "reason")
	_, err = b.Delete(b.admin, ids.New(ids.Volume), "mine")
	platformtest.Refused(t, err, fault.NotFound)
	for range 2 {
		gone, err := b.Delete(b.admin, v.ID, "no more")
		require.NoError(t, err)
		require.Equal(t, domain.Deleted, gone.Status)
		require.NotNil(t, gone.DeletedAt)
	}
	require.Equal(t, 1, b.Count("audit_entry", "allowed AND action = 'deleteVolume' AND reason = 'no more'"))
	again := b.wanted("home", b.local, 1)
	again.IdempotencyKey = "again"
	_, err = b.Create(b.admin, again)
	require.NoError(t, err, "its name is free")
	for deleted, n := range map[bool]int{false: 1, true: 2} {
		listed, err := b.List(b.admin, volume.Filter{ProjectID: b.project.ID, Deleted: deleted}, page.Args{First: 9})
		require.NoError(t, err)
		require.Len(t, listed.Rows, n)
	}
	_, err = b.Resize(b.admin, volume.ResizeInput{VolumeID: v.ID, SizeGiB: 2})
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.volumeId")
}

func TestANodeDeletesWhatNodesHad(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	had := b.serve()
	serves := b.serve(domain.Storage{Name: "parallel", Kind: domain.Shared})
	v := b.made("home", b.shared, 1)
	b.seated(v, had)
	woken := b.Hub.Wait(event.NodeTopic(serves))
	defer woken.Close()
	going, err := b.Delete(b.admin, v.ID, "no more")
	require.NoError(t, err)
	require.Equal(t, domain.Deleting, going.Status)
	require.Nil(t, going.DeletedAt)
	<-woken.C
	in := b.wanted("home", b.shared, 1)
	in.IdempotencyKey = "again"
	_, err = b.Create(b.admin, in)
	platformtest.Refused(t, err, fault.Conflict, "input.name")
}

func TestAVolumeInUseIsNotDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v, other := b.made("home", b.shared, 1), b.made("other", b.shared, 1)
	first, second := b.user("first", v), b.user("second", v)
	_, err := b.Delete(b.admin, v.ID, "no more")
	platformtest.Refused(t, err, fault.Conflict, "volumeId", "volumeId")
	require.Equal(t, "instances use the volume: first (home), second (home); decommission them first",
		fault.From(err).Message)
	require.Equal(t, fault.VolumeInUse, fault.From(err).Reasons[0].Code)
	require.Contains(t, fault.From(err).Reasons[1].Message, string(second))
	require.Equal(t, []int{2, 2}, []int{b.Count("volume", "status = 'READY'"), b.done()})

	found, err := b.Uses(b.admin, []ids.ID{v.ID, other.ID})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, &volume.Use{VolumeID: v.ID, InstanceID: first, TenantID: b.tenant.ID, ProjectID: b.project.ID,
		InstanceName: "first", Family: "apps", Slot: "home", Path: "/home"}, found[v.ID][0])
	_, account := b.ServiceAccount(b.project, authz.VolumeRead)
	tenant := b.Tenant()
	for _, caller := range []context.Context{b.With(account),
		b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))} {
		found, err = b.Uses(caller, []ids.ID{v.ID})
		require.NoError(t, err)
		require.Empty(t, found, "whoever does not see the instances")
	}
	b.SQL(`UPDATE instance SET released_at = now() WHERE volumes IS NOT NULL`)
	gone, err := b.Delete(b.admin, v.ID, "no more")
	require.NoError(t, err)
	require.Equal(t, domain.Deleted, gone.Status)
}

func TestADeletionWaitsForALaunchThatTakesTheVolume(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v, pattern := b.made("home", b.shared, 1), b.pattern()
	launch, err := b.Admin.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = launch.Rollback(context.WithoutCancel(t.Context())) }() // a test that fails holds nothing
	_, err = launch.Exec(t.Context(), insertUser, pattern, ids.New(ids.Instance), "launched", v.ID)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := b.Delete(b.admin, v.ID, "no more")
		ended <- err
	}()
	require.Eventually(t, func() bool {
		return b.Count("pg_stat_activity", "datname = current_database() AND wait_event_type = 'Lock'") == 1
	}, 15*time.Second, 10*time.Millisecond)
	require.NoError(t, launch.Commit(t.Context()))
	platformtest.Refused(t, <-ended, fault.Conflict, "volumeId")
	require.Equal(t, 1, b.Count("volume", "status = 'READY'"))
}

func TestALocalVolumeEndsWithItsNode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	gone := b.serve(domain.Storage{Name: "disk", Kind: domain.Local},
		domain.Storage{Name: "parallel", Kind: domain.Shared})
	waiting, kept, shared := b.made("waiting", b.local, 1), b.made("kept", b.local, 1), b.made("shared", b.shared, 1)
	for _, v := range []*volume.Volume{waiting, kept, shared} {
		b.seated(v, gone)
	}
	b.SQL(`UPDATE volume SET node_id = $1 WHERE name IN ('waiting', 'kept')`, gone)
	deleted := func(v *volume.Volume) domain.Status {
		out, err := b.Delete(b.admin, v.ID, "no more")
		require.NoError(t, err)
		return out.Status
	}
	require.Equal(t, domain.Deleting, deleted(waiting))
	b.SQL(`UPDATE compute_node SET retired_at = now(), status = 'RETIRED' WHERE id = $1`, gone)
	require.Equal(t, 1, b.Count("volume", "id = '"+string(waiting.ID)+"' AND status = 'DELETED' AND message <> ''"))
	require.Equal(t, domain.Deleted, deleted(kept))
	require.Equal(t, domain.Deleting, deleted(shared), "its files are on the shared file system still")
}
