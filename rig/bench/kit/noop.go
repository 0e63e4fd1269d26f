package kit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/process"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// NoopRole is the child that is an adapter written by hand: it verifies every request and keeps statuses in memory. An
// operation succeeds as soon as it is accepted, unless a command has the child hold operations.
const NoopRole process.Role = "noop"

// noopPage is how many statuses a page of its feed holds at most.
const noopPage = adapter.MaxPage

// maxWait is the longest that a poll of its feed is kept, in seconds.
const maxWait = 20

// noop is that adapter. Statuses lie in the order of their last change, so that a page of the feed costs what the page
// holds, not what the feed holds.
type noop struct {
	verifier *adapter.Verifier
	epoch    string
	counts   counts

	mu      sync.Mutex
	hold    bool
	log     []adapter.Status // the feed; the cursor is a place in it
	held    []adapter.Status // accepted while held, and told when they are let go
	state   map[string]adapter.State
	changed chan struct{}
}

// counts are the requests that it got.
type counts struct {
	dispatches, again, questions, polls, open atomic.Int64
}

// Counts is the answer to the command "counts", from when the adapter was started on.
type Counts struct {
	// Dispatches are operations, and Again how many were sent more than once.
	Dispatches, Again int64
	// Questions are for one operation's status, Polls for the feed.
	Questions, Polls int64
	// Connections are open now.
	Connections int64
}

// NoopMain is the child. Commands: "address", "counts", "hold" with a boolean, and the measures.
func NoopMain(_ context.Context, raw json.RawMessage) (process.Commands, func(), error) {
	var config AdapterConfig
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, nil, err
	}
	ring, err := token.LoadKeyring(config.Keys, config.Issuer)
	if err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	n := &noop{epoch: strconv.FormatInt(time.Now().UnixNano(), 36), state: make(map[string]adapter.State),
		changed:  make(chan struct{}),
		verifier: &adapter.Verifier{Issuer: config.Issuer, Audience: dataset.AdapterName, Keys: published{ring}}}
	web := &http.Server{Handler: n.handler(), ReadHeaderTimeout: 10 * time.Second, ConnState: n.counts.connection}
	done := make(chan error, 1)
	go func() { done <- web.Serve(listener) }()
	return process.WithMeasures(process.Commands{
		"address": func(json.RawMessage) (any, error) { return "http://" + listener.Addr().String(), nil },
		"counts":  func(json.RawMessage) (any, error) { return n.counts.read(), nil },
		"hold":    func(arg json.RawMessage) (any, error) { return nil, n.setHold(arg) },
	}), func() { _ = web.Close(); <-done }, nil
}

func (c *counts) connection(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		c.open.Add(-1)
	}
}

func (c *counts) read() Counts {
	return Counts{Dispatches: c.dispatches.Load(), Again: c.again.Load(), Questions: c.questions.Load(),
		Polls: c.polls.Load(), Connections: c.open.Load()}
}

// setHold says whether operations go on after they were accepted; letting go ends all that were held.
func (n *noop) setHold(arg json.RawMessage) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := json.Unmarshal(arg, &n.hold); err != nil || n.hold {
		return err
	}
	for _, status := range n.held {
		n.endLocked(status)
	}
	n.held = nil
	return nil
}

// endLocked adds to the feed that an operation has succeeded.
func (n *noop) endLocked(status adapter.Status) {
	status.State, status.Percent, status.Phase = adapter.StateSucceeded, 100, "done"
	n.log, n.state[status.OperationID] = append(n.log, status), status.State
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *noop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/adapter", n.verified(func(*http.Request, []byte) (int, any) {
		return http.StatusOK, adapter.Description{ContractVersions: adapter.ContractVersions(),
			Name: dataset.AdapterName, Build: "bench", Apps: []adapter.AppInfo{}}
	}))
	mux.HandleFunc("PUT /v1/operations/{id}", n.verified(n.put))
	mux.HandleFunc("GET /v1/operations/{id}", n.verified(n.get))
	mux.HandleFunc("GET /v1/operations", n.verified(n.feed))
	return mux
}

// verified serves requests that the platform signed.
func (n *noop) verified(next func(r *http.Request, body []byte) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, adapter.MaxBody))
		code, answer := http.StatusUnauthorized, any(adapter.ErrorBody{Code: "UNAUTHENTICATED",
			Message: "the request is not the platform's"})
		if err == nil && n.verifier.VerifyRequest(r, body) == nil {
			code, answer = next(r, body)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(answer) // whoever asked has gone, then
	}
}

func (n *noop) put(r *http.Request, body []byte) (int, any) {
	var dispatch adapter.Dispatch
	if err := json.Unmarshal(body, &dispatch); err != nil || dispatch.OperationID != r.PathValue("id") {
		return http.StatusBadRequest, adapter.ErrorBody{Code: "INVALID", Message: "not a dispatch"}
	}
	status := adapter.Status{OperationID: dispatch.OperationID, Attempt: dispatch.Attempt, State: adapter.StateAccepted}
	n.mu.Lock()
	defer n.mu.Unlock()
	if state, known := n.state[dispatch.OperationID]; known {
		n.counts.again.Add(1)
		status.State = state
		return http.StatusAccepted, status
	}
	n.counts.dispatches.Add(1)
	n.state[dispatch.OperationID] = status.State
	if n.hold {
		n.held = append(n.held, status)
	} else {
		n.endLocked(status)
	}
	return http.StatusAccepted, status
}

func (n *noop) get(r *http.Request, _ []byte) (int, any) {
	n.counts.questions.Add(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	state, known := n.state[r.PathValue("id")]
	if !known {
		return http.StatusNotFound, adapter.ErrorBody{Code: "NOT_FOUND", Message: "no such operation"}
	}
	return http.StatusOK, adapter.Status{OperationID: r.PathValue("id"), Attempt: 1, State: state}
}

func (n *noop) feed(r *http.Request, _ []byte) (int, any) {
	n.counts.polls.Add(1)
	after, bad := strconv.Atoi(r.URL.Query().Get("after"))
	wait, err := strconv.Atoi(r.URL.Query().Get("wait"))
	if errors.Join(bad, err) != nil {
		after, wait = max(after, 0), max(wait, 0)
	}
	timer := time.NewTimer(time.Duration(min(wait, maxWait)) * time.Second)
	defer timer.Stop()
	for {
		page, changed := n.page(after)
		if len(page.Operations) > 0 {
			return http.StatusOK, page
		}
		select {
		case <-changed:
		case <-timer.C:
			return http.StatusOK, page
		case <-r.Context().Done():
			return http.StatusOK, page
		}
	}
}

func (n *noop) page(after int) (adapter.OperationsPage, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	after = min(max(after, 0), len(n.log))
	end := min(after+noopPage, len(n.log))
	return adapter.OperationsPage{Epoch: n.epoch, Cursor: strconv.Itoa(end),
		Operations: append([]adapter.Status{}, n.log[after:end]...)}, n.changed
}
