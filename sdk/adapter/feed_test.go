package adapter

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter/internal/feed"
)

const tick = 10 * time.Millisecond

// changes reads a page of the feed over HTTP.
func (l *lab) changes(base, cursor string, wait time.Duration) OperationsPage {
	l.t.Helper()
	code, body := l.call(base, http.MethodGet, ChangesPath(cursor, wait), nil)
	require.Equal(l.t, http.StatusOK, code, "body: %s", body)
	var page OperationsPage
	require.NoError(l.t, json.Unmarshal(body, &page))
	return page
}

func TestLongPollAnswersAsSoonAsSomethingChanges(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	first := l.changes(base, "", 20*time.Second)
	require.Empty(t, first.Operations, "a first page answers at once, also when it is empty")
	pages := make(chan OperationsPage, 1)
	go func() { pages <- l.changes(base, first.Cursor, 20*time.Second) }()
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusAccepted)
	select {
	case page := <-pages:
		require.Len(t, page.Operations, 1)
		require.Equal(t, "op_1", page.Operations[0].OperationID)
	case <-time.After(patience):
		t.Fatal("the long poll did not answer")
	}
	l.ends(base, "op_1", StateSucceeded)
	last := l.changes(base, first.Cursor, 0)
	require.Len(t, last.Operations, 1, "only the newest status of an operation counts")
	require.Equal(t, StateSucceeded, last.Operations[0].State)
	require.Empty(t, l.changes(base, last.Cursor, time.Second).Operations)
}

func TestForeignEpochGetsWhatHasNotEndedAndANewCursor(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusAccepted)
	l.ends(base, "op_1", StateSucceeded)
	l.hold("second")
	l.dispatch(base, l.dispatchOf("op_2", InstanceCreate), http.StatusAccepted)
	l.eventually(base, "op_2", "in second", func(s Status) bool { return s.Phase == "second" })
	for _, cursor := range []string{"", "OTHEREPOCH:7"} {
		page := l.changes(base, cursor, 20*time.Second)
		require.Len(t, page.Operations, 1)
		require.Equal(t, "op_2", page.Operations[0].OperationID)
		require.Empty(t, l.changes(base, page.Cursor, 0).Operations)
	}
	l.release("second")
	l.ends(base, "op_2", StateSucceeded)
}

func TestCursorsThatAreNotCursorsAreRefused(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	for target, path := range map[string]string{
		"/v1/operations?after=nonsense": "after", "/v1/operations?after=a:-1": "after",
		"/v1/operations?wait=31": "wait", "/v1/operations?wait=x": "wait",
	} {
		code, body := l.call(base, http.MethodGet, target, nil)
		require.Equal(t, http.StatusBadRequest, code, target)
		require.Equal(t, path, errorOf(t, body).Path, target)
	}
}

func TestFeedPagesLoseNothing(t *testing.T) {
	t.Parallel()
	f := feed.New("e", 0, func(uint64) error { return nil })
	for i := range 2*MaxPage + 10 {
		require.NoError(t, f.Put(Status{OperationID: fmt.Sprint(i), State: StateRunning}))
	}
	for name, cursor := range map[string]string{"own epoch": "e:0", "foreign": "other:3"} {
		seen := map[string]bool{}
		for len(seen) < 2*MaxPage+10 {
			page, _, err := f.Page(cursor)
			require.NoError(t, err)
			require.NotEmpty(t, page.Operations, "%s: %d seen", name, len(seen))
			require.LessOrEqual(t, len(page.Operations), MaxPage)
			for _, status := range page.Operations {
				require.False(t, seen[status.OperationID], "%s: %s twice", name, status.OperationID)
				seen[status.OperationID] = true
			}
			cursor = page.Cursor
		}
	}
}

func TestFeedPagesStayBelowTheBodyBound(t *testing.T) {
	t.Parallel()
	f := feed.New("e", 0, func(uint64) error { return nil })
	large, err := json.Marshal(map[string]string{"x": string(make([]byte, MaxDetail/8))})
	require.NoError(t, err)
	for i := range 200 {
		status := Status{OperationID: fmt.Sprint(i), State: StateRunning}
		for range 10 {
			status.Members = append(status.Members, MemberUpdate{ID: "m", Detail: large})
		}
		require.NoError(t, f.Put(status))
	}
	page, _, err := f.Page("e:0")
	require.NoError(t, err)
	raw, err := json.Marshal(page)
	require.NoError(t, err)
	require.Less(t, len(raw), MaxBody)
	require.Less(t, len(page.Operations), 200)
	require.NotEmpty(t, page.Operations)
}

func TestVersionsAreNeverGivenTwiceAcrossRestarts(t *testing.T) {
	t.Parallel()
	var onDisk uint64
	raise := func(ceiling uint64) error { onDisk = ceiling; return nil }
	f := feed.New("e", 0, raise)
	for i := range 3 {
		require.NoError(t, f.Put(Status{OperationID: fmt.Sprint(i), State: StateRunning}))
	}
	mark := f.Mark()
	page, _, err := f.Page("e:0")
	require.NoError(t, err)

	again := feed.New("e", onDisk, raise)
	again.Restore(Status{OperationID: "0", State: StateSucceeded}, mark)
	require.NoError(t, again.Put(Status{OperationID: "1", State: StateRunning}))
	next, _, err := again.Page(page.Cursor)
	require.NoError(t, err)
	require.Len(t, next.Operations, 2, "a cursor of before the restart misses neither the ended nor the changed one")
	rest, _, err := again.Page(next.Cursor)
	require.NoError(t, err)
	require.Empty(t, rest.Operations)
}
