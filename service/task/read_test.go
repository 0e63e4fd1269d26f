package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/page"
)

type contextual = context.Context

// keysOfAdapters are what an adapter's token holds here.
var keysOfAdapters = []authz.Key{authz.TaskRun, authz.TaskRead}

func pageOf(first int, after string) page.Args { return page.Args{First: first, After: after} }

func TestGetWaitsForTheEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.ask("k")
	seen, err := b.Get(b.adapter, made.ID, 0)
	require.NoError(t, err)
	require.Equal(t, lifecycle.TaskPending, seen.State)

	type answer struct {
		row *db.NodeTask
		err error
	}
	answers := make(chan answer, 1)
	began := time.Now()
	go func() {
		row, err := b.Get(b.adapter, made.ID, 20)
		answers <- answer{row, err}
	}()
	_, err = b.report(made.ID, lifecycle.TaskRunning)
	require.NoError(t, err)
	_, err = b.report(made.ID, lifecycle.TaskSucceeded)
	require.NoError(t, err)
	got := <-answers
	require.NoError(t, got.err)
	require.Equal(t, lifecycle.TaskSucceeded, got.row.State)
	require.Less(t, time.Since(began), 15*time.Second, "it is woken, not timed out")

	open := b.ask("k2")
	still, err := b.Get(b.adapter, open.ID, 1)
	require.NoError(t, err)
	require.Equal(t, lifecycle.TaskPending, still.State, "when the wait is over the task is answered as it is")
	_, err = b.Get(b.adapter, open.ID, 21)
	platformtest.Refused(t, err, fault.InvalidArgument, "waitSeconds")
	_, err = b.Get(b.adapter, ids.New(ids.NodeTask), 20)
	platformtest.Refused(t, err, fault.NotFound, "")
	ctx, cancel := context.WithCancel(b.adapter)
	cancel()
	_, err = b.Get(ctx, open.ID, 20)
	require.ErrorIs(t, err, context.Canceled)
}

func TestTasksAreReadByWhoMay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.ask("k")
	outsider := b.Tenant()
	for name, c := range map[string]struct {
		credential string
		code       fault.Code // empty when it may
	}{
		"project admin": {b.Session(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project))), ""},
		"operator":      {b.Session(b.Operator()), ""},
		"viewer": {b.Session(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project))),
			fault.Forbidden},
		"outsider": {b.Session(b.User(outsider, platformtest.Across(authz.TenantAdmin, outsider))), fault.NotFound},
	} {
		ctx := b.With(c.credential)
		row, err := b.Get(ctx, made.ID, 0)
		found, listErr := b.List(ctx, b.member.ID, pageOf(20, ""))
		if c.code == "" {
			require.NoError(t, err, name)
			require.Equal(t, made.ID, row.ID)
			require.NoError(t, listErr, name)
			require.Len(t, found.Rows, 1)
			continue
		}
		require.True(t, fault.Is(err, c.code), "%s: %v", name, err)
		require.True(t, fault.Is(listErr, c.code), "%s: %v", name, listErr)
	}
}

func TestListGoesThroughPagesNewestFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var made []ids.ID
	for i := range 5 {
		made = append(made, b.ask(fmt.Sprint("k", i)).ID)
	}
	var seen []ids.ID
	args := pageOf(2, "")
	for range 3 {
		found, err := b.List(b.adapter, b.member.ID, args)
		require.NoError(t, err)
		for _, row := range found.Rows {
			seen = append(seen, row.ID)
		}
		require.Equal(t, len(seen) < 5, found.HasNext)
		args.After = found.Cursors[len(found.Cursors)-1]
	}
	require.Equal(t, []ids.ID{made[4], made[3], made[2], made[1], made[0]}, seen)
	_, err := b.List(b.adapter, b.member.ID, pageOf(2, "nonsense"))
	platformtest.Refused(t, err, fault.CursorInvalid, "after")
	_, err = b.List(b.adapter, ids.New(ids.Member), pageOf(2, ""))
	platformtest.Refused(t, err, fault.NotFound, "")
}

func TestALargePageEndsEarly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := b.input("k")
	in.Spec = json.RawMessage(`{"command":["cat"],"stdin":"` + strings.Repeat("x", 500<<10) + `"}`)
	for i := range 40 {
		in.IdempotencyKey = fmt.Sprint("k", i)
		_, err := b.Run(b.adapter, in)
		require.NoError(t, err)
	}
	args, seen, pages := pageOf(100, ""), 0, 0
	for more := true; more; pages++ {
		found, err := b.List(b.adapter, b.member.ID, args)
		require.NoError(t, err)
		seen, more = seen+len(found.Rows), found.HasNext
		args.After = found.Cursors[len(found.Cursors)-1]
	}
	require.Equal(t, 40, seen)
	require.Equal(t, 2, pages, "20 MB are two pages of at most 16 MiB")
}
