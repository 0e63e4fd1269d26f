package parts

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/contract/wire"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers/engine"
)

// dispatched is the evidence of the dispatch step.
type dispatched struct {
	Adapter string    `json:"adapter"`
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
	State   string    `json:"state"`
	// Known says that the adapter had this operation already, from an earlier try.
	Known bool `json:"known,omitempty"`
	// Superseded is what became of the operations that this one took the place of.
	Superseded []superseded `json:"superseded,omitempty"`
}

// Dispatch sends the operation to its adapter. The attempt was raised when the operation was
// prepared, so that every run of this step sends the same one.
func (w *Work) Dispatch() engine.Step {
	return engine.Step{
		Name: "dispatch", Title: "sending it to the adapter", Percent: 10, Owner: operation.OwnerAdapter,
		Run: func(ctx context.Context, c *engine.Context) (engine.Result, error) {
			s, err := w.snapshot(ctx, c)
			if err != nil {
				return engine.Result{}, err
			}
			before := w.cancelSuperseded(ctx, c, s)
			c.Listen()
			evidence, failure, err := w.send(ctx, c, s)
			if err != nil {
				return engine.Result{}, err
			}
			if failure != nil {
				return engine.Fail(*failure), nil
			}
			evidence.Superseded, c.Cached = before, s
			return engine.Done(evidence), nil
		},
	}
}

// snapshot is what the step before has loaded under the same claim, or a fresh one.
func (w *Work) snapshot(ctx context.Context, c *engine.Context) (*Snapshot, error) {
	if s, ok := c.Cached.(*Snapshot); ok {
		return s, nil
	}
	return load(ctx, c.DB().Worker(), c.Op.Operation)
}

// send dispatches once. A failure is final; an error is worth another try.
func (w *Work) send(ctx context.Context, c *engine.Context, s *Snapshot) (*dispatched, *operation.Failure, error) {
	body, err := w.body(ctx, c, s)
	if err != nil {
		return nil, nil, err
	}
	failure, err := w.manifests.Unfit(ctx, c.DB().Worker(), c.Op.Kind, s.leads(c.Op.Operation), body.Instance.Config)
	if failure != nil || err != nil {
		return nil, failure, err
	}
	evidence := &dispatched{Adapter: s.target.Name, Attempt: body.Attempt, At: c.Now()}
	if err := c.Op.Ensure(ctx, c.DB().Worker()); err != nil { // it may have ended while this process was stopped
		return nil, nil, err
	}
	status, err := call(ctx, w, c, s.target, func(ctx context.Context) (adapter.Status, error) {
		status, _, err := w.Client.Dispatch(ctx, s.target, body)
		return status, err
	})
	refused, ok := adapterclient.As(err)
	switch {
	case err == nil:
		evidence.State = string(status.State)
		return evidence, nil, w.keep(ctx, c, status)
	case !ok:
		return nil, nil, err
	case refused.Kind == adapterclient.Rejected:
		return nil, &operation.Failure{Code: string(fault.AdapterRejected), Owner: operation.OwnerAdapter,
			Message: refused.Body.Code + ": " + refused.Body.Message}, nil
	case refused.Kind == adapterclient.Conflict && refused.Body.Code == adapter.CodeStaleFence:
		if err := w.raise(ctx, c); err != nil {
			return nil, nil, err
		}
		return nil, nil, &engine.RetryableError{Message: "adapter " + s.target.Name +
			" knows a newer attempt; it is sent again", Err: refused}
	case refused.Kind == adapterclient.Conflict:
		// Ids of operations are the platform's own: the adapter has it from an earlier try, and a
		// detail of a node has changed since. What was sent first counts.
		evidence.Known = true
		return evidence, nil, nil
	}
	return nil, nil, trouble(refused)
}

// keep stores a status at once when it is an end; otherwise the feed brings it.
func (w *Work) keep(ctx context.Context, c *engine.Context, status adapter.Status) error {
	if !status.State.Terminal() {
		return nil
	}
	return c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *engine.Locked) error {
		_, err := operation.Absorb(ctx, t, locked.Instance, locked.Op, status)
		return err
	})
}

