package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/supply"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

const (
	// maxProgress is the largest number of bytes that a report may give: what a JSON number holds exactly.
	maxProgress = 1<<53 - 1
	// tellSteps is in how many steps the progress of a fetch reaches the timeline, and tellPause the shortest pause
	// between two of them.
	tellSteps = 10
	tellPause = 2 * time.Second
	// tellBack is how many of an instance's newest events are searched for the step before. Where more than these come
	// within the pause, one step too many on the timeline does no harm.
	tellBack = 256
)

// errTold rolls back the node's own transaction: a node may not write the timeline.
var errTold = errors.New("the report has to be written to the instance's timeline")

// checkProgress refuses malformed progress, and progress of a task that does not run.
func (in *ReportInput) checkProgress() error {
	for path, said := range map[string]*float64{"input.progressDone": in.ProgressDone,
		"input.progressTotal": in.ProgressTotal} {
		switch {
		case said == nil:
		case in.State != lifecycle.TaskRunning:
			return fault.New(fault.InvalidArgument, "progress can be reported only while the task runs").At(path)
		case *said < 0 || *said > maxProgress || *said != math.Trunc(*said): // NaN is none of them and equals nothing
			return fault.New(fault.InvalidArgument, "progress is a whole number of bytes, 0 to %d",
				int64(maxProgress)).At(path)
		}
	}
	if in.ProgressDone != nil && in.ProgressTotal != nil && *in.ProgressTotal > 0 &&
		*in.ProgressDone > *in.ProgressTotal {
		return fault.New(fault.InvalidArgument, "progressDone is more than progressTotal").At("input.progressDone")
	}
	return nil
}

// progress returns how far the task is with this report: never less than before, even if it is late; all on success.
func (in *ReportInput) progress(row *db.NodeTask) (done, total int64) {
	done, total = row.ProgressDone, row.ProgressTotal
	if in.ProgressTotal != nil && *in.ProgressTotal > 0 {
		total = int64(*in.ProgressTotal)
	}
	if in.ProgressDone != nil {
		done = max(done, int64(*in.ProgressDone))
	}
	if in.State == lifecycle.TaskSucceeded {
		done = max(done, total)
	}
	return done, total
}

// further reports whether the report advances a task that has not ended.
func (in *ReportInput) further(row *db.NodeTask) bool {
	done, total := in.progress(row)
	return !row.State.Terminal() && (done != row.ProgressDone || total != row.ProgressTotal)
}

// told reports whether a report goes to the instance's timeline: the first that gives a fetch's size, each that
// completes another tenth of it, and its success.
func told(row *db.NodeTask, in ReportInput) bool {
	if row.Kind != lifecycle.TaskFetchArtifact || row.State.Terminal() {
		return false
	}
	done, total := in.progress(row)
	switch in.State {
	case lifecycle.TaskSucceeded:
		return true
	case lifecycle.TaskRunning:
		return total > 0 && (row.ProgressTotal == 0 || step(done, total) > step(row.ProgressDone, row.ProgressTotal))
	}
	return false
}

// step is how many of the steps are done.
func step(done, total int64) int64 {
	return int64(float64(min(done, total)) / float64(total) * tellSteps)
}

// tell takes the report and writes it to the instance's timeline, in one transaction. The agent is authenticated and
// may report this task; the platform writes the timeline.
func (s *Service) tell(ctx context.Context, agent *authz.Actor, in ReportInput) (out *db.NodeTask, err error) {
	err = s.DB.As(ctx, agent, func(ctx context.Context, t *tx.Tx) error {
		var of ids.ID // a task never changes its instance
		if err := t.QueryRow(ctx, `SELECT instance_id FROM node_task WHERE id = $1`,
			in.TaskID).Scan((*string)(&of)); err != nil {
			return fmt.Errorf("load node task %s: %w", in.TaskID, err)
		}
		instance, err := t.Instance.Query().Where(dbinstance.ID(of)).ForUpdate().Only(ctx)
		if err != nil {
			return fmt.Errorf("lock the instance of node task %s: %w", in.TaskID, err)
		}
		row, err := in.lock(ctx, t)
		if err != nil {
			return err
		}
		tells := told(row, in) // another report may have come before it
		if out, err = in.take(ctx, t, row); err != nil || !tells {
			return err
		}
		draft, err := in.draft(ctx, t, out)
		if err != nil || draft == nil {
			return err
		}
		return event.Append(ctx, t, instance, *draft)
	})
	return out, err
}

// draft returns the event for the task as it is now; nil while it runs and its last event is younger than tellPause.
func (in *ReportInput) draft(ctx context.Context, t *tx.Tx, row *db.NodeTask) (*event.Draft, error) {
	if in.State == lifecycle.TaskRunning {
		var lately bool
		err := t.QueryRow(ctx, `SELECT EXISTS (SELECT FROM app_instance_event e WHERE e.instance_id = $1
			AND e.seq > (SELECT revision FROM instance WHERE id = $1) - $2 AND e.type = $3 AND e.payload->>'taskId' = $4
			AND e.occurred_at > $5)`,
			row.InstanceID, tellBack, string(lifecycle.EventArtifactFetching), row.ID, t.Now.Add(-tellPause)).
			Scan(&lately)
		if err != nil {
			return nil, fmt.Errorf("find the events of node task %s: %w", row.ID, err)
		}
		if lately {
			return nil, nil
		}
	}
	var spec struct{ Digest string }
	if err := json.Unmarshal(row.Spec, &spec); err != nil {
		return nil, fmt.Errorf("read the spec of node task %s: %w", row.ID, err)
	}
	found, err := supply.Look(ctx, t, row.InstanceID, spec.Digest)
	if err != nil {
		return nil, err
	}
	name := spec.Digest
	if found != nil && found.Name != "" {
		name = found.Name
	}
	out := &event.Draft{Type: lifecycle.EventArtifactFetching, MemberID: row.MemberID, Payload: map[string]any{
		"taskId": row.ID, "memberId": row.MemberID, "digest": spec.Digest, "name": name, "done": row.ProgressDone,
		"total": row.ProgressTotal}}
	if row.OperationID != nil {
		out.OperationID = *row.OperationID
	}
	if in.State == lifecycle.TaskRunning {
		out.Message = fmt.Sprintf("fetches %s: %d %%", name, 100*step(row.ProgressDone, row.ProgressTotal)/tellSteps)
		return out, nil
	}
	var came struct {
		Bytes  float64
		Cached bool
	}
	_ = json.Unmarshal(in.Result, &came) // the agent's own words: what it does not say is not told
	out.Type, out.Message = lifecycle.EventArtifactFetched, "has fetched "+name
	if came.Cached {
		out.Message = "had " + name + " already"
	}
	out.Payload["bytes"], out.Payload["cached"] = came.Bytes, came.Cached
	return out, nil
}
