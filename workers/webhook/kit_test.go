package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	sdk "github.com/gpuaas/app-platform/sdk/webhook"
	"github.com/gpuaas/app-platform/service/ledger/event"
	verbs "github.com/gpuaas/app-platform/service/webhook"
	"github.com/gpuaas/app-platform/workers/webhook"
)

// patience is how long a test waits for a state.
const patience = 60 * time.Second

// at once: a try follows the one before without a pause, so that a test need not wait.
var atOnce = webhook.Pace{
	Request: 5 * time.Second,
	Backoff: func(int) time.Duration { return 0 }, Rest: func(time.Duration) time.Duration { return 0 },
}

// lab is a project with an instance that things happen to, and the verbs on its webhooks.
type lab struct {
	*platformtest.Kit
	testing.TB
	project  *db.Project
	instance *db.Instance
	admin    context.Context
	verbs    *verbs.Service
	keys     string
	vault    *custody.Vault
	log      *logs
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return newLabOver(t, platformtest.New(t))
}

// newLabOver is newLab over a database of the test's own.
func newLabOver(t *testing.T, kit *platformtest.Kit) *lab {
	t.Helper()
	l := &lab{Kit: kit, TB: t, keys: t.TempDir(), log: &logs{}}
	tenant := l.Tenant()
	l.project = l.Project(tenant)
	_, stored := l.Launchable(l.project, "apps")
	node, _ := l.Node(1)
	l.instance = l.Kit.Instance(l.project, stored, lifecycle.InstanceRunning, l.Allocation(l.project, node))
	l.admin = l.As(l.User(tenant, platformtest.In(authz.ProjectAdmin, l.project)))
	var err error
	l.vault, err = custody.Open(t.Context(), "", l.keys)
	require.NoError(t, err)
	feeds, err := event.NewFeeds(t.Context(), l.DB.Worker())
	require.NoError(t, err)
	l.verbs = &verbs.Service{DB: l.DB, Vault: l.vault, Feeds: feeds, Allow: func(*url.URL) error { return nil }}
	return l
}

// logs keeps what is logged.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// work runs a worker until the test ends, or stop is called.
func (l *lab) work(change func(*webhook.Config)) (stop func()) {
	l.TB.Helper()
	config := webhook.Config{DB: l.DB, Hub: l.Hub, Vault: l.vault, Dial: dial.Loopback(), Process: ids.New(ids.Worker),
		Pace: atOnce,
		Log:  slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if change != nil {
		change(&config)
	}
	ctx, cancel := context.WithCancel(context.Background())
	worker, err := webhook.New(ctx, config)
	require.NoError(l.TB, err)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(l.TB, <-ended)
	})
	l.Cleanup(stop)
	return stop
}

// happen appends events with the messages, each in a transaction of its own.
func (l *lab) happen(of lifecycle.EventType, messages ...string) {
	l.TB.Helper()
	for _, message := range messages {
		require.NoError(l.TB, l.DB.Write(l.admin, func(ctx context.Context, t *tx.Tx) error {
			row, err := t.Instance.Get(ctx, l.instance.ID)
			if err != nil {
				return err
			}
			return event.Append(ctx, t, row, event.Draft{Type: of, Message: message,
				Payload: map[string]any{"n": message}})
		}))
	}
}

// hook makes a webhook for every event of instances, and answers its secret.
func (l *lab) hook(address string) (*db.Webhook, string) {
	l.TB.Helper()
	made, err := l.verbs.Create(l.admin, verbs.CreateInput{ProjectID: l.project.ID, URL: address,
		EventTypes: []string{"apps.instance.*"}, IdempotencyKey: string(ids.New(ids.Webhook))})
	require.NoError(l.TB, err)
	return made.Webhook, *made.Secret
}

func (l *lab) now(id ids.ID) *db.Webhook {
	l.TB.Helper()
	row, err := l.verbs.Get(l.admin, id)
	require.NoError(l.TB, err)
	return row
}

// until waits for a state.
func (l *lab) until(what string, is func() bool) {
	l.TB.Helper()
	require.Eventually(l.TB, is, patience, 10*time.Millisecond, what)
}

// settled waits until so many deliveries are in a state.
func (l *lab) settled(state lifecycle.DeliveryState, n int) {
	l.TB.Helper()
	l.until("deliveries are "+string(state), func() bool {
		return l.Count("webhook_delivery", "state = $1", string(state)) == n
	})
}

// got is a request that a receiver has got.
type got struct {
	id     string
	header http.Header
	body   []byte
	event  sdk.Event
}

// receiver keeps the requests and answers with answer; without one, with 204.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	all    []got
	answer func(n int, one got, w http.ResponseWriter)
}

func (l *lab) receiver() *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(r)
	l.Cleanup(r.Close)
	return r
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	one := got{id: request.Header.Get(sdk.HeaderID), header: request.Header.Clone(), body: body}
	if err != nil || json.Unmarshal(body, &one.event) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.all = append(r.all, one)
	n, answer := len(r.all), r.answer
	r.mu.Unlock()
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(n, one, w)
}

// answers sets what it does from now on.
func (r *receiver) answers(answer func(n int, one got, w http.ResponseWriter)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) requests() []got {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]got(nil), r.all...)
}

// messages are those of the events that it got, in the order of the feed.
func (r *receiver) messages() (messages []string) {
	for _, one := range r.requests() {
		messages = append(messages, one.event.Data.Message)
	}
	return messages
}

// status answers with a status.
func status(code int) func(int, got, http.ResponseWriter) {
	return func(_ int, _ got, w http.ResponseWriter) { w.WriteHeader(code) }
}
