package client_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/clienttest"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// event is the nth of an instance's timeline.
func event(n int) clienttest.Object {
	return clienttest.Object{
		"id": fmt.Sprintf("evt_%d", n), "cursor": fmt.Sprintf("c%d", n), "seq": n, "type": "apps.instance.running",
	}
}

// emitFrom sends the events first to last.
func emitFrom(emit func(any) error, first, last int) error {
	for n := first; n <= last; n++ {
		if err := emit(event(n)); err != nil {
			return err
		}
	}
	return nil
}

// tail reads seqs until n have come or the feed ends.
func tail(t *testing.T, feed func(func(*gql.Event, error) bool), n int) (seqs []int, last error) {
	t.Helper()
	for event, err := range feed {
		if err != nil {
			return seqs, err
		}
		if seqs = append(seqs, event.Seq); len(seqs) == n {
			break
		}
	}
	return seqs, nil
}

// cursors returns the cursors that clients resumed after.
func cursors(server *clienttest.Server, field string) (after []string) {
	for _, call := range server.CallsOf(field) {
		cursor, _ := call.Args["after"].(string)
		after = append(after, cursor)
	}
	return after
}

func TestTimelineResumesAfterItsLastCursor(t *testing.T) {
	t.Parallel()
	endings := map[string]error{
		"the connection is cut":       clienttest.ErrDrop,
		"the server goes away":        &clienttest.Close{Code: 1001, Reason: "going away"},
		"the server restarts":         &clienttest.Close{Code: 1012, Reason: "restart"},
		"the reader was too slow":     &clienttest.Fault{Code: "SLOW_CONSUMER", Message: "too slow", Retryable: true},
		"the reader was cut by close": &clienttest.Close{Code: 4500, Reason: "SLOW_CONSUMER: too slow"},
	}
	for name, ending := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := clienttest.New(t, schemaFiles)
			server.HandleStream("instanceTimeline", func(call clienttest.Call, emit func(any) error) error {
				if call.Args["after"] == nil {
					if err := emitFrom(emit, 1, 3); err != nil {
						return err
					}
					return ending
				}
				// A replay that overlaps what was delivered, as a server may send after a crash.
				if err := emitFrom(emit, 3, 5); err != nil {
					return err
				}
				<-call.Context.Done()
				return nil
			})
			c := newClient(t, server.URL, client.Options{})
			seqs, err := tail(t, c.Timeline(t.Context(), "ins_1", ""), 5)
			require.NoError(t, err)
			require.Equal(t, []int{1, 2, 3, 4, 5}, seqs)
			require.Equal(t, []string{"", "c3"}, cursors(server, "instanceTimeline"))
		})
	}
}

func TestTimelineResumesOverAHole(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	server.HandleStream("instanceTimeline", func(call clienttest.Call, emit func(any) error) error {
		if call.Args["after"] == nil {
			_ = emitFrom(emit, 1, 2)
			_ = emitFrom(emit, 4, 4)
			<-call.Context.Done()
			return nil
		}
		_ = emitFrom(emit, 3, 4)
		<-call.Context.Done()
		return nil
	})
	seqs, err := tail(t, newClient(t, server.URL, client.Options{}).Timeline(t.Context(), "ins_1", ""), 4)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3, 4}, seqs)
}

func TestTimelineWithALastingHoleEnds(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	server.HandleStream("instanceTimeline", func(call clienttest.Call, emit func(any) error) error {
		_ = emitFrom(emit, 1, 1)
		_ = emitFrom(emit, 3, 3)
		<-call.Context.Done()
		return nil
	})
	seqs, err := tail(t, newClient(t, server.URL, client.Options{}).Timeline(t.Context(), "ins_1", ""), 9)
	require.Equal(t, []int{1}, seqs)
	require.ErrorContains(t, err, "gap")
}

func TestFeedEndsWithWhatTryingAgainCannotMend(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		ending error
		code   string
	}{
		"4401":                   {&clienttest.Close{Code: 4401, Reason: "Unauthorized"}, client.CodeUnauthenticated},
		"4401 that says expired": {&clienttest.Close{Code: 4401, Reason: "TOKEN_EXPIRED"}, client.CodeTokenExpired},
		"4403":                   {&clienttest.Close{Code: 4403, Reason: "Forbidden"}, client.CodeForbidden},
		"4403 that says revoked": {&clienttest.Close{Code: 4403, Reason: "PERMISSION_REVOKED: the right is gone"},
			client.CodePermissionRevoked},
		"4400": {&clienttest.Close{Code: 4400, Reason: "invalid message"},
			client.CodeRequestInvalid},
		"a cursor that expired": {&clienttest.Fault{Code: "CURSOR_EXPIRED", Message: "too old"},
			client.CodeCursorExpired},
		"an instance that is not": {&clienttest.Fault{Code: "NOT_FOUND", Message: "no such instance"},
			client.CodeNotFound},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := clienttest.New(t, schemaFiles)
			server.HandleStream("instanceTimeline", func(_ clienttest.Call, emit func(any) error) error {
				_ = emitFrom(emit, 1, 1)
				return test.ending
			})
			seqs, err := tail(t, newClient(t, server.URL, client.Options{}).Timeline(t.Context(), "ins_1", ""), 9)
			require.Equal(t, []int{1}, seqs)
			require.Equal(t, test.code, client.CodeOf(err))
			require.Len(t, server.CallsOf("instanceTimeline"), 1)
		})
	}
}

func TestRefusedUpgradeEndsTheFeed(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	server.RequireToken("good")
	_, err := tail(t, newClient(t, server.URL, client.Options{Token: "bad"}).Timeline(t.Context(), "ins_1", ""), 1)
	require.Equal(t, client.CodeUnauthenticated, client.CodeOf(err))
}

