package live_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// within is how soon a right that has ended must end what rests on it, with a margin for a busy machine.
const within = 8 * time.Second

func TestSubscriptionsEndWithTheirCodeWhenTheRightIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.Session(b.viewer)
	account, key := b.ServiceAccount(b.project, authz.AppsInstanceRead)
	leaver := b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project))
	changing, mixed := b.ServiceAccount(b.project, authz.AppsInstanceRead, authz.SchedulerInstanceRead)
	stays := b.watching(b.admin, timeline, "")
	cases := map[fault.Code][]*sink{
		fault.Unauthenticated: {b.watching(b.With(session), timeline, ""), b.watching(b.With(session), activity, "")},
		fault.PermissionRevoked: {
			// which is FORBIDDEN from then on
			b.watching(b.With(key), timeline, ""), b.watching(b.With(key), timeline, ""),
			b.watching(b.As(leaver), timeline, ""), b.watching(b.As(leaver), activity, ""), // which is NOT_FOUND
			b.watching(b.With(mixed), activity, ""), // which is narrower
		},
	}
	b.append("seen by all")
	for _, sinks := range cases {
		for _, s := range sinks {
			b.until(func() bool { return len(s.got()) == 1 })
		}
	}
	b.SQL(`UPDATE session SET revoked_at = now() WHERE user_id = $1`, b.viewer.ID)
	b.SQL(`UPDATE service_account SET permission_keys = '["allocation.read"]' WHERE id = $1`, account.ID)
	b.SQL(`UPDATE role_binding SET revoked_at = now() WHERE user_id = $1`, leaver.ID)
	b.SQL(`UPDATE service_account SET permission_keys = '["apps.instance.read"]' WHERE id = $1`, changing.ID)
	deadline := time.Now().Add(within)
	for code, sinks := range cases {
		for _, s := range sinks {
			err := s.ended(t, time.Until(deadline))
			require.True(t, fault.Is(err, code), "%s: %v", code, err)
		}
	}
	b.append("seen by who stays")
	b.until(func() bool { return len(stays.got()) == 2 })
	for _, sinks := range cases {
		for _, s := range sinks {
			require.Len(t, s.got(), 1)
		}
	}
}

func TestAQuestionIsAskedOnceARoundHoweverManyRestOnIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, key := b.ServiceAccount(b.project, authz.AppsInstanceRead)
	ctx := b.With(key) // of a key no rights are proved: it is asked for in each round
	for range 40 {
		b.watching(ctx, timeline, "")
	}
	b.until(func() bool { _, _, asked := b.counts.get(); return len(asked) >= 2 })
	_, _, asked := b.counts.get()
	require.Greater(t, asked[1].Sub(asked[0]), 2*time.Second, "the second asking is the next round's")
}

// rounds waits until a number of rounds have begun and ended from now on.
func (b *bench) rounds(n int32) {
	b.t.Helper()
	var seen atomic.Int32
	ctx := b.As(b.viewer)
	defer b.watch.Watch(ctx, "a marker of "+b.t.Name(), func(context.Context) error {
		seen.Add(1)
		return nil
	}, func(error) {})()
	b.until(func() bool { return seen.Load() > n })
}

func TestWhatRightsDecideIsAskedAgainOnlyWhenTheyAreOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	watcher := b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project))
	ctx := b.As(watcher)
	s := b.watching(ctx, timeline, "")
	asked := func() int { _, _, asked := b.counts.get(); return len(asked) }
	b.rounds(3)
	require.Equal(t, 1, asked(), "its rights are the same since it was asked")
	b.SQL(`UPDATE role_binding SET role = 'project_admin' WHERE user_id = $1`, watcher.ID)
	b.rounds(3)
	require.Equal(t, 2, asked(), "its rights were others, and are the same since")
	b.SQL(`UPDATE role_binding SET revoked_at = now() WHERE user_id = $1`, watcher.ID)
	require.True(t, fault.Is(s.ended(t, within), fault.PermissionRevoked))
	require.Equal(t, 3, asked())
}

func TestTheActivityOfAProjectEndsWithTheProject(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := b.Project(b.tenant)
	ctx := b.As(b.User(b.tenant, platformtest.Across(authz.TenantAdmin, b.tenant))) // whose rights stay
	s := newSink()
	stop, err := b.subscribeTo(ctx, other.ID, s)
	require.NoError(t, err)
	t.Cleanup(stop)
	b.rounds(2)
	b.SQL(`UPDATE project SET deleted_at = now() WHERE id = $1`, other.ID)
	require.True(t, fault.Is(s.ended(t, within), fault.PermissionRevoked))
}

func TestOnlyAnAnswerTakesARightAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := b.As(b.viewer)
	var asked, lost atomic.Int32
	forget := b.watch.Watch(ctx, "away", func(context.Context) error {
		asked.Add(1)
		return errors.New("the database is away")
	}, func(error) { lost.Add(1) })
	var told atomic.Value
	again := b.watch.Watch(ctx, "gone", func(context.Context) error { return fault.New(fault.Forbidden, "no") },
		func(err error) { told.Store(err) })
	b.until(func() bool { return asked.Load() >= 2 })
	require.Zero(t, lost.Load())
	require.True(t, fault.Is(told.Load().(error), fault.PermissionRevoked))
	forget()
	forget()
	again()
	seen := asked.Load()
	var marker atomic.Int32
	defer b.watch.Watch(ctx, "marker", func(context.Context) error { marker.Add(1); return nil }, func(error) {})()
	b.until(func() bool { return marker.Load() >= 2 })
	require.LessOrEqual(t, asked.Load(), seen+1, "what is forgotten is not asked for any more")
}
