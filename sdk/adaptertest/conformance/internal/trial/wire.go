package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/text"
)

// Letter is one request to the adapter. Without a token it gets a good one.
type Letter struct {
	Method, Target string
	Body           []byte
	// Token replaces the good request token; "-" sends none.
	Token string
	// Access is the platform token of requests without a body for it.
	Access string
	// Patience replaces the bound of one request, for long polls.
	Patience time.Duration
}

// Reply is the adapter's answer.
type Reply struct {
	Status int
	header http.Header
	Body   []byte
}

// fault reads the contract's error body; ok is false when the answer has another body.
func (r Reply) fault() (body adapter.ErrorBody, ok bool) {
	err := json.Unmarshal(r.Body, &body)
	return body, err == nil && body.Code != "" && body.Message != ""
}

// Say returns the answer for a message.
func (r Reply) Say() string {
	return fmt.Sprintf("%d %s", r.Status, text.Clip(strings.TrimSpace(string(r.Body)), 300))
}

// maxKept is how much of a body a report holds, in bytes: all of every body that the suite makes but one.
const maxKept = 64 << 10

// whole returns the answer for a report.
func (r Reply) whole() string {
	return fmt.Sprintf("%d %s", r.Status, text.Clip(strings.TrimSpace(string(r.Body)), maxKept))
}

// send sends one request and reads the whole answer, within the bound of a request.
func (s *Suite) send(ctx context.Context, l Letter) (Reply, error) {
	patience := l.Patience
	if patience == 0 {
		patience = s.Bounds.Request
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := s.Request(ctx, l)
	if err != nil {
		return Reply{}, err
	}
	resp, err := s.HTTP.Do(req)
	if err != nil {
		return Reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 2*adapter.MaxBody))
	if err != nil {
		return Reply{}, fmt.Errorf("read the answer: %w", err)
	}
	answer := Reply{Status: resp.StatusCode, header: resp.Header, Body: body}
	s.Seen.note(l, answer, s.Platform.Tokens)
	return answer, nil
}

// Request returns the request of a letter, with its token.
func (s *Suite) Request(ctx context.Context, l Letter) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, l.Method, s.URL+l.Target, bytes.NewReader(l.Body))
	if err != nil {
		return nil, fmt.Errorf("create request: %w", err)
	}
	if l.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set(adapter.HeaderCorrelation, "conformance")
	if l.Access != "" {
		req.Header.Set(adapter.HeaderPlatformToken, l.Access)
	}
	token := l.Token
	if token == "" {
		if token, err = s.Platform.Sign(s.Options.Name, l.Method, req.URL.RequestURI(), l.Body); err != nil {
			return nil, err
		}
	}
	if token != "-" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// watch collects what the clauses on all answers check.
type watch struct {
	mu sync.Mutex
	// leak, odd and large describe the first answer with a token in it, of a wrong form, too large.
	Leak, Odd, Large string
	// logged is the clause after which a token was first seen in the adapter's log.
	Logged string
	// misfits are the first answers that broke a definition of the contract's schema, by its name; now are the
	// definitions that were broken during the present clause, reported those that were during one that failed.
	misfits       map[string]string
	now, reported map[string]bool
}

// begin begins a clause.
func (w *watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = map[string]bool{}
}

// failed ends a clause that has failed: what was broken meanwhile is not reported a second time.
func (w *watch) failed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reported == nil {
		w.reported = map[string]bool{}
	}
	maps.Copy(w.reported, w.now)
}

// Misfit returns an answer that broke the contract's schema and for which no clause has failed yet; empty when there
// was none.
func (w *watch) Misfit() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range definitions {
		if wrong := w.misfits[name]; wrong != "" && !w.reported[name] {
			return wrong
		}
	}
	return ""
}

// fit keeps the answer when it is the first that breaks its definition. The watch is locked.
func (w *watch) fit(where string, l Letter, answer Reply) {
	name := answered(l, answer.Status)
	if name == "" {
		return
	}
	wrong := misfit(answer.Body, name)
	if wrong == "" {
		return
	}
	if w.now != nil {
		w.now[name] = true
	}
	if w.misfits == nil {
		w.misfits = map[string]string{}
	}
	if w.misfits[name] != "" {
		return
	}
	w.misfits[name] = fmt.Sprintf("%s returned %s: %s", where, answer.Say(), wrong)
}

// note checks one answer. It looks first for the beginning that all tokens share.
func (w *watch) note(l Letter, answer Reply, tokens func() []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	where := l.Method + " " + l.Target
	if w.Leak == "" && bytes.Contains(answer.Body, []byte("gpu_op_")) {
		for _, token := range tokens() {
			if bytes.Contains(answer.Body, []byte(token)) {
				w.Leak = where
			}
		}
	}
	w.fit(where, l, answer)
	if w.Large == "" && len(answer.Body) > adapter.MaxBody {
		w.Large = fmt.Sprintf("%s returned %d bytes", where, len(answer.Body))
	}
	media := answer.header.Get("Content-Type")
	switch {
	case w.Odd != "":
	case answer.Status >= 300 && answer.Status < 400:
		w.Odd = fmt.Sprintf("%s returned the redirect %d", where, answer.Status)
	case len(answer.Body) > 0 && !strings.HasPrefix(media, "application/json"):
		w.Odd = fmt.Sprintf("%s returned %d with Content-Type %q", where, answer.Status, media)
	}
}
