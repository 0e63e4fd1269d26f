package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/queue"
	"github.com/gpuaas/app-platform/workers/steprow"
	"github.com/gpuaas/app-platform/workers/together"
)

// finishStep is the name of the step that the engine adds to every kind.
const finishStep = "finish"

// Context is one claimed operation in a worker's hands. It is used by one goroutine.
type Context struct {
	// Op is the operation as it was last read; Write refreshes it.
	Op *queue.Held
	// Log names the operation.
	Log *slog.Logger
	// Cached is what the steps of one claim share; a new claim starts without.
	Cached any

	engine   *Engine
	kind     *Kind
	rows     []*steprow.Row
	at       int
	progress operation.Progress
	failures int
	word     *event.Waiter // since Listen
	asked    bool          // whoever carries it out was asked to stop, and cannot say yet
	verdict  string        // what became of the request to stop, to be stored
}

// DB is the database.
func (c *Context) DB() *tx.DB { return c.engine.config.DB }

// Trace ties a call to an adapter to the operation, in headers and in the call's line.
func (c *Context) Trace() adapterclient.Trace {
	return adapterclient.Trace{CorrelationID: c.Op.CorrelationID, About: c.Op.About()}
}

// Now is the moment, by the database user's clock.
func (c *Context) Now() time.Time { return c.engine.config.DB.Now() }

// Step is the name of the step that runs.
func (c *Context) Step() string { return c.rows[c.at].Name }

// Evidence is what an earlier step left, decoded into out; nothing when it left none.
func (c *Context) Evidence(step string, out any) error {
	for _, row := range c.rows {
		if row.Name == step && row.Proves() && len(row.Evidence) > 0 {
			return json.Unmarshal(row.Evidence, out)
		}
	}
	return nil
}

// EndedAt is when an earlier step ended; the operation's creation when it has not.
func (c *Context) EndedAt(step string) time.Time {
	for _, row := range c.rows {
		if row.Name == step && row.EndedAt != nil {
			return *row.EndedAt
		}
	}
	return c.Op.CreatedAt
}

// StateOf decodes what a step that did not reach its end had noted; nothing when it had noted nothing.
func (c *Context) StateOf(step string, out any) error {
	for _, row := range c.rows {
		if row.Name == step && !row.Proves() {
			if state := row.Notes().State; len(state) > 0 {
				return json.Unmarshal(state, out)
			}
		}
	}
	return nil
}

// State decodes what the running step noted before.
func (c *Context) State(out any) error {
	if state := c.rows[c.at].Notes().State; len(state) > 0 {
		return json.Unmarshal(state, out)
	}
	return nil
}

// SetState notes the running step's state. It is stored with the next Write, or when the step ends.
func (c *Context) SetState(state any) error {
	encoded, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encode the state of %s: %w", c.Step(), err)
	}
	return c.rows[c.at].Note(func(n *steprow.Notes) { n.State = encoded })
}

// Say sets the operation's message for people, stored with the next Write or when the step ends.
func (c *Context) Say(message string) {
	c.progress.Message = message
	row := c.rows[c.at]
	if row.Message != message {
		row.Message, row.Dirty = message, true
	}
}

// Write runs fn in a transaction that locks the instance and the operation, in that order, and is
// fenced: ErrFenced when the claim has ended. The state of the steps so far is stored with it, and
// the events of locked.Emit are appended at its end. After a deadlock fn is run again.
func (c *Context) Write(ctx context.Context, fn func(ctx context.Context, t *tx.Tx, locked *Locked) error) error {
	return c.WriteAfter(ctx, func(*pgx.Batch) {}, fn)
}

// WriteAfter is Write with queries of the caller's own, which go out with the locks, in the same
// round trip, and after them. What fn queues in locked.Writes goes out with the commit.
func (c *Context) WriteAfter(ctx context.Context, reads func(*pgx.Batch),
	fn func(ctx context.Context, t *tx.Tx, locked *Locked) error) error {
	return c.write(ctx, c.engine.writer.Alone, reads, fn)
}

