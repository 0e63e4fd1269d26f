package steprow

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/sdk/optrace"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Whole returns the whole trace of an operation that has ended, as its rows have it; nil while it has not.
func Whole(ctx context.Context, pool *pgxpool.Pool, id ids.ID) (*optrace.Operation, error) {
	op, err := operation.Ended(ctx, pool, id)
	if err != nil || op == nil {
		return nil, err
	}
	steps, err := Load(ctx, pool, id)
	if err != nil {
		return nil, err
	}
	whole := &optrace.Operation{ID: string(op.ID), Kind: string(op.Kind), State: string(op.State),
		CorrelationID: op.CorrelationID, ProjectID: string(op.ProjectID), ErrorCode: op.ErrorCode,
		ErrorOwner: op.ErrorOwner, CreatedAt: op.CreatedAt, EndedAt: *op.EndedAt}
	if op.InstanceID != nil {
		whole.InstanceID = string(*op.InstanceID)
	}
	for _, step := range steps {
		whole.Steps = append(whole.Steps, optrace.Step{Name: step.Name, State: string(step.State),
			Attempt: step.Attempt, StartedAt: step.StartedAt, EndedAt: step.EndedAt})
	}
	return whole, nil
}
