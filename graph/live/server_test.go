package live_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// follow is a subscriber that comes and goes until it has got the last of the events: each time it
// stays for a few, and resumes from its cursor.
func (b *bench) follow(ctx context.Context, document, cursor, last string, random *rand.Rand) ([]string, error) {
	var got []string
	for len(got) == 0 || got[len(got)-1] != last {
		into := newSink()
		stop, err := b.subscribe(ctx, document, cursor, into)
		if err != nil {
			return got, err
		}
		stay := 1 + random.IntN(80)
		b.until(func() bool {
			events := into.got()
			return len(events) >= stay || (len(events) > 0 && events[len(events)-1].Message == last)
		})
		stop()
		for _, e := range into.got() {
			got, cursor = append(got, e.Message), e.Cursor
		}
		if into.broken != nil {
			return got, into.broken
		}
	}
	return got, nil
}

func TestSubscribersWithAnyCursorGetEveryEventOnceAndInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const written, subscribers = 400, 24
	var stored []string
	for n := range 250 { // more than a page, before anybody looks
		stored = append(stored, fmt.Sprint("old-", n))
	}
	b.append(stored...)
	start, err := event.NewFeeds(t.Context(), b.DB.Worker())
	require.NoError(t, err)
	origin := start.Cursor(event.Position{})
	var running sync.WaitGroup
	got, froms, errs := make([][]string, subscribers), make([]int, subscribers), make([]error, subscribers)
	ctx := b.As(b.viewer)
	last := fmt.Sprint("new-", written-1)
	for i := range subscribers {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		document, cursor := timeline, ""
		switch i % 3 {
		case 0:
			froms[i] = random.IntN(len(stored))
			cursor = fmt.Sprint("s", froms[i])
		case 1:
			document, cursor = activity, origin
		}
		running.Go(func() { got[i], errs[i] = b.follow(ctx, document, cursor, last, random) })
	}
	for n := 0; n < written; {
		var messages []string
		for range min(1+n%5, written-n) {
			messages = append(messages, fmt.Sprint("new-", n))
			n++
		}
		b.append(messages...)
	}
	running.Wait()
	require.NoError(t, errors.Join(errs...))
	for n := range written {
		stored = append(stored, fmt.Sprint("new-", n))
	}
	require.Equal(t, len(stored), b.Count("app_instance_event", ""))
	for i := range subscribers {
		require.Equal(t, stored[froms[i]:], got[i], "subscriber %d", i)
	}
	b.until(func() bool { return b.server.Groups() == 0 })
}

func TestAGroupReadsOncePerWakeUpHoweverManyWatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.append("one", "two", "three")
	ctx := b.As(b.viewer)
	var sinks []*sink
	for i := range 60 {
		sinks = append(sinks, b.watching(ctx, timeline, fmt.Sprint("s", i%4)))
	}
	all := func(n int) func() bool {
		return func() bool {
			for i, s := range sinks {
				if len(s.got()) != n-i%4 {
					return false
				}
			}
			return true
		}
	}
	b.until(all(3))
	require.Equal(t, 1, b.server.Groups())
	b.append("settle")
	b.until(all(4))
	reads, replays, _ := b.counts.get()
	for n := range 20 {
		b.append(fmt.Sprint("live ", n))
		b.until(all(5 + n))
	}
	now, replaysNow, _ := b.counts.get()
	require.LessOrEqual(t, now-reads, 20)
	require.Equal(t, replays, replaysNow, "nobody reads for itself once it is live")
}

func TestDifferentDocumentsAndFeedsAreDifferentGroups(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := b.As(b.viewer)
	b.watching(ctx, timeline, "")
	b.watching(b.admin, timeline, "s0") // another caller and cursor, the same bytes
	require.Equal(t, 1, b.server.Groups())
	b.watching(ctx, activity, "")
	require.Equal(t, 2, b.server.Groups())
	b.watching(ctx, strings.Replace(timeline, "seq ", "", 1), "")
	require.Equal(t, 3, b.server.Groups())
}

// labelled counts the goroutines that carry a label.
func labelled(label string) int {
	var profile bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
	return strings.Count(profile.String(), `"test":"`+label+`"`)
}

func TestUnusedGroupsEndAndLeaveNoGoroutine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.append("one", "two")
	ctx := b.As(b.viewer)
	label := t.Name()
	pprof.Do(ctx, pprof.Labels("test", label), func(ctx context.Context) {
		for round := range 3 {
			var stops []func()
			var sinks []*sink
			for i := range 30 {
				into := newSink()
				document, after := timeline, fmt.Sprint("s", i%3)
				if i%2 == 0 {
					document, after = activity, ""
				}
				stop, err := b.subscribe(ctx, document, after, into)
				require.NoError(t, err)
				stops, sinks = append(stops, stop), append(sinks, into)
			}
			b.append(fmt.Sprint("round ", round))
			for _, into := range sinks {
				b.until(func() bool { return len(into.got()) > 0 })
			}
			require.Positive(t, labelled(label))
			for i, stop := range stops {
				stop()
				if i < len(stops)-2 {
					require.Positive(t, b.server.Groups())
				}
			}
			require.Zero(t, b.server.Groups())
		}
	})
	b.until(func() bool { return labelled(label) == 0 })
}

