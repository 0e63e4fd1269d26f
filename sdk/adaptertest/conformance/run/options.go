package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// Options are the settings of one run.
type Options struct {
	// URL is the adapter's address. With a Launcher it may be empty.
	URL string
	// Name is the adapter's registered name: the audience of every request.
	Name string
	// Listen is where the suite serves key set and public API; its address is the issuer that the
	// adapter must trust. Empty means a free port of the loopback, which only a Launcher can know.
	Listen string
	// App is the app to exercise; may be empty when the adapter has one.
	App string
	// Version is the manifest version sent with each instance; empty means "1.0.0".
	Version string
	// Config is the instance config; empty means one generated from the app's schema.
	Config json.RawMessage
	// RuntimeProfile and Artifacts are sent with every instance, as the manifest states them; empty
	// for none.
	RuntimeProfile json.RawMessage
	Artifacts      []adapter.Artifact
	// Members are the member counts by component key; a missing one gets the described default.
	Members map[string]int
	// Nodes is how many nodes the members are spread over, 1 to 16; 0 means 3.
	Nodes int
	// Address is the address of every node; empty gives each node an address of the loopback. It is
	// for apps whose members cannot work over the loopback.
	Address string
	// Inputs are action inputs by name, needed where none can be generated from the schema.
	Inputs map[string]json.RawMessage
	// Refusable are actions that the app may refuse with 422 for good reasons on a healthy instance: a failover
	// without another member to fail over to.
	Refusable []string
	// Work starts work that a drain must wait for; nil leaves the clause on that out.
	Work *Work
	// Manifest is the app's manifest, which the description must agree with; nil leaves the clause on that out.
	Manifest json.RawMessage
	// Only runs the clauses with these ids, or ids below these prefixes such as "cancel", with
	// those they need. Empty runs all.
	Only []string
	// Launcher starts and kills the adapter; nil leaves the crash clauses out.
	Launcher Launcher
	// Namespaces gives the members of plain sandboxes namespaces of their own. It needs root.
	Namespaces bool
	// Content is what the members of plain sandboxes fetch; nil for nothing.
	Content *sandbox.Artifacts
	// Runner carries node tasks out; nil means plain sandboxes below Dir.
	Runner standin.Nodes
	// Dir is a directory of the suite's own for sandboxes; empty means a temporary one.
	Dir string
	// Bounds bound every wait; zero fields have defaults.
	Bounds Bounds
	// Progress is called with the result of each clause as it ends; may be nil.
	Progress func(Result)
}

// Work is how work begins in a member: by an action, or by a command that is the work for as long as it runs.
type Work struct {
	// Action is an action's name, and Input its input, in which {member} is the member's id, {component} its
	// component's key and {index} its index.
	Action string
	Input  json.RawMessage
	// Command is run by sh in the member.
	Command string
}

// Bounds bound every wait of a run. In JSON they are nanoseconds.
type Bounds struct {
	// Overall is the whole run: 20 minutes.
	Overall time.Duration `json:"overall"`
	// Clause is one clause: 3 minutes.
	Clause time.Duration `json:"clause"`
	// Operation is how long an operation of the app may take, and its deadline: one minute.
	Operation time.Duration `json:"operation"`
	// Request is one request, without a long poll's own wait: 20 seconds.
	Request time.Duration `json:"request"`
	// Start is how long the adapter may take until it answers: 30 seconds.
	Start time.Duration `json:"start"`
	// Settle is how long the suite watches that nothing more happens: one second.
	Settle time.Duration `json:"settle"`
	// Near is how far ahead a near deadline lies: 2 seconds; Grace is how much later the operation
	// may be seen to have failed: 15 seconds.
	Near  time.Duration `json:"near"`
	Grace time.Duration `json:"grace"`
	// Burst is how many operations the clause on page sizes dispatches: 510.
	Burst int `json:"burst"`
}

// Full returns the bounds with the default for each that is zero.
func (b Bounds) Full() Bounds {
	return Bounds{
		Overall: cmp.Or(b.Overall, 20*time.Minute), Clause: cmp.Or(b.Clause, 3*time.Minute),
		Operation: cmp.Or(b.Operation, time.Minute), Request: cmp.Or(b.Request, 20*time.Second),
		Start: cmp.Or(b.Start, 30*time.Second), Settle: cmp.Or(b.Settle, time.Second),
		Near: cmp.Or(b.Near, 2*time.Second), Grace: cmp.Or(b.Grace, 15*time.Second), Burst: cmp.Or(b.Burst, 510),
	}
}

// ErrOptions is wrapped by every error about the options.
var ErrOptions = errors.New("the options are wrong")

// ErrUnreachable is wrapped when the adapter does not answer at all.
var ErrUnreachable = errors.New("the adapter does not answer")

// ErrRefused is wrapped when the adapter refuses the suite's good tokens.
var ErrRefused = errors.New("the adapter refuses the suite's request tokens")

// ErrNoApp is wrapped when the adapter does not describe the app.
var ErrNoApp = errors.New("the adapter does not describe the app")

// String returns every bound by name.
func (b Bounds) String() string {
	return fmt.Sprintf(
		"whole run %s, clause %s, operation %s, request %s, start %s, settle %s, near deadline %s, grace %s, burst %d",
		b.Overall,
		b.Clause,
		b.Operation,
		b.Request,
		b.Start,
		b.Settle,
		b.Near,
		b.Grace,
		b.Burst,
	)
}
