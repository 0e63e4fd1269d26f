// Package steprow stores the steps of an operation: a Row is a step in memory, with what is not stored of it yet.
package steprow

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Row is a step as it is stored, with what is not stored yet.
type Row struct {
	*db.OperationStep
	// Stored is the state that the database has; empty until the row exists.
	Stored lifecycle.StepState
	// Dirty says that something of the step is not stored.
	Dirty bool
}

// New makes a step of an operation, which has no row yet.
func New(op *db.Operation, name string, ordinal int) *Row {
	return &Row{OperationStep: &db.OperationStep{
		ID: ids.New(ids.OperationStep), TenantID: op.TenantID, ProjectID: op.ProjectID, OperationID: op.ID,
		Name: name, Ordinal: ordinal, State: lifecycle.StepPending,
	}}
}

// Load reads the steps of an operation that are stored, in their order.
func Load(ctx context.Context, pool *pgxpool.Pool, op ids.ID) ([]*Row, error) {
	found, err := pool.Query(ctx, `SELECT `+rows.OperationStepColumns+
		` FROM operation_step WHERE operation_id = $1 ORDER BY ordinal`, op)
	if err != nil {
		return nil, fmt.Errorf("load the steps of %s: %w", op, err)
	}
	stored, err := pgx.CollectRows(found, rows.OperationStep)
	if err != nil {
		return nil, fmt.Errorf("load the steps of %s: %w", op, err)
	}
	list := make([]*Row, 0, len(stored))
	for _, row := range stored {
		list = append(list, &Row{OperationStep: row, Stored: row.State})
	}
	return list, nil
}

// Over reports whether nothing is left to do of the step.
func (r *Row) Over() bool {
	return r.State == lifecycle.StepSucceeded || r.State == lifecycle.StepSkipped
}

// Proves reports whether the step has reached its end once, though it may have been undone since.
func (r *Row) Proves() bool {
	return r.State == lifecycle.StepSucceeded || r.State == lifecycle.StepUndoing || r.State == lifecycle.StepUndone
}

// Notes is what a step's evidence column holds while the step is under way.
type Notes struct {
	State json.RawMessage `json:"state,omitempty"`
	Waits *Waits          `json:"waitsFor,omitempty"`
}

// Waits is what the operation fails with when the deadline comes before what the step waits for.
type Waits struct {
	Code  fault.Code `json:"code"`
	Owner string     `json:"owner"`
}

// Notes returns what the step has noted while under way.
func (r *Row) Notes() Notes {
	var n Notes
	if len(r.Evidence) > 0 {
		_ = json.Unmarshal(r.Evidence, &n) // written by Note alone
	}
	return n
}

// Note changes what the step has noted.
func (r *Row) Note(change func(n *Notes)) error {
	n := r.Notes()
	change(&n)
	encoded, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if string(encoded) == string(r.Evidence) {
		return nil
	}
	r.Evidence, r.Dirty = encoded, true
	return nil
}

// Queue queues what is not stored yet of all steps.
func Queue(batch *pgx.Batch, list []*Row) {
	insert(batch, list)
	for _, row := range list {
		row.queue(batch)
	}
}

// Kept notes that all steps are stored as they are.
func Kept(list []*Row) {
	for _, row := range list {
		row.Stored, row.Dirty = row.State, false
	}
}

// Snapshot returns what restores the steps to what they are now, and answers them.
func Snapshot(list []*Row) (restore func() []*Row) {
	list = list[:len(list):len(list)]
	values, steps := make([]Row, len(list)), make([]db.OperationStep, len(list))
	for i, row := range list {
		values[i], steps[i] = *row, *row.OperationStep
	}
	return func() []*Row {
		for i, row := range list {
			*row.OperationStep = steps[i]
			row.Stored, row.Dirty = values[i].Stored, values[i].Dirty
		}
		return list
	}
}

// insert queues the first storing of all steps that have no row yet, in one statement.
func insert(batch *pgx.Batch, list []*Row) {
	sql := `INSERT INTO operation_step (id, tenant_id, project_id, operation_id, name, ordinal, state, attempt, message,
		evidence, started_at, ended_at) VALUES `
	var args []any
	for _, r := range list {
		if r.Stored != "" {
			continue
		}
		if len(args) > 0 {
			sql += ", "
		}
		sql += "("
		values := []any{r.ID, r.TenantID, r.ProjectID, r.OperationID, r.Name, r.Ordinal, r.State, r.Attempt, r.Message,
			r.Evidence, r.StartedAt, r.EndedAt}
		for j := range values {
			if j > 0 {
				sql += ", "
			}
			sql += "$" + strconv.Itoa(len(args)+j+1)
		}
		sql += ")"
		args = append(args, values...)
	}
	if len(args) > 0 {
		batch.Queue(sql, args...)
	}
}

// queue queues what is not stored yet of a step that has a row, by legal moves only.
func (r *Row) queue(batch *pgx.Batch) {
	if !r.Dirty || r.Stored == "" {
		return
	}
	for _, between := range r.detour() {
		batch.Queue(`UPDATE operation_step SET state = $2 WHERE id = $1`, r.ID, between)
	}
	batch.Queue(`UPDATE operation_step SET state = $2, attempt = $3, message = $4, evidence = $5, started_at = $6,
		ended_at = $7 WHERE id = $1`,
		r.ID, r.State, r.Attempt, r.Message, r.Evidence, r.StartedAt, r.EndedAt)
}

// detour returns the states between the stored one and the new one, where the table of states has no straight way.
func (r *Row) detour() []lifecycle.StepState {
	switch {
	case r.State == r.Stored || r.Stored.CanMove(r.State) == nil:
		return nil
	case r.Stored == lifecycle.StepPending:
		return []lifecycle.StepState{lifecycle.StepRunning}
	case r.Stored == lifecycle.StepSucceeded: // its evidence does not hold any more
		return []lifecycle.StepState{lifecycle.StepUndoing, lifecycle.StepFailed}
	}
	return nil
}
