package reference

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
)

// errNotFound says that the caller may not change the instance, or that it does not exist.
var errNotFound = errors.New("not found")

// repairPolicy is the body of PUT /instances/{id}/repair, as the row has it.
type repairPolicy struct {
	Mode           string `json:"mode"`
	Budget         int    `json:"budget"`
	BackOffSeconds int    `json:"backOffSeconds"`
}

// repair sets an instance's policy of repair: the rows that the platform writes for it, in one transaction of two round
// trips and a commit.
func (s *server) repair(w http.ResponseWriter, r *http.Request) {
	var policy repairPolicy
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&policy); err != nil {
		refuse(w, http.StatusBadRequest)
		return
	}
	changed, id := time.Now().UTC(), r.PathValue("id")
	err := pgx.BeginFunc(r.Context(), s.pool, func(t pgx.Tx) error { return setRepair(r, t, id, policy, changed) })
	switch {
	case errors.Is(err, errNotFound):
		refuse(w, http.StatusNotFound)
	case err != nil:
		refuse(w, http.StatusInternalServerError)
	default:
		answer(w, map[string]any{"setRepairPolicy": map[string]string{"id": id, "updatedAt": stamp(changed)}})
	}
}

func setRepair(r *http.Request, t pgx.Tx, id string, policy repairPolicy, changed time.Time) error {
	var who caller
	var tenant, project string
	var before []byte
	batch := &pgx.Batch{}
	if !enter(batch, r, &who) {
		return errNotFound
	}
	batch.Queue(`SELECT tenant_id, project_id, repair FROM instance WHERE id = $1 AND released_at IS NULL
		FOR UPDATE`, id).
		QueryRow(func(row pgx.Row) error { return row.Scan(&tenant, &project, &before) })
	if err := t.SendBatch(r.Context(), batch).Close(); errors.Is(err, pgx.ErrNoRows) {
		return errNotFound
	} else if err != nil {
		return err
	}
	if !who.may(project) {
		return errNotFound
	}
	return writeRepair(r.Context(), t, &who, [3]string{id, tenant, project}, before, policy, changed)
}

// writeRepair is the second round trip; of is the instance with its tenant and project.
func writeRepair(ctx context.Context, t pgx.Tx, who *caller, of [3]string, before []byte, policy repairPolicy,
	changed time.Time) error {
	after, err := json.Marshal(policy)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	batch.Queue(`UPDATE instance SET repair = $2, repair_stopped = '', updated_at = $3 WHERE id = $1`, of[0], after,
		changed)
	batch.Queue(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, actor_name, permission_key,
		action, allowed, object_id, instance_id, before, after, correlation_id, created_at)
		VALUES ($1, $2, $3, 'USER', $4, $5, 'apps.instance.update', 'setRepairPolicy', true, $6, $6, $7, $8, $9, $10)`,
		ids.New(ids.Audit), of[1], of[2], who.id, who.name, of[0], before, after, of[0], changed)
	return t.SendBatch(ctx, batch).Close()
}
