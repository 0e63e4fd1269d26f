package delivery

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbpart "github.com/gpuaas/app-platform/ent/generated/db/artifactpart"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/kit/supply"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

const (
	openAction = "openArtifactDelivery"
	// MaxParts is the most parts that an artifact has.
	MaxParts = 2_048
)

// Open opens the delivery of the artifact that one of the calling node's own open tasks fetches. Key: task.execute on
// the node.
//
// Faults, at taskId: NOT_FOUND when the task does not exist, or the artifact is not there for it any more; CONFLICT
// when the task has ended; FAILED_PRECONDITION when it fetches nothing; ARTIFACT_QUARANTINED; POLICY_DENIED when policy
// does not let the artifact's source through any more; ARTIFACT_UNAVAILABLE when its parts were never noted.
func (s *Service) Open(ctx context.Context, taskID ids.ID) (*Delivery, error) {
	var node *authz.Actor
	var seen *db.NodeTask
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		node = t.Actor
		seen, err = openTask(ctx, t, taskID, "")
		return err
	})
	if err != nil {
		return nil, err
	}
	// What may be had is the platform's to look up: a node sees neither catalog nor policy.
	var out *Delivery
	err = s.DB.As(ctx, node, func(ctx context.Context, t *tx.Tx) error {
		rules, err := overlay.Load(ctx, t, seen.TenantID, seen.ProjectID)
		if err != nil {
			return err
		}
		row, err := openTask(ctx, t, taskID, " FOR SHARE")
		if err != nil {
			return err
		}
		artifact, err := supply.Find(ctx, t, rules, row.InstanceID, digestOf(row), "taskId")
		if err != nil {
			return audit.Refused(t, openAction, authz.TaskExecute, object(row), taskID, err)
		}
		out, err = s.open(ctx, t, row, artifact)
		return err
	})
	return out, err
}

// open writes to the audit that the delivery is opened, and signs the token for it.
func (s *Service) open(ctx context.Context, t *tx.Tx, row *db.NodeTask, artifact *supply.Artifact) (*Delivery, error) {
	parts, err := t.ArtifactPart.Query().Where(dbpart.ArtifactID(artifact.ID)).Order(dbpart.ByPosition()).
		Limit(MaxParts).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the parts of %s: %w", artifact.ID, err)
	}
	if len(parts) == 0 {
		return nil, fault.New(fault.ArtifactUnavailable,
			"the parts of artifact %.80s are not recorded: verify the artifact first", artifact.Digest).
			At("taskId")
	}
	grant := token.Delivery{Task: row.ID, Node: row.NodeID, Artifact: artifact.ID,
		Credential: ids.ID(t.Actor.CredentialID), ExpiresAt: t.Now.Add(token.MaxDeliveryLife)}
	text, err := s.Keys.SignDelivery(grant, t.Now)
	if err != nil {
		return nil, err
	}
	err = audit.Write(ctx, t, audit.Entry{Action: openAction, Key: authz.TaskExecute, Object: object(row),
		ObjectID: row.ID,
		After: map[string]any{"artifact": artifact.ID, "digest": artifact.Digest, "node": row.NodeID,
			"expiresAt": grant.ExpiresAt}})
	return &Delivery{TaskID: row.ID, Digest: artifact.Digest, Kind: artifact.Kind, MediaType: artifact.MediaType,
		Parts: parts,
		URL:   s.URL, Token: text, ExpiresAt: grant.ExpiresAt}, err
}

// openTask loads the caller's task and requires the key. It must fetch an artifact and not have ended.
func openTask(ctx context.Context, t *tx.Tx, id ids.ID, lock string) (*db.NodeTask, error) {
	found, err := t.Query(ctx, `SELECT `+rows.NodeTaskColumns+` FROM node_task WHERE id = $1`+lock, id)
	if err != nil {
		return nil, fmt.Errorf("load node task %s: %w", id, err)
	}
	tasks, err := pgx.CollectRows(found, rows.NodeTask)
	switch {
	case err != nil:
		return nil, fmt.Errorf("load node task %s: %w", id, err)
	case len(tasks) == 0:
		return nil, audit.Missing(t, openAction, authz.TaskExecute, id)
	}
	row := tasks[0]
	if err := audit.Require(t, openAction, authz.TaskExecute, object(row), id); err != nil {
		return nil, err
	}
	switch {
	case row.Kind != lifecycle.TaskFetchArtifact:
		err = fault.New(fault.FailedPrecondition, "task %s does not fetch an artifact: its kind is %s", id,
			row.Kind).At("taskId")
	case row.State.Terminal():
		err = fault.New(fault.Conflict, "task %s has ended as %s", id, row.State).At("taskId").Retry(false)
	}
	return row, audit.Refused(t, openAction, authz.TaskExecute, object(row), id, err)
}

// object is what authorisation looks at in a task.
func object(row *db.NodeTask) authz.Object {
	return authz.Object{TenantID: row.TenantID, ProjectID: row.ProjectID, InstanceID: row.InstanceID,
		NodeID: row.NodeID}
}

// digestOf returns what a task fetches; its specification was checked when the task was requested.
func digestOf(row *db.NodeTask) string {
	var spec struct{ Digest string }
	_ = json.Unmarshal(row.Spec, &spec)
	return spec.Digest
}
