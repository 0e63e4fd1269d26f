package operation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// The part of an operation's percentage that is the adapter's own.
const adapterFrom, adapterTo = 10, 80

// AdapterPercent places the adapter's own percentage, 0 to 100, in the operation's.
func AdapterPercent(percent int) int {
	return adapterFrom + (adapterTo-adapterFrom)*min(max(percent, 0), 100)/100
}

// Progress is how far an operation is. Its percentage never goes back.
type Progress struct {
	Phase, Message string
	Percent        int
	// First says that its first dispatch is about to be sent: the attempt is recorded with the progress, in one update.
	First bool
}

// Advance stores progress on the locked operation, wakes its watchers, and writes it to the timeline of the locked
// instance, but not more often than lifecycle.Pause allows.
func Advance(ctx context.Context, t *tx.Tx, instance *db.Instance, op *db.Operation, p Progress) error {
	batch := &pgx.Batch{}
	drafts := QueueAdvance(batch, t, instance, op, p)
	if batch.Len() == 0 {
		return nil
	}
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("advance %s: %w", op.ID, err)
	}
	return event.Append(ctx, t, instance, drafts...)
}

// QueueAdvance queues what Advance writes, and returns the events for the timeline.
func QueueAdvance(batch *pgx.Batch, t *tx.Tx, instance *db.Instance, op *db.Operation, p Progress) []event.Draft {
	first := p.First
	if p = p.within(op); !first && p == (Progress{Phase: op.Phase, Message: op.Message, Percent: op.Percent}) {
		return nil
	}
	told, untold := p.noted(t, instance, op)
	batch.Queue(`UPDATE operation SET phase = $2, message = $3, percent = GREATEST(percent, $4),
		untold = coalesce($5, untold),
		dispatch_attempt = CASE WHEN $6 THEN GREATEST(dispatch_attempt, 1) ELSE dispatch_attempt END WHERE id = $1`,
		op.ID, p.Phase, p.Message, p.Percent, untold, first)
	return told
}

// within is the progress in its bounds, and never behind what the operation has reached.
func (p Progress) within(op *db.Operation) Progress {
	return Progress{Phase: Clip(p.Phase, maxReportPhase), Message: Clip(p.Message, maxText),
		Percent: max(p.Percent, op.Percent)}
}

// noted is the events for the timeline of progress that is stored. None when it is where the operation was, or when the
// instance had an event just before: then untold is true, so that TellLast writes it once the instance is quiet. untold
// is nil when it stays as it is.
func (p Progress) noted(t *tx.Tx, instance *db.Instance, op *db.Operation) (told []event.Draft, untold *bool) {
	t.Wake(event.OperationTopic(op.ID))
	if p == (Progress{Phase: op.Phase, Message: op.Message, Percent: op.Percent}) {
		return nil, nil
	}
	line, failedTry := p.Phase != op.Phase || p.Message != op.Message, strings.HasSuffix(p.Message, TriedAgain)
	pause := lifecycle.Pause(p.Phase != op.Phase, p.Message != op.Message, failedTry)
	op.Phase, op.Message, op.Percent = p.Phase, p.Message, p.Percent
	held := instance != nil && t.Now.Sub(instance.UpdatedAt) < pause
	news := held && !failedTry // that a try failed is no news of the work
	switch {
	case instance == nil || held && !line:
		return nil, nil
	case held:
		return nil, &news
	}
	return []event.Draft{p.event(op)}, &news
}

// event is the event of the operation's progress.
func (p Progress) event(op *db.Operation) event.Draft {
	return event.Draft{
		Type: lifecycle.EventOperationProgress, OperationID: op.ID, Message: p.Message, CorrelationID: op.CorrelationID,
		Payload: map[string]any{"phase": p.Phase, "percent": p.Percent},
	}
}

