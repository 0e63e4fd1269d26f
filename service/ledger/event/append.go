// Package event is the ledger of what happens to instances, and its feeds.
//
// An event is appended in the transaction that causes it. Within an instance its number has no
// gaps, because the instance's row, which the verb has locked anyway, hands the numbers out. Across
// a project the order is that of commits: see Feed.
package event

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Draft is an event before it has its number.
type Draft struct {
	Type lifecycle.EventType
	// OperationID is the cause and MemberID what it is about; empty for none.
	OperationID, MemberID ids.ID
	// Message is for a person; Payload holds details, never secrets.
	Message string
	Payload map[string]any
	// CorrelationID is the cause's; empty for the instance's own.
	CorrelationID string
}

// Append numbers the drafts and writes them to the instance's timeline, in order and with the commit, and wakes its
// readers after it. It raises instance.Revision.
func Append(ctx context.Context, t *tx.Tx, instance *db.Instance, drafts ...Draft) error {
	return AppendWith(ctx, t, instance, nil, drafts...)
}

// AppendWith is Append for a transaction that also changes columns of the instance's row: both are one update.
func AppendWith(ctx context.Context, t *tx.Tx, instance *db.Instance, columns []Column, drafts ...Draft) error {
	if len(columns)+len(drafts) == 0 {
		return nil
	}
	sql, args := `UPDATE instance SET revision = revision + $2`, []any{instance.ID, len(drafts)}
	sql, args = set(sql, args, t, columns, len(drafts))
	var last int
	if err := t.QueryRow(ctx, sql+` RETURNING revision`, args...).Scan(&last); err != nil {
		return fmt.Errorf("number events of %s: %w", instance.ID, err)
	}
	return queue(t.Last(), t, instance, last, drafts)
}

// Begin is Append for an instance that the transaction has created, with the number of the drafts as its Revision.
func Begin(t *tx.Tx, instance *db.Instance, drafts ...Draft) error {
	if instance.Revision != len(drafts) {
		return fmt.Errorf("%s begins with %d events, and was created for %d", instance.ID, len(drafts),
			instance.Revision)
	}
	return queue(t.Last(), t, instance, instance.Revision, drafts)
}

// Enqueue is Append for a transaction that sends its writes in one batch. It needs the instance's row
// as it is, locked by this transaction, since it counts on its Revision.
func Enqueue(batch *pgx.Batch, t *tx.Tx, instance *db.Instance, drafts ...Draft) error {
	return EnqueueWith(batch, t, instance, nil, drafts...)
}

// Column is a column of an instance's row, with the value that it gets.
type Column struct {
	Name  string
	Value any
}

// EnqueueWith is Enqueue for a transaction that also changes columns of the instance's row: both are one update. A row
// that its own transaction updates a second time is looked up in every table that it refers to, which locks those rows.
func EnqueueWith(batch *pgx.Batch, t *tx.Tx, instance *db.Instance, columns []Column, drafts ...Draft) error {
	if len(columns)+len(drafts) == 0 {
		return nil
	}
	last := instance.Revision + len(drafts)
	sql, args := set(`UPDATE instance SET revision = $2`, []any{instance.ID, last}, t, columns, len(drafts))
	batch.Queue(sql, args...)
	return queue(batch, t, instance, last, drafts)
}

// set completes the update of an instance's row with columns, and with the moment when there are events.
func set(sql string, args []any, t *tx.Tx, columns []Column, events int) (string, []any) {
	if events > 0 {
		columns = append([]Column{{"updated_at", t.Now}}, columns...)
	}
	for _, column := range columns {
		args = append(args, column.Value)
		sql += fmt.Sprintf(", %s = $%d", column.Name, len(args))
	}
	return sql + ` WHERE id = $1`, args
}