// WriteTogether is WriteAfter for an fn that only queues: other operations may be written in the same transaction.
func (c *Context) WriteTogether(ctx context.Context, reads func(*pgx.Batch),
	fn func(ctx context.Context, t *tx.Tx, locked *Locked) error) error {
	return c.write(ctx, c.engine.writer.Do, reads, fn)
}

func (c *Context) write(ctx context.Context, how func(context.Context, together.Job) error, reads func(*pgx.Batch),
	fn func(ctx context.Context, t *tx.Tx, locked *Locked) error) error {
	err := how(ctx, together.Job{Held: c.Op, Reads: reads, Write: func(ctx context.Context, t *tx.Tx,
		instance *db.Instance, writes *pgx.Batch) error {
		locked := &Locked{Instance: instance, Op: c.Op.Operation, Writes: writes}
		if c.rows[0].Stored == "" {
			locked.Emit(event.Draft{Type: lifecycle.EventOperationStarted, Message: "a worker began",
				Payload: map[string]any{"kind": c.Op.Kind}})
		}
		if fn != nil {
			if err := fn(ctx, t, locked); err != nil {
				return err
			}
		}
		return c.flush(t, locked)
	}})
	if err != nil {
		return err
	}
	steprow.Kept(c.rows)
	c.verdict = ""
	return nil
}

// flush queues steps, progress and events, in the transaction's last batch.
func (c *Context) flush(t *tx.Tx, locked *Locked) error {
	before := locked.Writes.Len()
	steprow.Queue(locked.Writes, c.rows)
	if c.Op.StepPlan == "" && c.kind != nil { // begun before plans were stored
		locked.Writes.Queue(`UPDATE operation SET step_plan = $2 WHERE id = $1`, c.Op.ID, c.kind.Plan())
	}
	if c.verdict != "" {
		locked.Writes.Queue(`UPDATE operation SET cancel_message = $2 WHERE id = $1`, c.Op.ID, c.verdict)
	}
	if locked.Writes.Len() > before {
		t.Wake(event.OperationTopic(c.Op.ID))
	}
	if !locked.ended {
		locked.events = append(locked.events, operation.QueueAdvance(locked.Writes, t, locked.Instance, locked.Op,
			c.intended(locked.Op, locked.first))...)
	}
	if locked.Instance == nil {
		return nil
	}
	return event.EnqueueWith(locked.Writes, t, locked.Instance, locked.columns, locked.events...)
}

// intended returns the progress to store; a part that was not reported stays as it is.
func (c *Context) intended(op *db.Operation, first bool) operation.Progress {
	percent := max(op.Percent, c.progress.Percent)
	p := operation.Progress{Phase: op.Phase, Message: op.Message, Percent: percent, First: first}
	if c.progress.Phase != "" {
		p.Phase = c.progress.Phase
	}
	if c.progress.Message != "" {
		p.Message = c.progress.Message
	}
	return p
}

// load reads the steps that are stored; none when the operation is new.
func (c *Context) load(ctx context.Context) (err error) {
	if c.Op.ClaimEpoch > 1 {
		c.rows, err = steprow.Load(ctx, c.DB().Worker(), c.Op.ID)
	}
	return err
}

// known reports whether the stored steps are those of the kind.
func (c *Context) known() bool {
	own, all := len(c.kind.Steps)+1, c.names()
	if len(c.rows) != own && len(c.rows) != len(all) {
		return false
	}
	for i, row := range c.rows {
		if row.Name != all[i] {
			return false
		}
	}
	return true
}

// names are the names of all steps: the kind's own, the last one, and those that undo.
func (c *Context) names() []string {
	var names []string
	for _, step := range c.kind.Steps {
		names = append(names, step.Name)
	}
	names = append(names, finishStep)
	for _, step := range c.kind.Undo {
		names = append(names, step.Name)
	}
	return names
}

// layOut makes the rows of the steps from the first that has none.
func (c *Context) layOut(names []string) {
	for i := len(c.rows); i < len(names); i++ {
		c.rows = append(c.rows, steprow.New(c.Op.Operation, names[i], i))
	}
}

// Began is when the running step was first tried.
func (c *Context) Began() time.Time {
	if began := c.rows[c.at].StartedAt; began != nil {
		return *began
	}
	return c.Now()
}
