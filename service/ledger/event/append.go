// Package event is the ledger of what happens to instances, and its feeds.
//
// An event is appended in the transaction that causes it. Within an instance its number has no
// gaps, because the instance's row, which the verb has locked anyway, hands the numbers out. Across
// a project the order is that of commits: see Feed.
package event

import (
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
	if len(drafts) == 0 {
		return nil
	}
	var last int
	err := t.QueryRow(ctx, `UPDATE instance SET revision = revision + $2, updated_at = $3 WHERE id = $1
		RETURNING revision`,
		instance.ID, len(drafts), t.Now).Scan(&last)
	if err != nil {
		return fmt.Errorf("number events of %s: %w", instance.ID, err)
	}
	for i, draft := range drafts {
		if err := draft.queue(t.Last(), t, instance, last-len(drafts)+1+i); err != nil {
			return err
		}
	}
	instance.Revision, instance.UpdatedAt = last, t.Now
	t.Wake(InstanceTopic(instance.ID), ProjectTopic(instance.ProjectID))
	return nil
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
	sql, args := `UPDATE instance SET revision = $2`, []any{instance.ID, last}
	if len(drafts) > 0 {
		columns = append(columns[:len(columns):len(columns)], Column{"updated_at", t.Now})
	}
	for _, column := range columns {
		args = append(args, column.Value)
		sql += fmt.Sprintf(", %s = $%d", column.Name, len(args))
	}
	batch.Queue(sql+` WHERE id = $1`, args...)
	if len(drafts) == 0 {
		return nil
	}
	for i, draft := range drafts {
		if err := draft.queue(batch, t, instance, instance.Revision+1+i); err != nil {
			return err
		}
	}
	instance.Revision, instance.UpdatedAt = last, t.Now
	t.Wake(InstanceTopic(instance.ID), ProjectTopic(instance.ProjectID))
	return nil
}

// insert places an event in its project's feed no earlier than the instance's event before it. A transaction
// that wrote something else before it waited for the instance has an older number than one that told of the
// instance meanwhile. To take the younger's number is safe: a reader passes it only once every older
// transaction has ended, this one among them. Numbers of another generation of the database mean nothing here.
const insert = `INSERT INTO app_instance_event (id, tenant_id, project_id, instance_id, seq, type, app_slug,
	permission_family,
	operation_id, member_id, message, payload, correlation_id, trace_id, occurred_at, xid)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, nullif($9, ''), nullif($10, ''), $11, $12, $13, $14, $15,
	GREATEST(pg_current_xact_id()::text::bigint, (SELECT xid FROM app_instance_event WHERE instance_id = $4
	AND seq = $5::bigint - 1
		AND generation = platform.generation())))`

func (d Draft) queue(batch *pgx.Batch, t *tx.Tx, instance *db.Instance, seq int) error {
	payload := d.Payload
	if payload == nil {
		payload = map[string]any{}
	}
	encoded, err := json.Marshal(payload)
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	correlation := d.CorrelationID
	if correlation == "" {
		correlation = instance.CorrelationID
	}
	batch.Queue(insert, ids.New(ids.Event), instance.TenantID, instance.ProjectID, instance.ID, seq, string(d.Type),
		instance.AppSlug, instance.PermissionFamily, d.OperationID, d.MemberID, d.Message, encoded, correlation,
		t.Request.TraceID, t.Now)
	switch d.Type {
	case lifecycle.EventOperationSucceeded, lifecycle.EventOperationFailed, lifecycle.EventOperationCanceled:
		t.Wake(EndedTopic)
	}
	return nil
}

// Topics name what a reader may wait for.

// InstanceTopic is woken by every event of an instance.
func InstanceTopic(id ids.ID) string { return "i:" + string(id) }

// ProjectTopic is woken by every event in a project.
func ProjectTopic(id ids.ID) string { return "p:" + string(id) }

// OperationTopic is woken by every change of an operation.
func OperationTopic(id ids.ID) string { return "o:" + string(id) }

// WordTopic is woken when an operation's adapter has said how it ended.
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