func TestASlowReaderIsCutAndResumesFromItsCursor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := b.As(b.viewer)
	fast, slow := b.watching(ctx, timeline, ""), newSink()
	slow.limit = 10
	stop, err := b.subscribe(ctx, timeline, "", slow)
	require.NoError(t, err)
	defer stop()
	var want []string
	for n := range 50 {
		want = append(want, fmt.Sprint(n))
		b.append(fmt.Sprint(n))
		b.until(func() bool { return len(slow.got()) > 0 })
	}
	b.until(func() bool { return len(fast.got()) == 50 })
	require.NoError(t, slow.ended(t, patience))
	held := slow.got()
	require.NotEmpty(t, held)
	require.LessOrEqual(t, len(held), 10)
	resumed := b.watching(ctx, timeline, held[len(held)-1].Cursor)
	b.until(func() bool { return len(held)+len(resumed.got()) >= 50 })
	var got []string
	for _, e := range append(held, resumed.got()...) {
		got = append(got, e.Message)
	}
	require.Equal(t, want, got)
}

func TestSubscriptionsThatCannotBeOpenedSayWhy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.append("one")
	stranger := b.As(b.User(b.Tenant()))
	viewer := b.As(b.viewer)
	_, blind := b.ServiceAccount(b.project)
	for name, c := range map[string]struct {
		ctx             context.Context
		document, after string
		code            fault.Code
	}{
		"another tenant's instance": {stranger, timeline, "", fault.NotFound},
		"another tenant's project":  {stranger, activity, "", fault.NotFound},
		"nobody":                    {t.Context(), timeline, "", fault.Unauthenticated},
		"nothing may be read":       {b.With(blind), activity, "", fault.NotFound},
		"a cursor of another feed":  {viewer, timeline, "pX.1.2", fault.CursorInvalid},
		"a cursor beyond the end":   {viewer, timeline, "s99", fault.CursorInvalid},
		"a timeline's cursor":       {viewer, activity, "s1", fault.CursorInvalid},
		"another database's cursor": {viewer, activity, "pother.1.2", fault.CursorExpired},
	} {
		_, err := b.subscribe(c.ctx, c.document, c.after, newSink())
		require.True(t, fault.Is(err, c.code), "%s: %v", name, err)
	}
	b.made.ID = ids.New(ids.Instance)
	_, err := b.subscribe(viewer, timeline, "", newSink())
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	b.made.ID = "prj_x"
	_, err = b.subscribe(viewer, timeline, "", newSink())
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	require.Zero(t, b.server.Groups())
}

// poison makes the executor fail on events whose response holds the word.
type poison struct{ panics bool }

func (poison) ExtensionName() string                   { return "Poison" }
func (poison) Validate(graphql.ExecutableSchema) error { return nil }

func (p poison) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	response := next(ctx)
	if response != nil && strings.Contains(string(response.Data), "poison") {
		if p.panics {
			panic("poisoned")
		}
		return nil
	}
	return response
}

func TestAnEventThatCannotBeEncodedFailsItsReadersAndNobodyElse(t *testing.T) {
	t.Parallel()
	for _, panics := range []bool{false, true} {
		b := newBench(t, poison{panics})
		ctx := b.As(b.viewer)
		b.append("good")
		joined := []*sink{b.watching(ctx, timeline, ""), b.watching(ctx, timeline, "s1")}
		b.append("better")
		b.until(func() bool { return len(joined[0].got()) == 2 && len(joined[1].got()) == 1 })
		b.append("before", "poison", "after")
		for _, s := range joined {
			require.Error(t, s.ended(t, patience))
		}
		require.Error(t, b.watching(ctx, timeline, "s1").ended(t, patience), "its replay meets the same event")
		past := b.watching(ctx, timeline, "s4")
		b.until(func() bool { return len(past.got()) == 1 })
		b.append("later")
		b.until(func() bool { return len(past.got()) == 2 })
		for i, message := range []string{"after", "later"} {
			got := past.got()[i]
			require.Equal(t, message, got.Message)
			require.Regexp(t, fmt.Sprintf(`^s%d\.\w+$`, got.Seq), got.Cursor)
			require.Equal(t, 5+i, got.Seq)
		}
		second := b.watching(ctx, timeline, "s5")
		b.until(func() bool { return len(second.got()) == 1 })
	}
}
