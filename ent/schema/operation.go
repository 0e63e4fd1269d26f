package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Operation is a durable piece of work, and its own queue row.
type Operation struct{ ent.Schema }

// Annotations of the table. Only workers read what belongs to the queue.
func (Operation) Annotations() []schema.Annotation {
	return pipelined("operation", "adapter_status", "claimed_by", "failures", "next_run_at", "step_plan", "seq",
		"end_refusal", "untold")
}

// Mixin of the table.
func (Operation) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}, referred{}} }

// Fields of the table.
func (Operation) Fields() []ent.Field {
	return []ent.Field{
		optionalID("instance_id", "the instance it changes"),
		str("app_slug", "the app of that instance"),
		optionalID("allocation_id", "the allocation it changes"),
		field.Enum("kind").GoType(lifecycle.OperationKind("")),
		field.Enum("state").GoType(lifecycle.OperationState("")),
		field.Enum("outcome").GoType(lifecycle.Outcome("")).Optional().Nillable(),
		str("adapter_name", "the adapter it is sent to"),
		str("phase", "which part of the work"),
		field.Int("percent").Default(0),
		str("message", "for a person"),
		field.String("requester_kind").SchemaType(text),
		id("requester_id", "who requested it"),
		str("requester_name", "who requested it, by name"),
		str("reason", "why"),
		field.String("correlation_id").SchemaType(text),
		jsonb("desired_change", "what it was requested to change"),
		idList("targets", "the members it acts on; empty when it acts on all"),
		field.Bool("force").Default(false).Comment("whether it may lose work and go without proof"),
		field.Enum("on_deadline").GoType(lifecycle.DeadlineOutcome("")).Default(string(lifecycle.DeadlineFail)),
		instant("forced_at", "when its deadline passed and force was chosen for that case"),
		instant("cancel_requested_at", "when a stop was requested"),
		str("cancel_requester", "who requested the stop, by name"),
		str("cancel_reason", "why the stop was requested"),
		str("cancel_message", "what became of that"),
		optionalID("retry_of", "the operation that it tries again"),
		jsonb("evidence", "what proves its end"),
		str("error_code", "why it failed"),
		str("error_message", "why it failed, for a person"),
		str("error_owner", "who can mend it"),
		field.Bool("error_retryable").Default(false),
		field.Int("dispatch_attempt").Default(0).Comment("fence of the adapter's reports"),
		jsonb("adapter_status", "the last status the adapter gave for this attempt"),
		field.Int("claim_epoch").Default(0).Comment("fence of workers' writes"),
		optionalID("claimed_by", "the worker process that holds it now"),
		str("step_plan", "which steps it is carried out by, as a worker's build names them; empty before it began"),
		field.Int("failures").Default(0).Comment("tries of the current step that failed; for backoff"),
		jsonb("end_refusal", "how often its end was refused in a row: the end's state, times, since and why"),
		field.Bool("untold").Default(false).Comment("whether what it shows is not on its instance's timeline yet"),
		field.Time("next_run_at").Default(now).Comment("when a worker should claim it again"),
		field.Time("deadline"),
		created(),
		sequence(),
		instant("started_at", "first claim"),
		instant("ended_at", "end"),
	}
}

// Indexes of the table: the queue, the lists, and the one-at-a-time rule.
func (Operation) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("next_run_at", "id").StorageKey("operation_due").
			Annotations(entsql.IndexWhere("((ended_at IS NULL) AND (claimed_by IS NULL))")),
		index.Fields("adapter_name", "tenant_id", "project_id", "next_run_at", "id", "kind",
			"step_plan").StorageKey("operation_due_by_adapter").
			Annotations(entsql.IndexWhere("((ended_at IS NULL) AND (claimed_by IS NULL))")),
		index.Fields("claimed_by").StorageKey("operation_claimed").
			Annotations(entsql.IndexWhere("claimed_by IS NOT NULL")),
		index.Fields("instance_id").StorageKey("operation_open_by_instance").
			Annotations(entsql.IndexWhere("((ended_at IS NULL) AND (instance_id IS NOT NULL))")),
		index.Fields("id").StorageKey("operation_untold").
			Annotations(entsql.IndexWhere("(untold AND (ended_at IS NULL))")),
		index.Fields("created_at").StorageKey("operation_end_refused").
			Annotations(entsql.IndexWhere("end_refusal IS NOT NULL")),
		index.Fields("instance_id", "id"),
		index.Fields("project_id", "id"),
		index.Fields("project_id", "id").StorageKey("operation_open_by_project").
			Annotations(entsql.IndexWhere("ended_at IS NULL")),
		index.Fields("adapter_name").StorageKey("operation_open_by_adapter").
			Annotations(entsql.IndexWhere("ended_at IS NULL")),
	}
}

