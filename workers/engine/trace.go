package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/queue"
	"github.com/gpuaas/app-platform/workers/steprow"
)

// attempt opens the trace of one attempt at an operation, from the claim until its release. ended ends it with what
// the attempt met.
func (e *Engine) attempt(ctx context.Context, held *queue.Held) (traced context.Context, ended func(error)) {
	of := []attribute.KeyValue{attribute.String("correlation_id", held.CorrelationID),
		attribute.Int("epoch", held.ClaimEpoch)}
	for _, field := range held.About() {
		of = append(of, attribute.String(field.Key, field.Value.String()))
	}
	traced, span := e.config.Traces.Attempt(ctx, string(held.ID), "attempt "+string(held.Kind), of...)
	return traced, func(err error) {
		code := ""
		if err != nil && !errors.Is(err, queue.ErrFenced) && ctx.Err() == nil {
			code = string(fault.Internal)
		}
		telemetry.End(span, code)
		e.config.Metrics.Attempt(string(held.Kind), metrics.Outcome(ctx, err, errors.Is(err, queue.ErrFenced)))
		if !e.config.Traces.Off() {
			e.emit(ctx, held.ID)
		}
	}
}

// emit sends the whole trace of an operation that has ended, from its rows. A worker that dies before it leaves no
// trace; anyone who may read the operation can send it then, and it comes out the same.
func (e *Engine) emit(ctx context.Context, id ids.ID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), letGo)
	defer cancel()
	switch whole, err := steprow.Whole(ctx, e.config.DB.Worker(), id); {
	case err != nil:
		e.config.Log.Warn("an operation's trace was not sent", "operation_id", id, "error", err)
	case whole != nil:
		e.config.Traces.Operation(ctx, whole)
	}
}

// logOf returns a log whose lines bear what the operation is and is about.
func (e *Engine) logOf(ctx context.Context, held *queue.Held) *slog.Logger {
	of := append(held.About(), slog.String("correlation_id", held.CorrelationID),
		slog.String("kind", string(held.Kind)), slog.Int("epoch", held.ClaimEpoch), telemetry.TraceID(ctx))
	return slog.New(e.config.Log.Handler().WithAttrs(of))
}

// unanswered is what a step is tried again for whose error has no code, by the owner of its cause.
var unanswered = map[string]fault.Code{operation.OwnerAdapter: fault.AdapterUnavailable}

// traced runs the current step once, within a span of its own, and writes its line. A step that waits is looked at
// whenever it is woken, so those lines are for debugging.
func (c *Context) traced(ctx context.Context) (Result, error) {
	ctx, span := telemetry.Start(ctx, "step "+c.step().Name)
	began := time.Now()
	result, err := c.step().Run(ctx, c)
	level, outcome, code := slog.LevelInfo, "done", ""
	var trouble *RetryableError
	switch {
	case errors.Is(err, queue.ErrFenced), errors.Is(err, context.Canceled):
		outcome = "dropped"
	case errors.As(err, &trouble):
		outcome, code = metrics.Retried, string(cmp.Or(trouble.Cause.Code,
			unanswered[cmp.Or(trouble.Cause.Owner, c.step().Owner)], fault.Unavailable))
	case err != nil:
		outcome, code = metrics.Retried, string(fault.Internal)
	case result.failure != nil:
		outcome, code = "failed", string(result.failure.Code)
	case result.waiting:
		level, outcome = slog.LevelDebug, "waits"
	}
	span.SetAttributes(attribute.String("outcome", outcome))
	telemetry.End(span, code)
	took := time.Since(began)
	c.engine.config.Metrics.Step(ctx, c.step().Name, took, outcome, code)
	c.Log.LogAttrs(ctx, level, "step", slog.String("step", c.step().Name), slog.String("outcome", outcome),
		slog.String("code", code), telemetry.Milliseconds(took))
	return result, err
}
