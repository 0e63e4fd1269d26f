package webhook_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/workers/webhook"
)

// takeOver is the longest that what a killed process was sending may wait, with the pace of these tests.
const takeOver = 2 * time.Minute

// brisk is a pace with which a job may soon be taken for stuck.
var brisk = webhook.Pace{Request: time.Second, Turn: time.Second, Backoff: atOnce.Backoff, Rest: atOnce.Rest}

// TestMain is a worker process of its own when a test starts it as one.
func TestMain(m *testing.M) {
	if dsn := os.Getenv("WEBHOOK_TEST_CHILD"); dsn != "" {
		if err := child(dsn); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child sends webhooks until it is stopped or killed.
func child(dsn string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	_, _ = os.Stdout.WriteString("listens\n") // from here on it can be asked to stop
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	database, err := tx.Open(ctx, dsn, tx.Options{Connections: 6})
	if err != nil {
		return err
	}
	defer database.Close()
	hub := event.NewHub(database.Worker(), log)
	database.SetHints(hub)
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	vault, err := custody.Open(ctx, "", os.Getenv("WEBHOOK_TEST_KEYS"))
	if err != nil {
		return err
	}
	worker, err := webhook.New(ctx, webhook.Config{DB: database, Hub: hub, Vault: vault,
		Dial: dial.Loopback(), Log: log, Process: ids.New(ids.Worker), Pace: brisk})
	if err != nil {
		return err
	}
	if err := worker.Run(ctx); err != nil {
		return err
	}
	return <-ended
}

// spawn starts a worker as a real process, which can be stopped by a signal when spawn returns; it is killed at the end
// of the test at the latest.
func (l *lab) spawn() *exec.Cmd {
	l.TB.Helper()
	command := exec.Command(os.Args[0], "-test.run=^$")
	command.Env = append(os.Environ(), "WEBHOOK_TEST_CHILD="+l.DSN, "WEBHOOK_TEST_KEYS="+l.keys)
	command.Stderr = os.Stderr
	said, err := command.StdoutPipe()
	require.NoError(l.TB, err)
	require.NoError(l.TB, command.Start())
	l.Cleanup(func() {
		_ = command.Process.Kill()
		_, _ = command.Process.Wait()
	})
	word, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(l.TB, err)
	require.Equal(l.TB, "listens\n", word)
	return command
}

func TestWhatAKilledProcessWasSendingIsSentAgainUnderTheSameID(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	to := l.receiver()
	entered, leave := make(chan struct{}, 16), make(chan struct{})
	to.answers(func(n int, _ got, w http.ResponseWriter) {
		if n == 1 {
			entered <- struct{}{}
			<-leave
		}
		w.WriteHeader(http.StatusNoContent)
	})
	defer close(leave)
	l.hook(to.URL)
	first := l.spawn()
	l.happen(lifecycle.EventInstanceHealthy, "between the request and the commit")
	<-entered
	require.NoError(t, first.Process.Signal(syscall.SIGKILL))
	_, _ = first.Process.Wait()
	require.Equal(t, 1, l.Count("webhook_delivery", "state = 'PENDING' AND attempts = 0"))
	l.spawn()
	require.Eventually(t, func() bool { return l.Count("webhook_delivery", "state = 'DELIVERED'") == 1 }, takeOver,
		50*time.Millisecond)
	requests := to.requests()
	require.Len(t, requests, 2)
	require.Equal(t, requests[0].id, requests[1].id)
	require.Equal(t, requests[0].body, requests[1].body)
}

func TestSeveralProcessesShareTheWorkWithoutADoubleRow(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Hub.Run(ctx) }() // the processes hear of what happens here
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	receivers := []*receiver{l.receiver(), l.receiver(), l.receiver()}
	for _, to := range receivers {
		l.hook(to.URL)
	}
	first := l.spawn()
	l.spawn()
	l.happen(lifecycle.EventInstanceHealthy, "1", "2", "3", "4", "5", "6", "7", "8", "9", "10")
	l.until("one of them works", func() bool { return l.Count("webhook_delivery", "state = 'DELIVERED'") > 0 })
	require.NoError(t, first.Process.Signal(syscall.SIGTERM))
	require.NoError(t, first.Wait(), "it ends well, and the other goes on")
	l.happen(lifecycle.EventInstanceHealthy, "11", "12", "13", "14", "15")
	l.settled(lifecycle.DeliveryDelivered, 15*len(receivers))
	require.Equal(t, 15*len(receivers), l.Count("webhook_delivery", ""))
	for _, to := range receivers {
		require.Len(t, to.requests(), 15, "and nothing was sent twice")
	}
}

func TestAProcessThatStopsLeavesItsDeliveriesToTheNext(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	to := l.receiver()
	to.answers(status(http.StatusServiceUnavailable))
	l.hook(to.URL)
	stop := l.work(func(c *webhook.Config) { c.Pace.Backoff = func(int) time.Duration { return time.Millisecond } })
	l.happen(lifecycle.EventInstanceHealthy, "x")
	l.until("it was tried", func() bool { return len(to.requests()) > 0 })
	stop()
	to.answers(nil)
	l.work(nil)
	l.settled(lifecycle.DeliveryDelivered, 1)
}
