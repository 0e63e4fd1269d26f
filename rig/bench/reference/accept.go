package reference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
)

// Launch is the body of POST /launch.
type Launch struct{ Project, Allocation, Name, Key string }

// launchDeadline is how long an operation may take.
const launchDeadline = 10 * time.Minute

// launch accepts a launch: the rows that the platform writes for one, in one transaction of two
// round trips and a commit.
func (s *server) launch(w http.ResponseWriter, r *http.Request) {
	var in Launch
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<10)).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest)
		return
	}
	var operation ids.ID
	err := pgx.BeginFunc(r.Context(), s.pool, func(t pgx.Tx) (err error) {
		operation, err = accept(r, t, in)
		return err
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	s.loop.accepted(operation)
	answer(w, map[string]any{"operation": operation})
}

// facts are what a launch rests on.
type facts struct {
	tenant, node, manifest, adapter string
	held                            *string
}

func accept(r *http.Request, t pgx.Tx, in Launch) (ids.ID, error) {
	var who caller
	var f facts
	batch := &pgx.Batch{}
	if !enter(batch, r, &who) {
		return "", errors.New("a credential is required")
	}
	batch.Queue(`SELECT a.tenant_id, a.node_id, a.instance_id, m.id, m.adapter_name FROM allocation a
		JOIN manifest m ON m.app_slug = 'bench' AND m.stage = 'ACTIVE'
		JOIN entitlement e ON e.project_id = a.project_id AND e.app_slug = m.app_slug AND e.revoked_at IS NULL
		WHERE a.id = $1 AND a.project_id = $2 AND a.status = 'READY' FOR UPDATE OF a`, in.Allocation, in.Project).
		QueryRow(func(row pgx.Row) error { return row.Scan(&f.tenant, &f.node, &f.held, &f.manifest, &f.adapter) })
	if err := t.SendBatch(r.Context(), batch).Close(); err != nil {
		return "", fmt.Errorf("look: %w", err)
	}
	if !who.may(in.Project) || f.held != nil {
		return "", errors.New("not allowed, or in use")
	}
	return write(r.Context(), t, in, &who, f)
}

// write is the second round trip.
func write(ctx context.Context, t pgx.Tx, in Launch, who *caller, f facts) (ids.ID, error) {
	instance, operation, now := ids.New(ids.Instance), ids.New(ids.Operation), time.Now().UTC()
	batch := &pgx.Batch{}
	batch.Queue(`INSERT INTO idempotency (id, input_digest, result, tenant_id, project_id, created_at)
		VALUES ($1, $2, $3, $4, $5, $6)`,
		in.Key, []byte(in.Key),
		json.RawMessage(`{"Instance":"`+string(instance)+`","Operation":"`+string(operation)+`"}`),
		f.tenant, in.Project, now)
	batch.Queue(`INSERT INTO instance (id, tenant_id, project_id, name, app_slug, app_version, permission_family,
		manifest_id, status, health, revision,
		config, roles, bound_capacity_shape, runtime_backend, last_operation_id, correlation_id, created_at, updated_at)
		VALUES ($1, $2, $3, $4, 'bench', '1.0.0', 'apps', $5, 'CREATED', 'UNKNOWN', 2, '{"size": 2}', $6, 'BAREMETAL', $7,
		$8, $9, $10, $10)`,
		instance, f.tenant, in.Project, in.Name, f.manifest,
		json.RawMessage(
			`[{"componentKey":"worker","displayName":"Workers","desired":1,"current":0,"healthy":0,"summary":"0 of 1 active"}]`),
		f.adapter, operation, in.Name, now)
	batch.Queue(`INSERT INTO member (id, tenant_id, project_id, instance_id, component_key, ordinal, status,
		allocation_id, node_id, correlation_id,
		created_at, updated_at) VALUES ($1, $2, $3, $4, 'worker', 0, 'PENDING', $5, $6, $7, $8, $8)`,
		ids.New(ids.Member), f.tenant, in.Project, instance, in.Allocation, f.node, in.Name, now)
	batch.Queue(`UPDATE allocation SET instance_id = $1 WHERE id = $2`, instance, in.Allocation)
	batch.Queue(`INSERT INTO operation (id, tenant_id, project_id, instance_id, kind, state, adapter_name,
		requester_kind,
		requester_id, requester_name,
		correlation_id, desired_change, next_run_at, deadline, created_at)
		VALUES ($1, $2, $3, $4, 'INSTANCE_CREATE', 'PENDING', $5, 'USER', $6, $7, $8, '{"components":{"worker":1}}', $9, $10,
		$9)`,
		operation, f.tenant, in.Project, instance, f.adapter, who.id, who.name, in.Name, now, now.Add(launchDeadline))
	row := &work{instance: instance, operation: operation, tenant: f.tenant, project: in.Project, correlation: in.Name}
	row.event(batch, 1, "apps.instance.requested", "bench 1.0.0 requested",
		`{"name":"`+in.Name+`","members":1,"version":"1.0.0"}`)
	row.event(batch, 2, "apps.operation.accepted", "launch accepted", `{"kind":"INSTANCE_CREATE"}`)
	batch.Queue(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, actor_name, permission_key,
		action, allowed, object_id, after,
		correlation_id, created_at) VALUES ($1, $2, $3, 'USER', $4, $5, 'apps.instance.create', 'launchInstance', true, $6,
		$7, $8, $9)`,
		ids.New(ids.Audit), f.tenant, in.Project, who.id, who.name, instance, json.RawMessage(`{"name":"`+in.Name+`"}`),
		in.Name, now)
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return "", fmt.Errorf("write: %w", err)
	}
	return operation, nil
}
