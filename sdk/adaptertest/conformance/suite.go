package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// ErrUnreachable is what Run wraps when the adapter does not answer at all.
var ErrUnreachable = errors.New("the adapter does not answer")

// ErrRefused is what Run wraps when the adapter refuses the suite's good tokens.
var ErrRefused = errors.New("the adapter refuses the suite's request tokens")

// ErrNoApp is what Run wraps when the adapter does not describe the app.
var ErrNoApp = errors.New("the adapter does not describe the app")

// suite is one run.
type suite struct {
	options  Options
	bounds   Bounds
	ctx      context.Context
	platform *standin.Platform
	http     *http.Client
	url      string

	description adapter.Description
	app         adapter.AppInfo
	config      json.RawMessage
	results     map[string]Outcome
	serial      int

	// standing is an instance that several clauses share, once it is there; baseline is what a
	// clean create of an instance does on its nodes.
	standing *instance
	baseline profile

	// neighbour is an instance of the same name that another tenant has, once it is there; neighbourBegan is the
	// operation that created it, neighbourTasks how many node tasks an action takes.
	neighbour      *instance
	neighbourBegan string
	neighbourTasks int

	// seen is what the clauses on all answers look at.
	seen watch
}

// Run exercises the adapter and returns the report. A clause that fails is no error. The error says
// why nothing could be tested; or that ctx or the bound of the whole run ended it before it was
// done, beside a report of what there was time for.
func Run(ctx context.Context, options Options) (Report, error) {
	if err := options.check(); err != nil {
		return Report{}, err
	}
	s := &suite{options: options, bounds: options.Bounds.Full(), results: map[string]Outcome{}}
	ctx, cancel := context.WithTimeout(ctx, s.bounds.Overall)
	defer cancel()
	s.ctx = ctx
	report := Report{Started: time.Now().UTC(), Bounds: s.bounds}
	stop, err := s.setUp()
	if err != nil {
		return report, errors.Join(err, stop())
	}
	chosen := selected(options.Only)
	for _, clause := range Clauses() {
		if chosen[clause.ID] {
			report.Results = append(report.Results, s.try(clause))
		}
	}
	report.Seconds = time.Since(report.Started).Seconds()
	report.Digested = Digested{
		Suite: Version, Contract: adapter.ContractVersion, App: s.app.Slug,
		Adapter: AdapterID{Name: s.description.Name, Build: s.description.Build},
	}
	return report, errors.Join(s.over(), report.seal(), stop())
}

// over says that the run was ended before it was done.
func (s *suite) over() error {
	switch {
	case s.ctx.Err() == nil:
		return nil
	case errors.Is(s.ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the whole run was not over after %s: %w", s.bounds.Overall, s.ctx.Err())
	}
	return s.ctx.Err()
}

// setUp brings up nodes, platform and adapter. The function it returns is to be called in any case.
func (s *suite) setUp() (stop func() error, err error) {
	var undo []func() error
	stop = func() error {
		var failed error
		for _, one := range slices.Backward(undo) {
			failed = errors.Join(failed, one())
		}
		return failed
	}
	nodes := s.options.Runner
	if nodes == nil {
		plain, drop, err := s.plainNodes()
		if err != nil {
			return stop, err
		}
		undo = append(undo, drop)
		nodes = plain
	}
	listen := s.options.Listen
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	if s.platform, err = standin.Start(listen, nodes); err != nil {
		return stop, optionf("listen: %v", err)
	}
	undo = append(undo, func() error { s.platform.Stop(); return nil })
	s.http = &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 32, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	undo = append(undo, func() error { s.http.CloseIdleConnections(); return nil })
	s.url = strings.TrimSuffix(s.options.URL, "/")
	if s.options.Launcher != nil {
		undo = append(undo, s.options.Launcher.Kill)
		if err := s.launch(); err != nil {
			return stop, err
		}
	}
	return stop, s.meet()
}

// plainNodes makes sandboxes in a directory that is deleted afterwards, unless it was given.
func (s *suite) plainNodes() (*sandbox.Nodes, func() error, error) {
	dir, made := s.options.Dir, ""
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "conformance-"); err != nil {
			return nil, nil, fmt.Errorf("sandboxes: %w", err)
		}
		made = dir
	}
	nodes, err := sandbox.New(dir)
	if err != nil {
		return nil, nil, err
	}
	nodes.Artifacts = s.options.Content
	return nodes, func() error {
		nodes.Close()
		if made == "" {
			return nil
		}
		return os.RemoveAll(made)
	}, nil
}