func TestFeedConnectsAgainWithARotatedCredential(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	server.HandleStream("instanceTimeline", func(call clienttest.Call, emit func(any) error) error {
		if call.Header.Get("Authorization") == "Bearer first" {
			_ = emitFrom(emit, 1, 1)
			return &clienttest.Close{Code: 4401, Reason: "TOKEN_EXPIRED"}
		}
		_ = emitFrom(emit, 2, 2)
		return nil
	})
	var asked atomic.Int32
	source := func(context.Context) (string, error) {
		if asked.Add(1) <= 2 {
			return "first", nil
		}
		return "second", nil
	}
	seqs, err := tail(t, newClient(t, server.URL, client.Options{TokenSource: source}).
		Timeline(t.Context(), "ins_1", ""), 2)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, seqs)
}

func TestFeedReconnectsWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	server.HandleStream("instanceTimeline", func(_ clienttest.Call, emit func(any) error) error {
		return emitFrom(emit, 1, 1)
	})
	seen := failFirst(server, 2, http.StatusServiceUnavailable, nil)
	seqs, err := tail(t, newClient(t, server.URL, client.Options{}).Timeline(t.Context(), "ins_1", ""), 1)
	require.NoError(t, err)
	require.Equal(t, []int{1}, seqs)
	require.EqualValues(t, 3, seen.Load())
}

func TestFeedGivesUpAfterItsDowntime(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	failFirst(server, 1000, http.StatusServiceUnavailable, nil)
	c := newClient(t, server.URL, client.Options{MaxDowntime: time.Millisecond})
	_, err := tail(t, c.Timeline(t.Context(), "ins_1", ""), 1)
	require.Equal(t, client.CodeUnavailable, client.CodeOf(err))
}

func TestFeedEndsWithItsContext(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	server.HandleStream("instanceTimeline", func(call clienttest.Call, emit func(any) error) error {
		_ = emitFrom(emit, 1, 1)
		<-call.Context.Done()
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range newClient(t, server.URL, client.Options{}).Timeline(ctx, "ins_1", "") {
		last = err
		cancel()
	}
	require.ErrorIs(t, last, context.Canceled)
}

func TestStoppedReaderEndsTheSubscriptionAtTheServer(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	ended := make(chan struct{})
	server.HandleStream("instanceTimeline", func(call clienttest.Call, emit func(any) error) error {
		defer close(ended)
		_ = emitFrom(emit, 1, 1)
		<-call.Context.Done()
		return nil
	})
	_, err := tail(t, newClient(t, server.URL, client.Options{}).Timeline(t.Context(), "ins_1", ""), 1)
	require.NoError(t, err)
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal("the server still streams")
	}
}

func TestProjectActivityDropsWhatIsReplayed(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	server.HandleStream("projectActivity", func(call clienttest.Call, emit func(any) error) error {
		if call.Args["after"] == nil {
			_ = emitFrom(emit, 7, 8)
			return clienttest.ErrDrop
		}
		_ = emitFrom(emit, 7, 9)
		<-call.Context.Done()
		return nil
	})
	seqs, err := tail(t, newClient(t, server.URL, client.Options{}).ProjectActivity(t.Context(), "prj_1", ""), 3)
	require.NoError(t, err)
	require.Equal(t, []int{7, 8, 9}, seqs)
	require.Equal(t, []string{"", "c8"}, cursors(server, "projectActivity"))
}

// operation is one at this percent, ended at 100.
func operation(percent int) clienttest.Object {
	state := "RUNNING"
	if percent == 100 {
		state = "SUCCEEDED"
	}
	return clienttest.Object{"id": "op_1", "state": state, "percent": percent}
}

func TestWaitOperationFollowsOverACut(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	var connections atomic.Int32
	server.HandleStream("operationProgress", func(_ clienttest.Call, emit func(any) error) error {
		percents, ending := []int{0, 40}, clienttest.ErrDrop
		if connections.Add(1) > 1 {
			percents, ending = []int{40, 70, 100}, nil
		}
		for _, percent := range percents {
			_ = emit(operation(percent))
		}
		return ending
	})
	var seen []int
	c := newClient(t, server.URL, client.Options{})
	op, err := c.WaitOperation(t.Context(), "op_1", func(op *gql.OperationDetail) { seen = append(seen, op.Percent) })
	require.NoError(t, err)
	require.Equal(t, gql.OperationStateSucceeded, op.State)
	require.Equal(t, []int{0, 40, 70, 100}, seen, "what the reconnect repeats is dropped")
}

func TestWaitOperationReadsTheOperationWhenItsFeedEndsEarly(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	server.HandleStream("operationProgress", func(clienttest.Call, func(any) error) error { return nil })
	server.Handle("operation", func(clienttest.Call) (any, error) { return operation(100), nil })
	op, err := newClient(t, server.URL, client.Options{}).WaitOperation(t.Context(), "op_1", nil)
	require.NoError(t, err)
	require.Equal(t, 100, op.Percent)
}

func TestNodeTasksComeAgainAfterAReconnect(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	var connections atomic.Int32
	server.HandleStream("nodeTasks", func(call clienttest.Call, emit func(any) error) error {
		_ = emit(clienttest.Object{"id": "tsk_1", "fence": 1})
		if connections.Add(1) == 1 {
			return clienttest.ErrDrop
		}
		<-call.Context.Done()
		return nil
	})
	var ids []string
	for task, err := range newClient(t, server.URL, client.Options{}).NodeTasks(t.Context()) {
		require.NoError(t, err)
		if ids = append(ids, task.Id); len(ids) == 2 {
			break
		}
	}
	require.Equal(t, []string{"tsk_1", "tsk_1"}, ids)
}