// OperationStep is a step of an operation.
type OperationStep struct{ ent.Schema }

// Annotations of the table.
func (OperationStep) Annotations() []schema.Annotation { return pipelined("operation_step") }

// Mixin of the table.
func (OperationStep) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}} }

// Fields of the table.
func (OperationStep) Fields() []ent.Field {
	return []ent.Field{
		id("operation_id", "the operation"),
		field.String("name").SchemaType(text),
		field.Int("ordinal").Comment("place, from 0"),
		field.Enum("state").GoType(lifecycle.StepState("")),
		field.Int("attempt").Default(0),
		str("message", "for a person"),
		jsonb("evidence", "what proves its end"),
		instant("started_at", "first try"),
		instant("ended_at", "end"),
	}
}

// Indexes of the table.
func (OperationStep) Indexes() []ent.Index {
	return []ent.Index{index.Fields("operation_id", "ordinal").Unique()}
}

// WorkerProcess is one running worker: its heartbeat is the lease of everything it has claimed.
type WorkerProcess struct{ ent.Schema }

// Annotations of the table.
func (WorkerProcess) Annotations() []schema.Annotation { return table("worker_process") }

// Mixin of the table.
func (WorkerProcess) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (WorkerProcess) Fields() []ent.Field {
	return []ent.Field{
		str("host", "host name and process id"),
		field.JSON("kinds", []string{}).Optional().Comment("the kinds of operation that it begins"),
		field.JSON("plans", []string{}).Optional().Comment("the step plans that it carries on; see " +
			"operation.step_plan"),
		field.JSON("busy_adapters", []string{}).Optional().
			Comment(
				"the adapters that operations wait for: they have the most calls that one may have, or do not answer"),
		field.Time("heartbeat_at").Comment("last sign of life, by the database's clock"),
		created(),
	}
}

// AuditEntry is a privileged attempt, allowed or denied: append only.
type AuditEntry struct{ ent.Schema }

// Annotations of the table. Only the sealer reads the transaction.
func (AuditEntry) Annotations() []schema.Annotation { return pipelined("audit_entry", "xid") }

// Mixin of the table.
func (AuditEntry) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (AuditEntry) Fields() []ent.Field {
	return []ent.Field{
		optionalID("tenant_id", "owning tenant of the object"),
		optionalID("project_id", "owning project of the object"),
		field.String("actor_kind").SchemaType(text),
		str("actor_id", "who"),
		str("actor_name", "who, by name"),
		field.String("permission_key").SchemaType(text),
		field.String("action").SchemaType(text).Comment("the field that was called"),
		field.Bool("allowed"),
		str("object_id", "the object"),
		jsonb("before", "what it was"),
		jsonb("after", "what it became"),
		str("reason", "why"),
		str("code", "code of the refusal"),
		field.Int("repeats").Default(1).Comment("how often the same refusal came while the row was open"),
		field.String("correlation_id").SchemaType(text),
		str("trace_id", "the trace of the request or attempt that wrote it; not sealed"),
		optionalID("instance_id", "the instance that the object is, or is of; not sealed"),
		str("app_slug", "the app of that instance; not sealed"),
		str("origin", "address it came from"),
		field.Bool("break_glass").Default(false).Comment("a break-glass mutation"),
		field.Int64("xid").Annotations(entsql.DefaultExpr("(pg_current_xact_id()::text)::bigint")).
			Comment("the transaction that wrote it: with id, the commit-safe order in which it is sealed"),
		created(),
	}
}

// Indexes of the table.
func (AuditEntry) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("project_id", "id"), index.Fields("tenant_id", "id"), index.Fields("actor_id", "id"),
		index.Fields("object_id", "id"), index.Fields("correlation_id"),
		index.Fields("permission_key", "id"), index.Fields("action", "id"), index.Fields("created_at"),
		index.Fields("xid", "id"),
		index.Fields("id").StorageKey("auditentry_break_glass").Annotations(entsql.IndexWhere("break_glass")),
	}
}
