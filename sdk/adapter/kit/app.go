package kit

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"

	"github.com/gpuaas/app-platform/sdk/adapter/api"
	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
	"github.com/gpuaas/app-platform/sdk/adapter/operation"
)

// OperationFunc carries out one operation kind of one app.
type OperationFunc = operation.Func

// ActionFunc carries out one action and returns its output, a value that encodes to a JSON
// object valid against the action's output schema. [contract.Reject] refuses with a reason.
type ActionFunc func(ctx context.Context, call *Call) (any, error)

// AppAction is an action's declaration and its function.
type AppAction struct {
	contract.Action
	// Do carries it out.
	Do ActionFunc
}

// App is one app of an adapter: its description and its functions. What it can do is derived
// from the functions it has, so the description cannot promise more.
type App struct {
	// Slug is the app's name in the catalog; [contract.AnyApp] takes every app that has none of its own here.
	Slug string
	// Components are its kinds of member.
	Components []contract.Component
	// ConfigSchema is the JSON Schema of an instance's config; the kit refuses what breaks it.
	ConfigSchema json.RawMessage
	// Operations are the functions by operation kind.
	Operations map[contract.Kind]OperationFunc
	// Check refuses a new dispatch for a reason of safety with [contract.Reject], before anything is
	// done; nil accepts all. It must be quick: the platform waits for it.
	Check func(ctx context.Context, dispatch contract.Dispatch) error
	// Plan forecasts an operation, and changes nothing; nil does not plan. It is called only for
	// operations that a dispatch would not refuse, and must answer within seconds.
	Plan func(ctx context.Context, plan *PlanCall) (contract.PlanAnswer, error)
	// Leaving chooses which of the plan's targets should leave when a component gets count members fewer, in the order
	// in which they leave. If it chooses fewer than count, the platform chooses the rest; if it is nil, the platform
	// chooses all. It changes nothing, and must answer within seconds.
	Leaving func(ctx context.Context, plan *PlanCall, count int) ([]contract.Member, error)
	// Actions are its own verbs.
	Actions []AppAction
	// Observe reports the present state of an instance; nil answers "unknown".
	Observe func(ctx context.Context, call *Call) (contract.Observation, error)
	// UsageDimensions are what Usage meters.
	UsageDimensions []contract.UsageDimension
	// Usage answers the usage after a cursor; nil answers none.
	Usage func(ctx context.Context, call *Call, after string) (contract.UsagePage, error)
}

// Info is the app's description as the platform reads it.
func (a App) Info() contract.AppInfo {
	info := contract.AppInfo{
		Slug: a.Slug, Components: wire.NonNil(a.Components), ConfigSchema: a.ConfigSchema,
		Operations: slices.Sorted(maps.Keys(a.Operations)), Actions: []contract.Action{},
		UsageDimensions: wire.NonNil(a.UsageDimensions), ChoosesLeaving: a.Leaving != nil,
	}
	for _, action := range a.Actions {
		info.Actions = append(info.Actions, action.Action)
	}
	return info
}

// Call is the input and the means of an action, an observation or a usage query.
type Call struct {
	// Instance is the instance; for an observation as it was last dispatched.
	Instance contract.Instance
	// Members are its members.
	Members []contract.Member
	// Input is an action's input; it is valid against the action's schema.
	Input json.RawMessage
	// Requester is the person or service account that called an action.
	Requester contract.Requester
	// Log carries the correlation id.
	Log *slog.Logger

	tasks *api.Client
	key   string
}

// Client reaches the public API with the call's token, which may do what the platform gives to calls of this sort.
func (c *Call) Client() *api.Client { return c.tasks }

// Key identifies an action's call: a repeat of the action has the same key, and no other call has it. Usage that is
// counted by actions derives its ids from it.
func (c *Call) Key() string { return c.key }

// Of returns the members of one component, in the order of their indexes.
func (c *Call) Of(component string) []contract.Member {
	return contract.MembersOf(c.Members, component)
}

// Do runs a node task on a member and waits for it. Its idempotency key consists of the call's key and the step,
// so that a repeated action repeats no task. A task that did not succeed is an error.
func (c *Call) Do(ctx context.Context, member contract.Member, step string, task contract.NodeTask,
	options ...api.TaskOption) (contract.TaskResult, error) {
	result, err := c.Try(ctx, member, step, task, options...)
	if err == nil && result.State != contract.TaskSucceeded {
		err = api.TaskError(member, step, result)
	}
	return result, err
}

// Try is Do, but a task that did not succeed is a result and not an error.
func (c *Call) Try(ctx context.Context, member contract.Member, step string, task contract.NodeTask,
	options ...api.TaskOption) (contract.TaskResult, error) {
	spec, err := api.NewTaskSpec(c.key+"."+step, task, options)
	if err != nil {
		return contract.TaskResult{}, err
	}
	return c.tasks.Run(ctx, member.ID, spec)
}