// raise makes the next dispatch a new attempt, on purpose.
func (w *Work) raise(ctx context.Context, c *engine.Context) error {
	return c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *engine.Locked) error {
		return t.QueryRow(ctx, `UPDATE operation SET dispatch_attempt = dispatch_attempt + 1, adapter_status = NULL
			WHERE id = $1
			RETURNING dispatch_attempt`, locked.Op.ID).Scan(&locked.Op.DispatchAttempt)
	})
}

// body is the dispatch. What the adapter compares is as it was when the operation was prepared.
func (w *Work) body(ctx context.Context, c *engine.Context, s *Snapshot) (adapter.Dispatch, error) {
	op := c.Op.Operation
	instance, err := w.led(ctx, c, s)
	if err != nil {
		return adapter.Dispatch{}, err
	}
	var first Prepared
	if err := c.Evidence("prepare", &first); err != nil {
		return adapter.Dispatch{}, err
	}
	if err := s.sent(ctx, c.DB().Worker(), op, first); err != nil {
		return adapter.Dispatch{}, err
	}
	if first.Components != nil {
		instance.Components = first.Components
	}
	change, err := changeOf(op)
	if err != nil {
		return adapter.Dispatch{}, err
	}
	access, err := operation.IssueToken(ctx, w.Keys, op, s.instance.PermissionFamily, c.Now())
	if err != nil {
		return adapter.Dispatch{}, err
	}
	_, forced := c.ForcedSince()
	deadline := op.Deadline
	if forced {
		deadline = c.Due() // when the platform goes on without the adapter
	}
	return adapter.Dispatch{
		OperationID: string(op.ID), Kind: adapter.Kind(op.Kind.WireName()), Attempt: max(op.DispatchAttempt, 1),
		Deadline:      deadline,
		CorrelationID: op.CorrelationID, Instance: instance, Members: wire.Members(s.instance, s.Members, s.nodes,
			s.allocations),
		Targets: texts(op.Targets), Change: change, Force: forced,
		Platform: adapter.Platform{GraphQLURL: w.GraphQLURL, Token: access.Text, TokenExpiresAt: access.ExpiresAt},
	}, nil
}

// leads is the manifest that the operation leads to.
func (s *Snapshot) leads(op *db.Operation) ids.ID {
	if to := operation.PrivateOf(op).To; to != nil {
		return to.ManifestID
	}
	return s.instance.ManifestID
}

// led is the instance with the version and config that the operation leads to.
func (w *Work) led(ctx context.Context, c *engine.Context, s *Snapshot) (adapter.Instance, error) {
	instance, err := wire.Instance(s.instance)
	if err != nil {
		return adapter.Instance{}, err
	}
	if to := operation.PrivateOf(c.Op.Operation).To; to != nil {
		instance.Version, instance.Config = to.Version, to.Config
	}
	pins, err := w.manifests.Of(ctx, c.DB().Worker(), s.leads(c.Op.Operation))
	if err != nil {
		return adapter.Instance{}, err
	}
	wire.Pinned(&instance, pins)
	return instance, nil
}

func texts(list []ids.ID) []string {
	var out []string
	for _, id := range list {
		out = append(out, string(id))
	}
	return out
}

// trouble returns an adapter's failure to answer as a retryable error.
func trouble(e *adapterclient.Error) error {
	blame := engine.FailureCause{Owner: operation.OwnerAdapter}
	switch e.Kind {
	case adapterclient.Forbidden, adapterclient.Insecure:
		blame = engine.FailureCause{Code: fault.DialRefused, Owner: operation.OwnerPlatform}
	case adapterclient.Invalid, adapterclient.Missing:
		blame.Code = fault.AdapterInvalid
	}
	return &engine.RetryableError{Message: e.Reason(), Cause: blame, Err: e}
}