// TellLast writes the progress of an operation that is untold to the timeline of the locked instance, unless the
// operation has ended or it was written meanwhile.
func TellLast(ctx context.Context, t *tx.Tx, instance *db.Instance, id ids.ID) error {
	op, p := &db.Operation{ID: id}, Progress{}
	err := t.QueryRow(ctx, `UPDATE operation SET untold = false WHERE id = $1 AND untold AND ended_at IS NULL
		RETURNING phase, message, percent, correlation_id`, id).Scan(&p.Phase, &p.Message, &p.Percent,
		&op.CorrelationID)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("report the last progress of %s: %w", id, err)
	}
	return event.Append(ctx, t, instance, p.event(op))
}

// StoredStatus is the last status the adapter gave for the current dispatch; nil when it gave none.
func StoredStatus(op *db.Operation) *adapter.Status {
	var status adapter.Status
	if len(op.AdapterStatus) == 0 || json.Unmarshal(op.AdapterStatus, &status) != nil ||
		status.Attempt < op.DispatchAttempt {
		return nil
	}
	return &status
}

// Absorb takes a status that a worker got from the adapter, by the feed or by a request, into the locked operation and
// its members. A status of an earlier dispatch is left out, and an end is final for its dispatch. It returns whether
// the adapter reports that the operation ended.
func Absorb(ctx context.Context, t *tx.Tx, instance *db.Instance, op *db.Operation,
	status adapter.Status) (bool, error) {
	batch := &pgx.Batch{}
	ended, told, err := QueueAbsorb(batch, t, instance, op, status, "")
	if err != nil || batch.Len() == 0 {
		return ended, err
	}
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return false, fmt.Errorf("store the status of %s: %w", op.ID, err)
	}
	if err := event.Append(ctx, t, instance, told...); err != nil {
		return false, err
	}
	return ended, Members(ctx, t, instance, op, memberReports(status.Members))
}

// QueueAbsorb queues what Absorb writes, but for the members, and returns the events for the timeline. It queues
// nothing for a status of another attempt than the last, or after a reported end. An operation that the adapter reports
// ended is made due, and the worker that holds it is woken. If that is the worker here, it is woken but the operation
// is not made due, so that the row stays out of all indexes: its release checks for an end that was reported meanwhile.
func QueueAbsorb(batch *pgx.Batch, t *tx.Tx, instance *db.Instance, op *db.Operation,
	status adapter.Status, here ids.ID) (ended bool, told []event.Draft, err error) {
	if status.Attempt < op.DispatchAttempt || status.Attempt > max(op.DispatchAttempt, 1) || op.EndedAt != nil {
		return false, nil, nil
	}
	if known := StoredStatus(op); known != nil && known.State.Terminal() {
		return true, nil, nil
	}
	ended = status.State.Terminal()
	progress := Progress{Phase: op.Phase, Message: op.Message, Percent: AdapterPercent(status.Percent)}
	if status.Phase != "" {
		progress.Phase = status.Phase
	}
	if status.Message != "" {
		progress.Message = status.Message
	} else if strings.HasSuffix(op.Message, TriedAgain) { // the adapter answers: what was tried again is no longer so
		progress.Message = cmp.Or(status.Phase, "the adapter works on it")
	}
	progress = progress.within(op)
	status.Members = mergeReports(op, status.Members) // the rest is kept on the members' rows
	status.WaitsFor = status.WaitsFor[:min(len(status.WaitsFor), adapter.MaxWork)]
	encoded, err := json.Marshal(status)
	if err != nil {
		return false, nil, fmt.Errorf("encode the status of %s: %w", op.ID, err)
	}
	encoded = Storable(encoded)
	told, untold := progress.noted(t, instance, op)
	batch.Queue(`UPDATE operation SET adapter_status = $2, phase = $3, message = $4, percent = GREATEST(percent, $5),
		next_run_at = CASE WHEN $6 THEN LEAST(next_run_at, $7) ELSE next_run_at END, untold = coalesce($8, untold)
		WHERE id = $1`,
		op.ID, encoded, progress.Phase, progress.Message, progress.Percent, ended && !holds(here, op), t.Now, untold)
	op.AdapterStatus = encoded
	if ended {
		t.Wake(event.WordTopic(op.ID))
	}
	return ended, told, nil
}

