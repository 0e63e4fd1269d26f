package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// letter is one request to the adapter. Without a token of its own it is signed well.
type letter struct {
	method, target string
	body           []byte
	// token replaces the good request token; "-" sends none.
	token string
	// access is the platform token of requests without a body for it.
	access string
	// patience replaces the bound of one request, for long polls.
	patience time.Duration
}

// reply is what came.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// fault reads the contract's error body; ok is false when it is none.
func (r reply) fault() (body adapter.ErrorBody, ok bool) {
	err := json.Unmarshal(r.body, &body)
	return body, err == nil && body.Code != "" && body.Message != ""
}

// say is the answer for a message.
func (r reply) say() string {
	return fmt.Sprintf("%d %s", r.status, clip(strings.TrimSpace(string(r.body)), 300))
}

// send sends one request and reads the whole answer, within the bound of a request.
func (s *suite) send(ctx context.Context, l letter) (reply, error) {
	patience := l.patience
	if patience == 0 {
		patience = s.bounds.Request
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := s.request(ctx, l)
	if err != nil {
		return reply{}, err
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 2*adapter.MaxBody))
	if err != nil {
		return reply{}, fmt.Errorf("read the answer: %w", err)
	}
	answer := reply{status: resp.StatusCode, header: resp.Header, body: body}
	s.seen.note(l, answer, s.platform.Tokens)
	return answer, nil
}

func (s *suite) request(ctx context.Context, l letter) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, l.method, s.url+l.target, bytes.NewReader(l.body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if l.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set(adapter.HeaderCorrelation, "conformance")
	if l.access != "" {
		req.Header.Set(adapter.HeaderPlatformToken, l.access)
	}
	token := l.token
	if token == "" {
		if token, err = s.platform.Sign(s.options.Name, l.method, req.URL.RequestURI(), l.body); err != nil {
			return nil, err
		}
	}
	if token != "-" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// watch is what all answers together came to.
type watch struct {
	mu sync.Mutex
	// leak, odd and large describe the first answer with a token in it, of a wrong form, too large.
	leak, odd, large string
}

// note looks at one answer. Tokens are looked for by their common beginning first.
func (w *watch) note(l letter, answer reply, tokens func() []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	where := l.method + " " + l.target
	if w.leak == "" && bytes.Contains(answer.body, []byte("gpu_op_")) {
		for _, token := range tokens() {
			if bytes.Contains(answer.body, []byte(token)) {
				w.leak = where
			}
		}
	}
	if w.large == "" && len(answer.body) > adapter.MaxBody {
		w.large = fmt.Sprintf("%s was answered with %d bytes", where, len(answer.body))
	}
	media := answer.header.Get("Content-Type")
	switch {
	case w.odd != "":
	case answer.status >= 300 && answer.status < 400:
		w.odd = fmt.Sprintf("%s was answered with the redirect %d", where, answer.status)
	case len(answer.body) > 0 && !strings.HasPrefix(media, "application/json"):
		w.odd = fmt.Sprintf("%s was answered %d with Content-Type %q", where, answer.status, media)
	}
}

// decodePage reads a page of the feed.
func decodePage(answer reply, page *adapter.OperationsPage) error {
	if answer.status != http.StatusOK {
		return fmt.Errorf("answered %s", answer.say())
	}
	return json.Unmarshal(answer.body, page)
}
