package volume_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	domain "github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/service/fleet"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/volume"
)

// told returns the project's events of volumes, once there are so many.
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
	b.SQL(`UPDATE compute_node SET status = 'OFFLINE' WHERE id = $1`, node)
	_, err = (&fleet.Service{DB: b.DB}).Retire(b.operator, fleet.RetireInput{NodeID: node, Lost: true, Reason: "burnt"})
	require.NoError(t, err)

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

func TestAnEventOfAVolumeCarriesTheCorrelationOfTheRequestThatBroughtItAbout(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	by := func(caller context.Context, name string) context.Context {
		opened := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{byte(len(name))},
			SpanID: trace.SpanID{1}})
		return trace.ContextWithSpanContext(authz.WithRequest(caller, authz.RequestInfo{CorrelationID: name}), opened)
	}
	node := b.serve(domain.Storage{Name: "parallel", Kind: domain.Shared})
	v, err := b.Create(by(b.admin, "create"), b.wanted("home", b.shared, 5))
	require.NoError(t, err)
	b.seated(v, node)
	b.SQL(`UPDATE volume SET present_at = now() WHERE id = $1`, v.ID) // as a node's report does
	_, err = b.PlanResize(by(b.admin, "a plan"), volume.ResizeInput{VolumeID: v.ID, SizeGiB: 8})
	require.NoError(t, err)
	_, err = b.Resize(by(b.admin, "resizing"), volume.ResizeInput{VolumeID: v.ID, SizeGiB: 9})
	require.NoError(t, err)
	_, err = b.Delete(by(b.admin, "delete it"), v.ID, "over")
	require.NoError(t, err)
	b.SQL(`UPDATE volume SET status = 'DELETED', deleted_at = now() WHERE id = $1`, v.ID)
	lost, err := b.Create(by(b.admin, "create"), b.wanted("lost", b.local, 1))
	require.NoError(t, err)
	b.SQL(`UPDATE volume SET node_id = $2 WHERE id = $1`, lost.ID, node)
	b.SQL(`UPDATE compute_node SET status = 'OFFLINE' WHERE id = $1`, node)
	_, err = (&fleet.Service{DB: b.DB}).Retire(by(b.operator, "retirement"),
		fleet.RetireInput{NodeID: node, Lost: true, Reason: "burnt"})
	require.NoError(t, err)

	var told []string
	for _, one := range b.told(7) {
		kind, _ := strings.CutPrefix(string(one.Type), "apps.volume.")
		told = append(told, kind+" by "+one.CorrelationID)
		require.Equal(t, trace.TraceID{byte(len(one.CorrelationID))}.String(), one.TraceID, told)
	}
	require.Equal(t, []string{"created by create", "ready by create", "resized by resizing", "deleting by delete it",
		"deleted by delete it", "created by create", "failed by retirement"}, told)
}

// A node's report is not a verb of volumes, and wakes no process by itself: the trigger does.
func TestWhatANodeProvesOfAVolumeWakesAnotherProcess(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v := b.made("home", b.shared, 5)
	ctx, stop := context.WithCancel(t.Context())
	there := event.NewHub(b.DB.Worker(), slog.New(slog.DiscardHandler))
	var running sync.WaitGroup
	running.Go(func() { _ = there.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	mine := there.Wait(event.ProjectTopic(b.project.ID))
	defer mine.Close()
	awoken := func(why string) {
		t.Helper()
		select {
		case <-mine.C:
		case <-time.After(time.Minute):
			t.Fatal("nobody was woken: " + why)
		}
	}
	awoken("it listens from here on")
	b.SQL(`UPDATE volume SET used_bytes = 1, measured_at = now() WHERE id = $1`, v.ID)
	b.SQL(`UPDATE volume SET present_at = now() WHERE id = $1`, v.ID)
	awoken("a node has its files")
}
