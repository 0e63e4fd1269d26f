package volume_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	domain "github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/volume"
)

// told are the project's events of volumes, once there are so many.
func (b *bench) told(want int) (events []*event.Event) {
	b.t.Helper()
	feeds, err := event.NewFeeds(b.t.Context(), b.DB.Worker())
	require.NoError(b.t, err)
	require.Eventually(b.t, func() bool {
		events, err = feeds.Project(b.t.Context(), b.project.ID, []string{authz.VolumeFamily}, event.Position{}, 100)
		require.NoError(b.t, err)
		return len(events) >= want
	}, time.Minute, 20*time.Millisecond)
	require.Len(b.t, events, want)
	return events
}

func TestWhatHappensToAVolumeIsInItsProjectsFeed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	waiter := b.Hub.Wait(event.ProjectTopic(b.project.ID))
	defer waiter.Close()
	v := b.made("home", b.shared, 5)
	<-waiter.C
	node := b.serve(domain.Storage{Name: "parallel", Kind: domain.Shared})
	b.seated(v, node)
	b.SQL(`UPDATE volume SET present_at = now(), used_bytes = 1, measured_at = now() WHERE id = $1`, v.ID)
	b.SQL(`UPDATE volume SET used_bytes = 2, measured_at = now(), message = 'busy' WHERE id = $1`, v.ID)
	_, err := b.Resize(b.admin, volume.ResizeInput{VolumeID: v.ID, SizeGiB: 9})
	require.NoError(t, err)
	_, err = b.Delete(b.admin, v.ID, "over")
	require.NoError(t, err)
	b.SQL(`UPDATE volume SET status = 'DELETED', deleted_at = now() WHERE id = $1`, v.ID)

	unused := b.made("never", b.local, 1)
	_, err = b.Delete(b.admin, unused.ID, "over")
	require.NoError(t, err)
	lost := b.made("lost", b.local, 1)
	b.SQL(`UPDATE volume SET node_id = $2 WHERE id = $1`, lost.ID, node)
	b.SQL(`UPDATE compute_node SET status = 'RETIRED', retired_at = now() WHERE id = $1`, node)

	var types []any
	for _, one := range b.told(10) {
		require.True(t, one.ID.Valid() && one.ID.Kind() == ids.Event, one.ID)
		require.Empty(t, one.AppInstanceID())
		types = append(types, *one.VolumeID, string(one.Type), one.Seq)
	}
	require.Equal(t, []any{v.ID, "apps.volume.created", 1, v.ID, "apps.volume.ready", 2, v.ID, "apps.volume.resized", 3,
		v.ID, "apps.volume.deleting", 4, v.ID, "apps.volume.deleted", 5,
		unused.ID, "apps.volume.created", 1, unused.ID, "apps.volume.deleting", 2, unused.ID, "apps.volume.deleted", 3,
		lost.ID, "apps.volume.created", 1, lost.ID, "apps.volume.failed", 2}, types)
	require.Contains(t, b.told(10)[9].Message, "its node was taken out for good")
	require.JSONEq(t, `{"volume": "`+string(v.ID)+`", "name": "home", "storageClass": "parallel", "sizeGiB": 9}`,
		string(b.told(10)[2].Payload))
}

func TestARefusedVolumeTellsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Policy(nil, `{"maxVolumeGiB": 1}`)
	_, err := b.Create(b.admin, b.wanted("home", b.shared, 5))
	require.Error(t, err)
	b.made("small", b.shared, 1)
	b.told(1)
}
