package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/cmd/oci-launch-controller/testimages/caller"
)

const (
	// maxPrompt bounds a request, in bytes, and maxTokens an answer. A word is a token.
	maxPrompt, maxTokens, defaultTokens = 1 << 20, 256, 16
	// maxCallers bounds the series of metrics; those beyond are counted as one.
	maxCallers = 1000
)

// service answers for the models, and counts by caller.
type service struct {
	models  map[string]*model
	callers *caller.Verifier // nil serves everybody, as one caller without a name

	mu     sync.Mutex
	served map[string]*count
}

// count is what a caller was served since the start.
type count struct{ requests, prompt, completion int }

// request is the body of a request for a completion; completion is its answer, of the other types.
type (
	request struct {
		Model     string `json:"model"`
		Prompt    string `json:"prompt"`
		MaxTokens int    `json:"max_tokens"`
	}
	usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	choice struct {
		Text string `json:"text"`
	}
	completion struct {
		Object  string   `json:"object"`
		Model   string   `json:"model"`
		Choices []choice `json:"choices"`
		Usage   usage    `json:"usage"`
	}
)

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /v1/models", s.known(func(w http.ResponseWriter, _ *http.Request, _ caller.Caller) {
		all := []*model{}
		for _, name := range slices.Sorted(maps.Keys(s.models)) {
			all = append(all, s.models[name])
		}
		answer(w, http.StatusOK, map[string]any{"object": "list", "data": all})
	}))
	mux.HandleFunc("POST /v1/completions", s.known(s.complete))
	return mux
}

// known lets in who has come through the platform, where its keys are known.
func (s *service) known(do func(http.ResponseWriter, *http.Request, caller.Caller)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var who caller.Caller
		if s.callers != nil {
			var err error
			if who, err = s.callers.Of(r, time.Now()); err != nil {
				slog.Info("a caller was refused", "reason", err)
				refuse(w, http.StatusUnauthorized, err.Error())
				return
			}
		}
		do(w, r, who)
	}
}

// complete answers what the model says next.
func (s *service) complete(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	asked := request{MaxTokens: defaultTokens}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxPrompt)).Decode(&asked); err != nil {
		refuse(w, http.StatusBadRequest, "the request cannot be read")
		return
	}
	if asked.MaxTokens < 1 || asked.MaxTokens > maxTokens {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("max_tokens must be 1 to %d", maxTokens))
		return
	}
	m, ok := s.models[asked.Model]
	if !ok {
		refuse(w, http.StatusNotFound, fmt.Sprintf("there is no model %q", asked.Model))
		return
	}
	prompt := strings.Fields(asked.Prompt)
	out := m.complete(prompt, asked.MaxTokens)
	s.count(who, len(prompt), len(out))
	slog.Info("completed", "caller", who.ID, "kind", who.Kind, "name", who.Name, "model", m.Name,
		"prompt", len(prompt), "completion", len(out))
	answer(w, http.StatusOK, completion{Object: "text_completion", Model: m.Name,
		Choices: []choice{{Text: strings.Join(out, " ")}},
		Usage:   usage{Prompt: len(prompt), Completion: len(out), Total: len(prompt) + len(out)}})
}

// count adds a request to what its caller was served.
func (s *service) count(who caller.Caller, prompt, completion int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := who.ID
	if s.served[id] == nil && len(s.served) >= maxCallers {
		id = "others"
	}
	if s.served[id] == nil {
		s.served[id] = &count{}
	}
	s.served[id].requests++
	s.served[id].prompt += prompt
	s.served[id].completion += completion
}

func (s *service) metrics(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.Sorted(maps.Keys(s.served))
	fmt.Fprintln(w, "# TYPE model_requests_total counter")
	for _, id := range ids {
		fmt.Fprintf(w, "model_requests_total{caller=%q} %d\n", id, s.served[id].requests)
	}
	fmt.Fprintln(w, "# TYPE model_tokens_total counter")
	for _, id := range ids {
		fmt.Fprintf(w, "model_tokens_total{caller=%q,kind=\"prompt\"} %d\n", id, s.served[id].prompt)
		fmt.Fprintf(w, "model_tokens_total{caller=%q,kind=\"completion\"} %d\n", id, s.served[id].completion)
	}
}

// refuse answers a fault in the form that clients of such servers read.
func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"error": map[string]any{"message": message, "code": status}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
