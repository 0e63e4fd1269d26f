package adapter

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
)

// OperationFunc carries out one operation kind of one app. It returns nil when the app's own
// truth is reached, [Fail] to say why it is not, or any other error for an internal failure.
//
// It must be a sequence of named, idempotent steps: after a crash of the controller it is
// called again with the same [Run], and finished steps answer at once with their old results.
// Its ctx ends at the operation's deadline and when the platform cancels; the function then
// undoes what it must with [Run.Cleanup] and returns.
type OperationFunc func(ctx context.Context, run *Run) error

// ActionFunc carries out one action and returns its output, a value that encodes to a JSON
// object valid against the action's output schema. [Reject] refuses with a reason.
type ActionFunc func(ctx context.Context, call *Call) (any, error)

// AppAction is an action's declaration and its function.
type AppAction struct {
	Action
	// Do carries it out.
	Do ActionFunc
}

// App is one app of an adapter: its description and its functions. What it can do is derived
// from the functions it has, so the description cannot promise more.
type App struct {
	// Slug is the app's name in the catalog; [AnyApp] takes every app that has none of its own here.
	Slug string
	// Components are its kinds of member.
	Components []Component
	// ConfigSchema is the JSON Schema of an instance's config; the kit refuses what breaks it.
	ConfigSchema json.RawMessage
	// Operations are the functions by operation kind.
	Operations map[Kind]OperationFunc
	// Check refuses a new dispatch for a reason of safety with [Reject], before anything is
	// done; nil accepts all. It must be quick: the platform waits for it.
	Check func(ctx context.Context, dispatch Dispatch) error
	// Plan says what an operation would come to, and changes nothing; nil does not plan. It is
	// asked only of what a dispatch would not refuse, and must answer within seconds.
	Plan func(ctx context.Context, plan *PlanCall) (PlanAnswer, error)
	// Actions are its own verbs.
	Actions []AppAction
	// Observe says how an instance is now; nil answers "unknown".
	Observe func(ctx context.Context, call *Call) (Observation, error)
	// UsageDimensions are what Usage meters.
	UsageDimensions []UsageDimension
	// Usage answers the usage after a cursor; nil answers none.
	Usage func(ctx context.Context, call *Call, after string) (UsagePage, error)
}

// Info is the app's description as the platform reads it.
func (a App) Info() AppInfo {
	info := AppInfo{
		Slug: a.Slug, Components: nonNil(a.Components), ConfigSchema: a.ConfigSchema,
		Operations: slices.Sorted(maps.Keys(a.Operations)), Actions: []Action{},
		UsageDimensions: nonNil(a.UsageDimensions),
	}
	for _, action := range a.Actions {
		info.Actions = append(info.Actions, action.Action)
	}
	return info
}

// Call is what an action, an observation or a usage query has to work with.
type Call struct {
	// Instance is the instance; for an observation as it was last dispatched.
	Instance Instance
	// Members are its members.
	Members []Member
	// Input is an action's input; it is valid against the action's schema.
	Input json.RawMessage
	// Requester is who asked for an action.
	Requester Requester
	// Log carries the correlation id.
	Log *slog.Logger

	tasks Tasks
	key   string
}

// Of returns the members of one component, in the order of their indexes.
func (c *Call) Of(component string) []Member { return membersOf(c.Members, component) }

// Do runs a node task on a member and waits for it. Its idempotency key is made of the call and
// the step, so that a repeated action is the same tasks. A task that did not succeed is an error.
func (c *Call) Do(ctx context.Context, member Member, step string, task NodeTask, options ...TaskOption) (TaskResult, error) {
	result, err := c.Try(ctx, member, step, task, options...)
	if err == nil && result.State != TaskSucceeded {
		err = taskError(member, step, result)
	}
	return result, err
}

// Try is Do, but a task that did not succeed is a result and not an error.
func (c *Call) Try(ctx context.Context, member Member, step string, task NodeTask, options ...TaskOption) (TaskResult, error) {
	spec, err := newTaskSpec(c.key+"."+step, task, options)
	if err != nil {
		return TaskResult{}, err
	}
	return c.tasks.Run(ctx, member.ID, spec)
}

func membersOf(members []Member, component string) []Member {
	var list []Member
	for _, member := range members {
		if member.ComponentKey == component {
			list = append(list, member)
		}
	}
	slices.SortFunc(list, func(a, b Member) int { return a.Index - b.Index })
	return list
}

func targetsOf(members []Member, targets []string) []Member {
	return slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return !slices.Contains(targets, m.ID) })
}

// decodeChange reads a desired change; absent is an empty one.
func decodeChange(change json.RawMessage, out any) error {
	if isNull(change) {
		return nil
	}
	if err := json.Unmarshal(change, out); err != nil {
		return Reject(CodeInvalid, "change", "the change cannot be read: %v", err)
	}
	return nil
}
