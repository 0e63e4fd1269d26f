package dataset

import (
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
)

// words are the texts of generated messages; their lengths are those of real ones.
var words = []string{
	"the adapter works on it", "checking readiness on the nodes", "member joined and answers",
	"sending it to the adapter",
	"configuration rendered for 3 members", "waits for the agent of node", "queue accepts work",
	"3 of 3 members active and healthy",
}

// types are the kinds of event in a timeline, in turn.
var types = []string{
	"apps.operation.progress", "apps.instance.member_added", "apps.operation.progress", "apps.instance.healthy",
	"apps.operation.succeeded",
}

// steps are the names of an operation's.
var steps = []string{"prepare", "dispatch", "await", "verify", "finish"}

func word(n int) string { return words[scatter(uint64(n))%uint64(len(words))] }

func correlation(i int) string { return fmt.Sprintf("launch-%08x", uint32(scatter(uint64(i)))) }

// work are instances with everything that hangs on them.
func (s Size) work() []table {
	return []table{s.instances(), s.members(), s.operations(), s.steps(), s.events()}
}

func (s Size) instances() table {
	roles := json.RawMessage(
		`[{"componentKey":"worker","displayName":"Workers","desired":3,"current":3,"healthy":3,"summary":"3 of 3 active"}]`)
	return table{"instance", []string{"id", "tenant_id", "project_id", "name", "app_slug", "app_version",
		"permission_family",
		"manifest_id", "status", "health", "health_message", "revision", "config", "roles", "bound_capacity_shape",
		"runtime_backend",
		"last_operation_id", "correlation_id", "created_at", "updated_at"}, s.Instances, func(n int) []any {
		project := n % s.projects()
		config := json.RawMessage(fmt.Sprintf(
			`{"size": %d, "partition": "main", "options": {"gres": "gpu:8", "preempt": false}}`, 1+n%8))
		return []any{Instance(n), s.tenantOf(project), Project(project), name("workload", n), App, Version, "apps",
			ID(ids.Manifest, 0),
			"RUNNING", "HEALTHY", "all members answer", s.Events, config, roles, "BAREMETAL", AdapterName,
			ID(ids.Operation, n*operationsEach+operationsEach-1), correlation(n), at(n), at(n + 600)}
	}}
}

func (s Size) members() table {
	return table{"member", []string{"id", "tenant_id", "project_id", "instance_id", "component_key",
		"ordinal", "status", "health",
		"health_message", "allocation_id", "node_id", "last_operation_id", "correlation_id", "created_at",
		"updated_at"},
		s.Instances * membersEach, func(n int) []any {
			i := n / membersEach
			project := i % s.projects()
			return []any{ID(ids.Member, n), s.tenantOf(project), Project(project), Instance(i), "worker",
				n % membersEach, "ACTIVE", "HEALTHY",
				"answers", ID(ids.Allocation, i), ID(ids.Node, i), ID(ids.Operation, i*operationsEach),
				correlation(i), at(i),
				at(i + 60)}
		}}
}

func (s Size) operations() table {
	return table{"operation", []string{"id", "tenant_id", "project_id", "instance_id", "kind", "state", "outcome",
		"adapter_name", "phase",
		"percent", "message", "requester_kind", "requester_id", "requester_name", "correlation_id", "desired_change",
		"evidence",
		"dispatch_attempt", "claim_epoch", "next_run_at", "deadline", "created_at", "started_at", "ended_at"},
		s.Instances * operationsEach, func(n int) []any {
			i := n / operationsEach
			project := i % s.projects()
			return []any{ID(ids.Operation, n), s.tenantOf(project), Project(project), Instance(i), "INSTANCE_CREATE",
				"SUCCEEDED", "NORMAL",
				AdapterName, "finish", 100, "running", "USER", ID(ids.User, project/s.Projects),
				name("Person", project/s.Projects),
				correlation(i),
				json.RawMessage(`{"components": {"worker": 3}}`), json.RawMessage(`{"rounds": 1, "probes": []}`), 1, 1,
				at(i), at(i + 3600), at(i), at(i), at(i + 40)}
		}}
}

func (s Size) steps() table {
	return table{"operation_step", []string{"id", "tenant_id", "project_id", "operation_id", "name", "ordinal", "state",
		"attempt", "message",
		"evidence", "started_at", "ended_at"}, s.Instances * operationsEach * stepsEach, func(n int) []any {
		i := n / (operationsEach * stepsEach)
		project := i % s.projects()
		return []any{ID(ids.OperationStep, n), s.tenantOf(project), Project(project), ID(ids.Operation, n/stepsEach),
			steps[n%stepsEach], n % stepsEach,
			"SUCCEEDED", 1, word(n), json.RawMessage(`{"adapter": "bench-adapter", "attempt": 1}`), at(i + n%stepsEach),
			at(i + 1 + n%stepsEach)}
	}}
}

func (s Size) events() table {
	return table{"app_instance_event", []string{"id", "tenant_id", "project_id", "instance_id", "seq", "type",
		"app_slug", "permission_family", "operation_id", "message", "payload", "correlation_id", "occurred_at"},
		s.Instances * s.Events,
		func(n int) []any {
			i, seq := n/s.Events, 1+n%s.Events
			project := i % s.projects()
			return []any{ID(ids.Event, n), s.tenantOf(project), Project(project), Instance(i), seq,
				types[n%len(types)], App, "apps", ID(ids.Operation, i*operationsEach), word(n),
				json.RawMessage(fmt.Sprintf(`{"phase": "%s", "percent": %d}`, steps[n%stepsEach], n%100)),
				correlation(i), at(i + seq)}
		}}
}
