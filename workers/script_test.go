package workers_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// script is an adapter that a test scripts, for faults that the server kit does not have. It verifies every request's
// signature like any other.
type script struct {
	lab      *lab
	url      string
	verifier *adapter.Verifier

	mu       sync.Mutex
	epoch    string
	version  int
	puts     []adapter.Dispatch
	cancels  []string
	status   map[string]adapter.Status
	versions map[string]int
	onPut    func(d adapter.Dispatch) (code int, body any) // nil, or code 0, accepts
	down     bool
	hasty    bool // the feed answers at once, whatever it was asked to wait
	asked    int  // how often the feed was
	observed adapter.Observation
	onCancel func(id string) adapter.CancelResult // nil stops it
	plan     adapter.PlanAnswer                   // without a verdict there is none
	planned  []adapter.PlanRequest
	twin     *script // another adapter that took a part of the operations
}

func (l *lab) script(name string) *script {
	l.Helper()
	s := &script{lab: l, epoch: "e1", status: make(map[string]adapter.Status), versions: make(map[string]int),
		verifier: &adapter.Verifier{Issuer: l.platform.URL, Audience: name,
			Keys: adapter.NewKeySet(l.platform.URL+"/.well-known/jwks.json", http.DefaultClient)}}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/operations/{id}", s.serve(s.put))
	mux.HandleFunc("GET /v1/operations/{id}", s.serve(s.get))
	mux.HandleFunc("GET /v1/operations", s.serve(s.feed))
	mux.HandleFunc("POST /v1/operations/{id}/cancel", s.serve(s.cancel))
	mux.HandleFunc("GET /v1/instances/{id}", s.serve(s.observe))
	mux.HandleFunc("POST "+adapter.PlansPath, s.serve(s.answerPlan))
	server := httptest.NewServer(mux)
	s.url = server.URL
	l.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

func (s *script) serve(next func(r *http.Request, body []byte) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, max(r.ContentLength, 0))
		for read := 0; read < len(body); {
			n, err := r.Body.Read(body[read:])
			read += n
			if err != nil {
				break
			}
		}
		code, answer := http.StatusUnauthorized, any(adapter.ErrorBody{Code: "UNAUTHENTICATED", Message: "no"})
		if s.verifier.VerifyRequest(r, body) == nil {
			s.mu.Lock()
			down := s.down
			s.mu.Unlock()
			if down {
				code, answer = http.StatusServiceUnavailable,
					adapter.ErrorBody{Code: "UNAVAILABLE", Message: "closed for repairs", Retryable: true}
			} else {
				code, answer = next(r, body)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func (s *script) put(_ *http.Request, body []byte) (int, any) {
	var d adapter.Dispatch
	if err := json.Unmarshal(body, &d); err != nil || d.Validate() != nil {
		return http.StatusBadRequest, adapter.ErrorBody{Code: "INVALID", Message: "not a dispatch"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onPut != nil {
		if code, answer := s.onPut(d); code != 0 {
			return code, answer
		}
	}
	s.puts = append(s.puts, d)
	if known, ok := s.status[d.OperationID]; ok && known.Attempt >= d.Attempt {
		return http.StatusAccepted, known
	}
	s.sayLocked(adapter.Status{OperationID: d.OperationID, Attempt: d.Attempt, State: adapter.StateRunning,
		Phase: "working", Percent: 5})
	return http.StatusAccepted, s.status[d.OperationID]
}

func (s *script) answerPlan(_ *http.Request, body []byte) (int, any) {
	var request adapter.PlanRequest
	if err := json.Unmarshal(body, &request); err != nil || request.Validate() != nil {
		return http.StatusBadRequest, adapter.ErrorBody{Code: "INVALID", Message: "not a plan"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planned = append(s.planned, request)
	if s.plan.Verdict == "" {
		return http.StatusNotFound, adapter.ErrorBody{Code: "NOT_FOUND", Message: "no plans here"}
	}
	return http.StatusOK, s.plan
}

// say changes an operation's status, which the feed reports.
func (s *script) say(status adapter.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sayLocked(status)
}

func (s *script) sayLocked(status adapter.Status) {
	s.version++
	s.status[status.OperationID], s.versions[status.OperationID] = status, s.version
}

func (s *script) get(r *http.Request, _ []byte) (int, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, ok := s.status[r.PathValue("id")]
	if !ok {
		return http.StatusNotFound, adapter.ErrorBody{Code: "NOT_FOUND", Message: "unknown"}
	}
	return http.StatusOK, status
}

func (s *script) feed(r *http.Request, _ []byte) (int, any) {
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	give := time.Now().Add(200 * time.Millisecond)
	s.with(func() { s.asked++ })
	for {
		s.mu.Lock()
		hasty := s.hasty
		page := adapter.OperationsPage{Epoch: s.epoch, Cursor: strconv.Itoa(s.version), Operations: []adapter.Status{}}
		for id, version := range s.versions {
			if version > after {
				page.Operations = append(page.Operations, s.status[id])
			}
		}
		s.mu.Unlock()
		if hasty || len(page.Operations) > 0 || time.Now().After(give) {
			return http.StatusOK, page
		}
		select {
		case <-r.Context().Done():
			return http.StatusOK, page
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *script) cancel(r *http.Request, _ []byte) (int, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancels = append(s.cancels, r.PathValue("id"))
	if s.onCancel != nil {
		return http.StatusOK, s.onCancel(r.PathValue("id"))
	}
	return http.StatusOK, adapter.CancelResult{Outcome: adapter.CancelDone, Message: "stopped"}
}

func (s *script) observe(r *http.Request, _ []byte) (int, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.observed
	seen.InstanceID, seen.ObservedAt = r.PathValue("id"), time.Now()
	return http.StatusOK, seen
}

// with changes the script under its lock.
func (s *script) with(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *script) got(operation string) (found []adapter.Dispatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.puts {
		if d.OperationID == operation {
			found = append(found, d)
		}
	}
	return found
}

// dispatched waits for the first dispatch of an operation and answers all there were.
func (s *script) dispatched(operation string) []adapter.Dispatch {
	s.lab.Helper()
	var found []adapter.Dispatch
	s.lab.until("a dispatch of "+operation, func() bool {
		found = s.got(operation)
		if s.twin != nil {
			found = append(found, s.twin.got(operation)...)
		}
		return len(found) > 0
	})
	return found
}

// oneEffect requires that every dispatch of an operation has the same spec and the same attempt.
func (s *script) oneEffect(operation string) {
	s.lab.Helper()
	all := s.dispatched(operation)
	first, err := all[0].SpecHash()
	require.NoError(s.lab.TB, err)
	for _, d := range all {
		hash, err := d.SpecHash()
		require.NoError(s.lab.TB, err)
		require.Equal(s.lab.TB, first, hash)
		require.Equal(s.lab.TB, all[0].Attempt, d.Attempt)
	}
}

// succeed ends an operation well.
func (s *script) succeed(operation string, attempt int) {
	s.say(adapter.Status{OperationID: operation, Attempt: attempt, State: adapter.StateSucceeded, Percent: 100,
		Phase: "done"})
}

// failedStatus returns the status of an operation that failed.
func failedStatus(operation string) adapter.Status {
	return adapter.Status{OperationID: operation, Attempt: 1, State: adapter.StateFailed,
		Error: &adapter.OperationError{Code: "BROKEN", Message: "broken", Owner: adapter.OwnerAdapter}}
}
