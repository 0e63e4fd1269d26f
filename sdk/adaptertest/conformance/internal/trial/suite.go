package trial

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
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/text"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/run"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// Suite is one run.
type Suite struct {
	Options  run.Options
	Bounds   run.Bounds
	Ctx      context.Context
	Platform *standin.Platform
	HTTP     *http.Client
	URL      string

	Description adapter.Description
	App         adapter.AppInfo
	config      json.RawMessage
	Results     map[string]run.Outcome
	serial      int

	// Standing is an instance that several clauses share, once it exists. Baseline is what a clean
	// create of an instance does on its nodes.
	Standing *Instance
	Baseline Profile

	// Neighbour is an instance of the same name of another tenant, once it exists. NeighbourBegan
	// is the operation that created it, NeighbourTasks the number of node tasks of an action.
	Neighbour      *Instance
	NeighbourBegan string
	NeighbourTasks int

	// Acted are the actions that were answered 200.
	Acted map[string]bool

	// Seen is what the clauses on all answers check.
	Seen watch
}

// Over returns the error that ended the run early; nil while it goes on.
func (s *Suite) Over() error {
	switch {
	case s.Ctx.Err() == nil:
		return nil
	case errors.Is(s.Ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the whole run had not ended after %s: %w", s.Bounds.Overall, s.Ctx.Err())
	}
	return s.Ctx.Err()
}

// SetUp starts nodes, platform and adapter. The caller calls stop in any case.
func (s *Suite) SetUp() (stop func() error, err error) {
	var undo []func() error
	stop = func() error {
		var failed error
		for _, one := range slices.Backward(undo) {
			failed = errors.Join(failed, one())
		}
		return failed
	}
	nodes := s.Options.Runner
	if nodes == nil {
		plain, drop, err := s.plainNodes()
		if err != nil {
			return stop, err
		}
		undo = append(undo, drop)
		nodes = plain
	}
	listen := s.Options.Listen
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	if s.Platform, err = standin.Start(listen, nodes); err != nil {
		return stop, fmt.Errorf("%w: listen: %v", run.ErrOptions, err)
	}
	undo = append(undo, func() error { s.Platform.Stop(); return nil })
	s.HTTP = &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 32, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	undo = append(undo, func() error { s.HTTP.CloseIdleConnections(); return nil })
	s.URL = strings.TrimSuffix(s.Options.URL, "/")
	if s.Options.Launcher != nil {
		undo = append(undo, s.Options.Launcher.Kill)
		if err := s.Launch(); err != nil {
			return stop, err
		}
	}
	return stop, s.meet()
}

// plainNodes returns sandboxes in a directory, which is deleted afterwards unless the options name
// it.
func (s *Suite) plainNodes() (*sandbox.Nodes, func() error, error) {
	dir, made := s.Options.Dir, ""
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
	nodes.Artifacts, nodes.Namespaces = s.Options.Content, s.Options.Namespaces
	return nodes, func() error {
		nodes.Close()
		if made == "" {
			return nil
		}
		return os.RemoveAll(made)
	}, nil
}

// Launch starts the adapter.
func (s *Suite) Launch() error {
	url, err := s.Options.Launcher.Start(s.Ctx, s.Platform.URL)
	if err != nil {
		return fmt.Errorf("%w: %w", run.ErrUnreachable, err)
	}
	s.URL = strings.TrimSuffix(url, "/")
	return nil
}

// meet waits until the adapter answers, and reads its description.
func (s *Suite) meet() error {
	answer, err := s.AwaitAnswer()
	switch {
	case answer.Status == http.StatusUnauthorized:
		return fmt.Errorf(
			"%w: it must trust the issuer %s (key set %s/.well-known/jwks.json) and be named %q", run.ErrRefused,
			s.Platform.URL, s.Platform.URL, s.Options.Name,
		)
	case err != nil:
		return fmt.Errorf("%w at %s within %s: %w%s", run.ErrUnreachable, s.URL, s.Bounds.Start, err, s.lastWords())
	case json.Unmarshal(answer.Body, &s.Description) != nil || answer.Status != http.StatusOK:
		return fmt.Errorf(
			"%w: GET %s returned %d: %s", run.ErrNoApp, adapter.AdapterPath, answer.Status,
			text.Clip(string(answer.Body), 200),
		)
	}
	return s.chooseApp()
}

// alive reports whether a started adapter may still answer, as far as its launcher knows.
func (s *Suite) alive() bool {
	known, ok := s.Options.Launcher.(interface{ Alive() bool })
	return !ok || known.Alive()
}

// lastWords returns the end of the output of an adapter that was started.
func (s *Suite) lastWords() string {
	if s.Options.Launcher == nil {
		return ""
	}
	written := s.Options.Launcher.Output()
	return "\nthe end of its output: " + text.HideTokens(written[max(0, len(written)-1000):])
}

// keyPatience is how long an adapter may refuse the suite's key: it may have fetched the key set of
// an earlier run a moment ago, and does not fetch it with every request.
const keyPatience = 8 * time.Second

// AwaitAnswer requests the description until something answers, for as long as a start may take.
func (s *Suite) AwaitAnswer() (Reply, error) {
	ctx, cancel := context.WithTimeout(s.Ctx, s.Bounds.Start)
	defer cancel()
	for began := time.Now(); ; {
		answer, err := s.send(ctx, Letter{Method: http.MethodGet, Target: adapter.AdapterPath})
		stranger := answer.Status == http.StatusUnauthorized && time.Since(began) < keyPatience
		if err == nil && answer.Status < http.StatusInternalServerError && !stranger {
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

// chooseApp chooses the app to exercise and its config.
func (s *Suite) chooseApp() error {
	var slugs []string
	for _, app := range s.Description.Apps {
		slugs = append(slugs, app.Slug)
		if app.Slug == s.Options.App || (s.Options.App == "" && len(s.Description.Apps) == 1) {
			s.App = app
		}
	}
	if s.App.Slug == "" {
		return fmt.Errorf("%w: it describes %q; name one", run.ErrNoApp, slugs)
	}
	s.config = s.Options.Config
	if s.config == nil {
		s.config = sampleConfig(s.App.ConfigSchema)
	}
	return nil
}

// Run runs one clause within its bound.
func (s *Suite) Run(clause Clause) run.Result {
	began := time.Now()
	result := run.Result{ID: clause.ID, Rule: clause.Rule, Section: clause.Section, Outcome: run.Passed}
	ctx, cancel := context.WithTimeout(s.Ctx, s.Bounds.Clause)
	defer cancel()
	c := &Check{Suite: s, Ctx: ctx, clause: clause, began: s.Platform.Requested()}
	s.Seen.begin()
	if ended := c.perform(); ended != nil {
		result.Outcome, result.Reason = ended.outcome, ended.reason
	}
	if err := s.Over(); err != nil {
		// What fails now fails because of that, and proves nothing about the adapter.
		result.Outcome, result.Reason = run.NotRun, err.Error()
	}
	if result.Outcome == run.Failed {
		result.Exchanges, result.Fix, result.Log = c.exchanges, clause.Fix, s.lastLines()
		result.Tasks = c.failedTasks()
		s.Seen.failed()
	}
	c.settle()
	s.readLog(clause.ID)
	result.Seconds = time.Since(began).Seconds()
	s.Results[clause.ID] = result.Outcome
	if s.Options.Progress != nil {
		s.Options.Progress(result)
	}
	return result
}

// Once does work outside all clauses: nothing is settled afterwards, so that what it created stays.
func (s *Suite) Once(ctx context.Context, id string, work func(*Check)) run.Result {
	c := &Check{Suite: s, Ctx: ctx, clause: Clause{ID: id, Run: work}, began: s.Platform.Requested()}
	result := run.Result{ID: id, Outcome: run.Passed}
	if ended := c.perform(); ended != nil {
		result.Outcome, result.Reason = ended.outcome, ended.reason
		result.Exchanges, result.Log, result.Tasks = c.exchanges, s.lastLines(), c.failedTasks()
	}
	return result
}

// Known returns the status of an operation, as far as the adapter answers and knows it.
func (s *Suite) Known(ctx context.Context, id string) (status adapter.Status, ok bool) {
	answer, err := s.send(ctx, Letter{Method: http.MethodGet, Target: adapter.OperationPath(id)})
	if err != nil || answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &status) != nil {
		return status, false
	}
	return status, true
}

// readLog looks for tokens in what the adapter has written so far: of a long log only the end is kept.
func (s *Suite) readLog(clause string) {
	if s.Options.Launcher != nil && s.Seen.Logged == "" && s.HoldsToken(s.Options.Launcher.Output()) {
		s.Seen.Logged = clause
	}
}

// HoldsToken reports whether a text holds a token that the suite issued. All tokens share a beginning, which it looks
// for first.
func (s *Suite) HoldsToken(text string) bool {
	if !strings.Contains(text, "gpu_op_") {
		return false
	}
	return slices.ContainsFunc(s.Platform.Tokens(), func(token string) bool { return strings.Contains(text, token) })
}

// maxLines is how many lines of the adapter's log a failure shows.
const maxLines = 10

// lastLines returns what the adapter wrote to its log last, where the suite started it.
func (s *Suite) lastLines() []string {
	if s.Options.Launcher == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(text.HideTokens(s.Options.Launcher.Output())), "\n")
	return slices.DeleteFunc(lines[max(0, len(lines)-maxLines):], func(line string) bool { return line == "" })
}

// pause waits for d; it returns false when ctx ended first.
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
