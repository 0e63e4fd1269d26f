package conformance

import "github.com/gpuaas/app-platform/sdk/adaptertest/conformance/run"

// Options are the settings of one run.
type Options = run.Options

// Bounds bound every wait of a run. In JSON they are nanoseconds.
type Bounds = run.Bounds

// Work is how work begins that a drain must wait for.
type Work = run.Work

// Launcher starts the adapter and ends it as kill -9 does. The suite calls it from one goroutine.
type Launcher = run.Launcher

// Command is a [Launcher] of a command line, run by the shell.
type Command = run.Command

// Result is how one clause ended.
type Result = run.Result

// Exchange is one request and its answer.
type Exchange = run.Exchange

// FailedTask is a node task that failed during a clause.
type FailedTask = run.FailedTask

// Outcome is how a clause ended.
type Outcome = run.Outcome

// The outcomes. Only the first is good; the last two say why in the reason.
const (
	Passed  = run.Passed
	Failed  = run.Failed
	Skipped = run.Skipped
	NotRun  = run.NotRun
)

// What Run wraps when nothing can be tested.
var (
	// ErrOptions is wrapped by every mistake in the options.
	ErrOptions = run.ErrOptions
	// ErrUnreachable is wrapped when the adapter does not answer at all.
	ErrUnreachable = run.ErrUnreachable
	// ErrRefused is wrapped when the adapter refuses the suite's good tokens.
	ErrRefused = run.ErrRefused
	// ErrNoApp is wrapped when the adapter does not describe the app.
	ErrNoApp = run.ErrNoApp
)
