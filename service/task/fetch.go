package task

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/nodetask"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/kit/supply"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// rules returns the policy that a fetch is checked against; nil for every other kind of task, and where the caller sees
// no member. It is read first of all, since policy is locked before anything below it.
func (in *RunInput) rules(ctx context.Context, t *tx.Tx, spec nodetask.Spec) (*policy.Effective, error) {
	if _, fetches := spec.(*nodetask.FetchArtifact); !fetches || t.Actor.Kind == authz.KindNode ||
		t.Actor.Kind == authz.KindEnrolment {
		return nil, nil
	}
	var tenant, project ids.ID
	err := t.QueryRow(ctx, `SELECT tenant_id, project_id FROM member
		WHERE id = $1`, in.MemberID).Scan((*string)(&tenant),
		(*string)(&project))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load member %s: %w", in.MemberID, err)
	}
	return overlay.Load(ctx, t, tenant, project)
}

// supplied refuses a new task that fetches what its instance may not have. A repeat of a task is not checked: its
// delivery is, when the node opens it.
func supplied(ctx context.Context, t *tx.Tx, rules *policy.Effective, row *db.NodeTask, spec nodetask.Spec) error {
	fetch, fetches := spec.(*nodetask.FetchArtifact)
	if !fetches {
		return nil
	}
	_, err := supply.Find(ctx, t, rules, row.InstanceID, fetch.Digest, "input.spec.digest")
	return audit.Refused(t, "runNodeTask", authz.TaskRun, object(row), row.MemberID, err)
}