// launch starts the adapter.
func (s *suite) launch() error {
	url, err := s.options.Launcher.Start(s.ctx, s.platform.URL)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	s.url = strings.TrimSuffix(url, "/")
	return nil
}

// meet waits until the adapter answers, and reads what it says of itself.
func (s *suite) meet() error {
	answer, err := s.awaitAnswer()
	switch {
	case answer.status == http.StatusUnauthorized:
		return fmt.Errorf("%w: it must trust the issuer %s (key set %s/.well-known/jwks.json) and be named %q", ErrRefused, s.platform.URL, s.platform.URL, s.options.Name)
	case err != nil:
		return fmt.Errorf("%w at %s within %s: %w%s", ErrUnreachable, s.url, s.bounds.Start, err, s.lastWords())
	case json.Unmarshal(answer.body, &s.description) != nil || answer.status != http.StatusOK:
		return fmt.Errorf("%w: GET %s was answered %d: %s", ErrNoApp, adapter.AdapterPath, answer.status, clip(string(answer.body), 200))
	}
	return s.chooseApp()
}

// alive says whether an adapter that was started may still answer, as far as its launcher knows.
func (s *suite) alive() bool {
	known, ok := s.options.Launcher.(interface{ Alive() bool })
	return !ok || known.Alive()
}

// lastWords is the end of what an adapter that was started has written.
func (s *suite) lastWords() string {
	if s.options.Launcher == nil {
		return ""
	}
	text := s.options.Launcher.Output()
	return "\nits output ends: " + hideTokens(text[max(0, len(text)-1000):])
}

// keyPatience is how long an adapter may refuse the suite's key: it may have fetched the key set of
// an earlier run a moment ago, and does not fetch it with every request.
const keyPatience = 8 * time.Second

// awaitAnswer asks for the description until something answers, for as long as a start may take.
func (s *suite) awaitAnswer() (reply, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.bounds.Start)
	defer cancel()
	for began := time.Now(); ; {
		answer, err := s.send(ctx, letter{method: http.MethodGet, target: adapter.AdapterPath})
		stranger := answer.status == http.StatusUnauthorized && time.Since(began) < keyPatience
		if err == nil && answer.status < http.StatusInternalServerError && !stranger {
			return answer, nil
		}
		if err != nil && !s.alive() {
			return answer, errors.New("the command that starts it has ended")
		}
		if !pause(ctx, 20*time.Millisecond) {
			return answer, errors.Join(err, ctx.Err())
		}
	}
}

func (s *suite) chooseApp() error {
	var slugs []string
	for _, app := range s.description.Apps {
		slugs = append(slugs, app.Slug)
		if app.Slug == s.options.App || (s.options.App == "" && len(s.description.Apps) == 1) {
			s.app = app
		}
	}
	if s.app.Slug == "" {
		return fmt.Errorf("%w: it describes %q; name one", ErrNoApp, slugs)
	}
	s.config = s.options.Config
	if s.config == nil {
		s.config = sampleConfig(s.app.ConfigSchema)
	}
	return nil
}

// try runs one clause within its bound.
func (s *suite) try(clause Clause) Result {
	began := time.Now()
	result := Result{ID: clause.ID, Rule: clause.Rule, Section: clause.Section, Outcome: Passed}
	ctx, cancel := context.WithTimeout(s.ctx, s.bounds.Clause)
	defer cancel()
	c := &check{suite: s, ctx: ctx, clause: clause}
	if ended := c.perform(); ended != nil {
		result.Outcome, result.Reason = ended.outcome, ended.reason
	}
	if err := s.over(); err != nil {
		// What fails now fails because of that, and says nothing about the adapter.
		result.Outcome, result.Reason = NotRun, err.Error()
	}
	if result.Outcome == Failed {
		result.Exchanges, result.Fix = c.exchanges, clause.Fix
	}
	c.settle()
	result.Seconds = time.Since(began).Seconds()
	s.results[clause.ID] = result.Outcome
	if s.options.Progress != nil {
		s.options.Progress(result)
	}
	return result
}

// pause waits for d; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