// insert writes events of an instance that follow one another, from the number $4 on. Their place in the project's feed
// is not before that of the instance's previous event: a transaction that wrote something else before it waited for the
// instance has an older number than one that wrote the instance's events meanwhile. To take the younger number is safe:
// a reader passes it only once every older transaction has ended, this one among them. Numbers of another generation of
// the database mean nothing here.
const insert = `WITH here AS MATERIALIZED (SELECT platform.generation() AS generation),
	place AS MATERIALIZED (SELECT generation, GREATEST(pg_current_xact_id()::text::bigint, (SELECT xid FROM app_instance_event
		WHERE instance_id = $3 AND seq = $4::bigint - 1 AND generation = here.generation)) AS xid FROM here)
INSERT INTO app_instance_event (tenant_id, project_id, instance_id, app_slug, permission_family, trace_id, occurred_at,
	generation, xid, seq, id, type, operation_id, member_id, message, payload, correlation_id)
SELECT $1, $2, $3, $5, $6, $7, $8, place.generation, place.xid, $4 + e.n - 1, e.id, e.type, nullif(e.operation_id, ''),
	nullif(e.member_id, ''), e.message, e.payload::jsonb, e.correlation_id
FROM place, unnest($9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[])
	WITH ORDINALITY e (id, type, operation_id, member_id, message, payload, correlation_id, n) ORDER BY e.n`

// queue queues the drafts, the last of which has the number last, in one statement, and wakes the instance's readers.
func queue(batch *pgx.Batch, t *tx.Tx, instance *db.Instance, last int, drafts []Draft) error {
	if len(drafts) == 0 {
		return nil
	}
	columns := make([][]string, 7)
	for _, draft := range drafts {
		row, err := draft.row(t, instance)
		if err != nil {
			return err
		}
		for i, value := range row {
			columns[i] = append(columns[i], value)
		}
	}
	args := []any{instance.TenantID, instance.ProjectID, instance.ID, last - len(drafts) + 1, instance.AppSlug,
		instance.PermissionFamily, t.Request.TraceID, t.Now}
	for _, column := range columns {
		args = append(args, column)
	}
	batch.Queue(insert, args...)
	instance.Revision, instance.UpdatedAt = last, t.Now
	t.Wake(InstanceTopic(instance.ID), ProjectTopic(instance.ProjectID))
	return nil
}

// row returns the columns of the draft that insert takes as lists.
func (d Draft) row(t *tx.Tx, instance *db.Instance) ([7]string, error) {
	payload := d.Payload
	if payload == nil {
		payload = map[string]any{}
	}
	encoded, err := json.Marshal(payload)
	if err != nil {
		return [7]string{}, fmt.Errorf("encode an event: %w", err)
	}
	switch d.Type {
	case lifecycle.EventOperationSucceeded, lifecycle.EventOperationFailed, lifecycle.EventOperationCanceled:
		t.Wake(EndedTopic)
	}
	return [7]string{string(ids.New(ids.Event)), string(d.Type), string(d.OperationID), string(d.MemberID), d.Message,
		string(encoded), cmp.Or(d.CorrelationID, instance.CorrelationID)}, nil
}

// Topics name what a reader may wait for.

// InstanceTopic is woken by every event of an instance.
func InstanceTopic(id ids.ID) string { return "i:" + string(id) }

// ProjectTopic is woken by every event in a project.
func ProjectTopic(id ids.ID) string { return "p:" + string(id) }

// OperationTopic is woken by every change of an operation.
func OperationTopic(id ids.ID) string { return "o:" + string(id) }

// WordTopic is woken for an operation's worker: its adapter reported an end, or it was canceled, forced or ended.
func WordTopic(id ids.ID) string { return "w:" + string(id) }

// NodeTopic is woken when a node has something new to do.
func NodeTopic(id ids.ID) string { return "n:" + string(id) }

// NodesTopic is woken when a node comes, or its address changes: every other one's network knows it.
const NodesTopic = "nodes"

// TaskTopic is woken by every change of a node task.
func TaskTopic(id ids.ID) string { return "t:" + string(id) }

// QueueTopic is woken when an operation became due.
const QueueTopic = "q"

// EndedTopic is woken whenever an operation on an instance has ended.
const EndedTopic = "ended"

// FailedTopic is woken whenever a member in service was lost.
const FailedTopic = "failed"