// holds reports whether a worker holds the operation.
func holds(worker ids.ID, op *db.Operation) bool {
	return worker != "" && op.ClaimedBy != nil && *op.ClaimedBy == worker
}

func storeStatus(ctx context.Context, t *tx.Tx, op *db.Operation, status adapter.Status) error {
	encoded, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encode the status of %s: %w", op.ID, err)
	}
	encoded = Storable(encoded)
	if _, err := t.Exec(ctx, `UPDATE operation SET adapter_status = $2 WHERE id = $1`, op.ID, encoded); err != nil {
		return fmt.Errorf("store the status of %s: %w", op.ID, err)
	}
	op.AdapterStatus = encoded
	return nil
}

// mergeStatus notes a pushed report in the stored status, which keeps its state.
func mergeStatus(ctx context.Context, t *tx.Tx, op *db.Operation, in ReportInput) error {
	status := StoredStatus(op)
	if status == nil {
		status = &adapter.Status{OperationID: string(op.ID), Attempt: in.Attempt, State: adapter.StateRunning}
	}
	if status.State.Terminal() {
		return nil
	}
	if in.Phase != nil {
		status.Phase = *in.Phase
	}
	if in.Percent != nil {
		status.Percent = *in.Percent
	}
	if in.Message != nil {
		status.Message = *in.Message
	}
	status.Members = mergeReports(op, updatesOf(in.Members))
	return storeStatus(ctx, t, op, *status)
}

// mergeReports is the newest report on each of the members that an operation is about, without details: what its end
// may rest on. Nothing for an operation on a whole instance.
func mergeReports(op *db.Operation, updates []adapter.MemberUpdate) []adapter.MemberUpdate {
	if len(op.Targets) == 0 {
		return nil
	}
	about, words := Touched(op), make(map[ids.ID]adapter.MemberUpdate)
	if known := StoredStatus(op); known != nil {
		updates = append(known.Members, updates...)
	}
	for _, update := range updates {
		update.Detail = nil
		words[ids.ID(update.ID)] = update
	}
	var out []adapter.MemberUpdate
	for _, id := range about {
		if word, said := words[id]; said {
			out = append(out, word)
		}
	}
	return out
}

// ReportedStatus is the status of the members that an operation is about, as the adapter reported it for the current
// dispatch; a member without a report is missing.
func ReportedStatus(op *db.Operation) map[ids.ID]adapter.MemberStatus {
	said := make(map[ids.ID]adapter.MemberStatus)
	if status := StoredStatus(op); status != nil {
		for _, update := range status.Members {
			said[ids.ID(update.ID)] = update.Status
		}
	}
	return said
}

func updatesOf(reports []MemberReport) []adapter.MemberUpdate {
	var updates []adapter.MemberUpdate
	for _, report := range reports {
		if report.Status != nil {
			updates = append(updates, adapter.MemberUpdate{ID: string(report.ID),
				Status: adapter.MemberStatus(lifecycle.Wire(*report.Status))})
		}
	}
	return updates
}

// memberReports reads the wire's members; a value outside of the contract is left nil.
func memberReports(updates []adapter.MemberUpdate) []MemberReport {
	var reports []MemberReport
	for _, update := range updates {
		report := MemberReport{ID: ids.ID(update.ID), Detail: update.Detail}
		if status, err := lifecycle.FromWire[lifecycle.MemberStatus](string(update.Status)); err == nil {
			report.Status = &status
		}
		if health, err := lifecycle.FromWire[lifecycle.Health](string(update.Health)); err == nil {
			report.Health = &health
		}
		reports = append(reports, report)
	}
	return reports
}

// Storable is JSON from outside as PostgreSQL keeps it: valid UTF-8, and no escaped NUL.
func Storable(raw []byte) []byte {
	raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	return bytes.ReplaceAll(raw, []byte(`\u0000`), []byte(`\ufffd`))
}
