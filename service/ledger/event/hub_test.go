package event_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/pgtest"
	"github.com/gpuaas/app-platform/internal/tx"
)

const listening = `datname = current_database() AND query LIKE 'LISTEN %'`

func TestAWakeUpReachesThisProcessAtOnceAndOthersByTheDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	here, there := b.hub(b.DB.Worker()), b.hub(b.DB.Worker())
	mine, far, other := here.Wait("x", "y"), there.Wait("y"), there.Wait("z")
	defer mine.Close()
	defer far.Close()
	defer other.Close()
	here.Wake("y")
	require.False(t, asleep(mine), "in its own process the wake-up is there when Wake returns")
	woken(t, far, "in the other process")
	require.True(t, asleep(other), "another topic sleeps on")

	mine.Close()
	mine.Close()
	here.Wake("x", "y")
	woken(t, far, "again")
	require.True(t, asleep(mine), "a closed waiter is not woken")
}

func TestManyWakeUpsBecomeOneForAReaderThatIsBusy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	here, there := b.hub(b.DB.Worker()), b.hub(b.DB.Worker())
	mine, far := here.Wait("x"), there.Wait("x", "last")
	defer mine.Close()
	defer far.Close()
	for range 10_000 {
		here.Wake("x")
	}
	require.False(t, asleep(mine))
	require.True(t, asleep(mine), "one wake-up is held, not ten thousand")
	woken(t, far, "x")
	here.Wake("last")
	woken(t, far, "the last is not lost in what was joined")
}

func TestListsOfTopicsOfAnyLengthArrive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	here, there := b.hub(b.DB.Worker()), b.hub(b.DB.Worker())
	topics := make([]string, 500) // more than one notification holds
	for i := range topics {
		topics[i] = fmt.Sprintf("topic-%d-with-a-name-of-some-length", i)
	}
	first, last, unrelated := there.Wait(topics[0]), there.Wait(topics[499]), there.Wait("unrelated")
	defer first.Close()
	defer last.Close()
	defer unrelated.Close()
	here.Wake(topics...)
	woken(t, first, "the first of many")
	woken(t, last, "the last of many")
	require.True(t, asleep(unrelated))
	for i := range 9_000 { // more than is held between two notifications
		topics = append(topics, fmt.Sprint(i))
	}
	here.Wake(topics...)
	woken(t, unrelated, "beyond the bound all are woken")
}

func TestAfterItsConnectionIsKilledAHubHearsAgainAndWakesAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	here, there := b.hub(b.DB.Worker()), b.hub(b.DB.Worker())
	far := there.Wait("x")
	defer far.Close()
	require.Equal(t, 2, b.Count("(SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "+listening+
		") killed", ""))
	woken(t, far, "something may have been said meanwhile")
	woken(t, far, "or not have been, since nobody was there to hear it")
	require.True(t, asleep(far))
	here.Wake("x")
	woken(t, far, "by a notification on the new connection")
}

func TestNothingIsSentWhileNoOtherProcessListens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hub := b.hub(b.DB.Worker())
	other, err := b.DB.Worker().Acquire(t.Context()) // another process's would be of the same login role
	require.NoError(t, err)
	defer other.Release()
	sends := func() (sent bool) {
		sent, err := hub.Send(t.Context())
		require.NoError(t, err)
		return sent
	}
	require.False(t, sends(), "its own connection does not count")
	_, err = other.Exec(t.Context(), "LISTEN app_platform_wake")
	require.NoError(t, err)
	require.Eventually(t, sends, patience, tick, "whoever listens is found soon")
	heard, err := other.Conn().WaitForNotification(t.Context())
	require.NoError(t, err)
	require.Contains(t, heard.Payload, "x")
	_, err = other.Exec(t.Context(), "UNLISTEN *")
	require.NoError(t, err)
	require.False(t, sends())
}

func TestAHubThatCannotReachTheDatabaseStillServesItsOwnProcess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pool := b.DB.Worker()
	hub := b.hub(pool)
	w := hub.Wait("x")
	defer w.Close()
	var database string
	require.NoError(t, b.Admin.QueryRow(t.Context(), `SELECT quote_ident(current_database())`).Scan(&database))
	b.SQL(`REVOKE CONNECT ON DATABASE ` + database + ` FROM PUBLIC, app_worker`)
	b.SQL(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()
		AND usename = 'app_worker'`)
	require.Eventually(t, func() bool { return pool.Ping(t.Context()) != nil }, patience, tick)
	for range 3 {
		hub.Wake("x")
		woken(t, w, "without a database")
	}
}

func TestAHubWhoseConnectionLosesEveryPacketHearsAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	proxy := pgtest.NewProxy(t, b.DSN)
	behind, err := tx.Open(t.Context(), proxy.DSN(), tx.Options{Connections: 2})
	require.NoError(t, err)
	t.Cleanup(behind.Close)
	here, there := b.hub(b.DB.Worker()), b.hub(behind.Worker())
	far := there.Wait("x")
	defer far.Close()
	proxy.Swallow()
	require.Eventually(t, func() bool { return !asleep(far) }, 2*patience, tick,
		"the silence is noticed, and everything is woken on the new connection")
	here.Wake("x")
	woken(t, far, "by a notification on the new connection")
}
