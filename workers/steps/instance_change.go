package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/parts"
)

// change brings an instance to another version and config: an upgrade, or a rollback to what it ran
// before. It succeeds only when the agents' probes of the manifest it leads to pass on every member. If
// it fails, nothing is taken away, the instance counts as what it was, and an event states how to go back.
func (w *work) change(kind lifecycle.OperationKind) engine.Kind {
	return engine.Kind{
		Kind:     kind,
		Steps:    []engine.Step{w.asPlanned(w.prepareChange()), w.dispatch(), w.Await(), w.Verify(nil)},
		Complete: w.moved,
		OnFail:   w.notMoved,
		Undo:     []engine.Step{w.Withdraw()},
		Cancel:   w.Stop,
	}
}

func (w *work) prepareChange() engine.Step {
	return engine.Step{
		Name: "prepare", Title: "checking the instance", Percent: 5, Owner: operation.OwnerPlatform,
		Run: func(ctx context.Context, c *engine.Context) (engine.Result, error) {
			result := engine.Done(nil)
			err := c.Write(ctx, func(_ context.Context, _ *tx.Tx, locked *engine.Locked) error {
				if locked.Instance.Status != lifecycle.InstanceRunning || operation.PrivateOf(locked.Op).To == nil {
					result = engine.Fail(operation.Failure{Code: string(fault.FailedPrecondition),
						Owner:   operation.OwnerUser,
						Message: "the instance is " + lifecycle.Wire(locked.Instance.Status)})
					return nil
				}
				locked.Writes.Queue(`UPDATE operation SET dispatch_attempt = 1 WHERE id = $1 AND dispatch_attempt = 0`,
					locked.Op.ID)
				locked.Op.DispatchAttempt = max(locked.Op.DispatchAttempt, 1)
				return nil
			})
			return result, err
		},
	}
}

// changeEvidence proves an upgrade or a rollback: where it leads, the agents' probes of it, and the
// adapter's own evidence.
type changeEvidence struct {
	Generation int                        `json:"generation"`
	Version    string                     `json:"version"`
	Rounds     int                        `json:"rounds"`
	Probes     []parts.ProbeProof         `json:"probes"`
	Adapter    map[string]json.RawMessage `json:"adapter,omitempty"`
}

// moved records the new generation.
func (w *work) moved(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked) (any, string, error) {
	to := operation.PrivateOf(locked.Op).To
	if to == nil {
		return nil, "", errors.New("the operation has no target version")
	}
	number, err := nextGeneration(ctx, t, locked, to)
	if err != nil {
		return nil, "", err
	}
	proof, err := proofOfJoin(c, nil)
	evidence := changeEvidence{Generation: number, Version: to.Version, Rounds: proof.Rounds, Probes: proof.Probes,
		Adapter: proof.Adapter}
	return evidence, fmt.Sprintf("runs version %s as generation %d", to.Version, number), err
}

func nextGeneration(ctx context.Context, t *tx.Tx, locked *engine.Locked, to *operation.Version) (number int,
	err error) {
	in := locked.Instance
	config := to.Config
	if len(config) == 0 {
		config = json.RawMessage("{}")
	}
	batch := &pgx.Batch{}
	batch.Queue(`INSERT INTO instance_generation (id, tenant_id, project_id, instance_id, number, manifest_id,
		app_version, config, operation_id, created_at)
		SELECT $1, $2, $3, $4, coalesce(max(number), 0) + 1, $5, $6, $7, $8, $9 FROM instance_generation
		WHERE instance_id = $4 RETURNING number`,
		ids.New(ids.Generation), in.TenantID, in.ProjectID, in.ID, to.ManifestID, to.Version, []byte(config),
		locked.Op.ID,
		t.Now).
		QueryRow(func(row pgx.Row) error { return row.Scan(&number) })
	batch.Queue(`UPDATE instance SET manifest_id = $2, app_version = $3, config = $4,
		generation = (SELECT max(number) FROM instance_generation WHERE instance_id = $1), failure_code = '', failure_message
		= '',
		failure_owner = '', failure_retryable = false WHERE id = $1`, in.ID, to.ManifestID, to.Version, []byte(config))
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return 0, fmt.Errorf("record a generation of %s: %w", in.ID, err)
	}
	t.Wake(event.InstanceTopic(in.ID), event.ProjectTopic(in.ProjectID))
	return number, nil
}

// notMoved emits how to bring the instance back to the generation that it counts as.
func (w *work) notMoved(_ context.Context, _ *tx.Tx, _ *engine.Context, locked *engine.Locked,
	failure operation.Failure) error {
	if locked.Op.DispatchAttempt == 0 {
		return nil
	}
	locked.Emit(event.Draft{Type: lifecycle.EventInstanceDegraded,
		Message: fmt.Sprintf("part of it may run as the %s requested; a rollback to generation %d restores all of it",
			changeWord(locked.Op.Kind), locked.Instance.Generation),
		Payload: map[string]any{"code": failure.Code, "generation": locked.Instance.Generation,
			"version": locked.Instance.AppVersion}})
	return nil
}

func changeWord(kind lifecycle.OperationKind) string {
	if kind == lifecycle.InstanceRollback {
		return "rollback"
	}
	return "upgrade"
}
