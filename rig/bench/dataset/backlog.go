package dataset

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
)

// Backlog makes n launches that are accepted and due, as launchInstance leaves them, in one
// transaction: dealt in turn to so many projects, from one on. Each has a node and an allocation of its
// own. It answers the operations, in order.
func (s *Set) Backlog(ctx context.Context, n, firstProject, projects int) ([]ids.ID, error) {
	b := &backlog{size: s.Size, first: firstProject, projects: projects,
		now: time.Now().UTC().Truncate(time.Microsecond)}
	for range n {
		b.made = append(b.made, accepted{ids.New(ids.Node), ids.New(ids.Allocation), ids.New(ids.Instance),
			ids.New(ids.Member), ids.New(ids.Operation)})
	}
	err := pgx.BeginFunc(ctx, s.Admin, func(t pgx.Tx) error {
		// foreign keys hold by construction
		if _, err := t.Exec(ctx, `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		for _, one := range b.tables() {
			source := pgx.CopyFromSlice(one.rows, func(n int) ([]any, error) { return one.row(n), nil })
			if _, err := t.CopyFrom(ctx, pgx.Identifier{one.name}, one.columns, source); err != nil {
				return fmt.Errorf("%s: %w", one.name, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("make a backlog: %w", err)
	}
	operations := make([]ids.ID, n)
	for i, one := range b.made {
		operations[i] = one.operation
	}
	return operations, nil
}

// accepted is one launch of a backlog.
type accepted struct{ node, allocation, instance, member, operation ids.ID }

type backlog struct {
	size            Size
	first, projects int
	now             time.Time
	made            []accepted
}

// backlogDeadline is longer than any run.
const backlogDeadline = 12 * time.Hour

// project is where the n-th launch belongs.
func (b *backlog) project(n int) int { return (b.first + n%b.projects) % b.size.projects() }

func (b *backlog) tables() []table {
	config, roles := json.RawMessage(`{"size": 2}`),
		json.RawMessage(
			`[{"componentKey":"worker","displayName":"Workers","desired":1,"current":0,"healthy":0,"summary":"0 of 1 active"}]`)
	return []table{
		{"compute_node", []string{"id", "name", "address", "status", "cpus", "memory_mib", "gpus", "gpus_simulated",
			"isolation", "sealing_key",
			"last_seen_at", "created_at"}, len(b.made), func(n int) []any {
			return []any{b.made[n].node, string(b.made[n].node), "192.0.2.1", "ONLINE", 8, 16_384, 8, true, "NAMESPACE",
				"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", b.now.AddDate(1, 0, 0), b.now}
		}},
		{"allocation", []string{"id", "tenant_id", "project_id", "name", "shape", "gpu_count", "status", "node_id",
			"instance_id", "created_at"},
			len(b.made), func(n int) []any {
				return []any{b.made[n].allocation, b.tenant(n), Project(b.project(n)), string(b.made[n].allocation),
					"BAREMETAL", 8, "READY", b.made[n].node, b.made[n].instance, b.now}
			}},
		{"instance", []string{"id", "tenant_id", "project_id", "name", "app_slug", "app_version", "permission_family",
			"manifest_id", "status",
			"health", "revision", "config", "roles", "bound_capacity_shape", "runtime_backend", "last_operation_id",
			"correlation_id", "created_at",
			"updated_at"}, len(b.made), func(n int) []any {
			one := b.made[n]
			return []any{one.instance, b.tenant(n), Project(b.project(n)), b.name(n), App, Version, "apps",
				ID(ids.Manifest, 0), "CREATED",
				"UNKNOWN", 2, config, roles, "BAREMETAL", AdapterName, one.operation, b.name(n), b.now, b.now}
		}},
		{"member", []string{"id", "tenant_id", "project_id", "instance_id", "component_key", "ordinal", "status",
			"allocation_id", "node_id",
			"correlation_id", "created_at", "updated_at"}, len(b.made), func(n int) []any {
			one := b.made[n]
			return []any{one.member, b.tenant(n), Project(b.project(n)), one.instance, "worker", 0, "PENDING",
				one.allocation, one.node, b.name(n), b.now, b.now}
		}},
		b.operations(), b.events(),
	}
}

func (b *backlog) operations() table {
	return table{"operation", []string{"id", "tenant_id", "project_id", "instance_id", "kind", "state", "adapter_name",
		"requester_kind", "requester_id",
		"requester_name", "correlation_id", "desired_change", "next_run_at", "deadline", "created_at"}, len(b.made),
		func(n int) []any {
			project := b.project(n)
			return []any{b.made[n].operation, b.tenant(n), Project(project), b.made[n].instance,
				"INSTANCE_CREATE", "PENDING", AdapterName, "USER",
				ID(ids.User, project/b.size.Projects), name("Person", project/b.size.Projects), b.name(n),
				json.RawMessage(`{"components": {"worker": 1}}`),
				b.now, b.now.Add(backlogDeadline), b.now}
		}}
}

// events are the two that a launch begins with.
func (b *backlog) events() table {
	told := []struct{ kind, message, payload string }{
		{"apps.instance.requested", "bench 1.0.0 requested", `{"members": 1, "version": "1.0.0"}`},
		{"apps.operation.accepted", "launch accepted", `{"kind": "INSTANCE_CREATE"}`},
	}
	return table{"app_instance_event", []string{"id", "tenant_id", "project_id", "instance_id", "seq", "type",
		"app_slug", "permission_family",
		"operation_id", "message", "payload", "correlation_id", "occurred_at"}, len(told) * len(b.made),
		func(n int) []any {
			i, one := n/len(told), told[n%len(told)]
			return []any{ids.New(ids.Event), b.tenant(i), Project(b.project(i)), b.made[i].instance,
				1 + n%len(told), one.kind, App, "apps",
				b.made[i].operation, one.message, json.RawMessage(one.payload), b.name(i), b.now}
		}}
}

func (b *backlog) tenant(n int) ids.ID { return b.size.tenantOf(b.project(n)) }

func (b *backlog) name(n int) string { return "b" + string(b.made[n].operation)[10:] }

// Span is from when the first of the operations was claimed until the last had ended, by the
// database's clock.
func (s *Set) Span(ctx context.Context, operations []ids.ID) (time.Duration, error) {
	var seconds float64
	err := s.Admin.QueryRow(ctx,
		`SELECT extract(epoch FROM max(ended_at) - min(started_at))::float8 FROM operation WHERE id = ANY ($1)`,
		operations).Scan(&seconds)
	if err != nil {
		return 0, fmt.Errorf("see how long it took: %w", err)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
