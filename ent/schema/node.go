package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodehealth"
	"github.com/gpuaas/app-platform/domain/volume"
)

// ComputeNode is an enrolled machine.
type ComputeNode struct{ ent.Schema }

// Annotations of the table.
func (ComputeNode) Annotations() []schema.Annotation { return pipelined("compute_node") }

// Mixin of the table.
func (ComputeNode) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (ComputeNode) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").SchemaType(text).Comment("host name; unique among those that are not deleted"),
		field.String("address").SchemaType(text).Comment("where other nodes reach it"),
		field.Enum("status").GoType(lifecycle.NodeStatus("")),
		str("region", "where it is"),
		str("sku", "what it is sold as"),
		field.Int("cpus"),
		field.Int("memory_mib"),
		field.Int("gpus"),
		str("gpu_model", "GPU model"),
		field.Bool("gpus_simulated").Default(false),
		field.String("isolation").SchemaType(text).Comment("NAMESPACE or PROCESS"),
		field.String("sealing_key").SchemaType(text).Comment("X25519 public key, base64"),
		str("agent_version", "agent's version"),
		str("boot_id", "changes with every boot"),
		str("kernel", "kernel release"),
		jsonb("labels", "free labels"),
		field.JSON("walls",
			&isolation.Walls{}).Optional().Comment("what keeps members apart there; null when its agent " +
			"has never reported"),
		field.JSON("devices", []isolation.Device{}).Optional().
			Comment("its GPUs by identity; null when its agent has " +
				"never reported"),
		field.JSON("storage", []volume.Storage{}).Optional().
			Comment("what it serves volumes from; null when its agent has " +
				"never reported"),
		instant("last_seen_at", "when its agent last reported"),
		field.Bool("cordoned").Default(false).Comment("takes no new members, as an operator requested"),
		str("cordon_reason", "why it is cordoned"),
		instant("cordoned_at", "since when it is cordoned"),
		field.JSON("conditions", []nodehealth.Condition{}).Optional().
			Comment("what its agent's checks found; null when it " +
				"has never reported any"),
		field.JSON("drain", &nodehealth.Drain{}).Optional().Comment(
			"the wish that no work is left there; null for none"),
		instant("booted_at", "when its agent first reported after another boot"),
		instant("retired_at", "when it was taken out for good"),
		field.Bool("lost").Default(false).Comment("retired without proof of what was left on it"),
		instant("deleted_at", "when it was taken from the list"),
		created(),
	}
}

// Indexes of the table.
func (ComputeNode) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("name").Unique().StorageKey("compute_node_name_key").
			Annotations(entsql.IndexWhere("deleted_at IS NULL")),
		index.Fields("id").StorageKey("compute_node_away").Annotations(entsql.IndexWhere(
			"(((status)::text = 'OFFLINE'::text) OR ((status)::text = 'RETIRED'::text))")),
		index.Fields("id").StorageKey("compute_node_drained").Annotations(entsql.IndexWhere("drain IS NOT NULL")),
		index.Fields("id").StorageKey("compute_node_lost").Annotations(entsql.IndexWhere("lost")),
	}
}

// NodeCredential is a secret of a node's agent; only its hash is kept.
type NodeCredential struct{ ent.Schema }

// Annotations of the table.
func (NodeCredential) Annotations() []schema.Annotation { return table("node_credential") }

// Mixin of the table.
func (NodeCredential) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (NodeCredential) Fields() []ent.Field {
	return []ent.Field{
		id("node_id", "the node"),
		field.Bytes("secret_hash").Comment("SHA-256 of the secret"),
		field.Time("expires_at").Comment("when it stops working"),
		instant("first_used_at", "when it was first used, which ends the earlier ones"),
		instant("revoked_at", "when it was ended"),
		created(),
		sequence(),
	}
}

// Indexes of the table.
func (NodeCredential) Indexes() []ent.Index { return []ent.Index{index.Fields("node_id")} }

// NodeEnrolment is a one-time right to enrol a node.
type NodeEnrolment struct{ ent.Schema }

// Annotations of the table.
func (NodeEnrolment) Annotations() []schema.Annotation { return table("node_enrolment") }

// Mixin of the table.
func (NodeEnrolment) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (NodeEnrolment) Fields() []ent.Field {
	return []ent.Field{
		str("name", "the host name it is bound to; empty for any"),
		field.Bytes("secret_hash").Comment("SHA-256 of the secret"),
		field.Time("expires_at").Comment("when it stops working"),
		instant("used_at", "when it was used"),
		optionalID("node_id", "the node that it created"),
		created(),
	}
}

// Allocation is capacity that a project rents.
type Allocation struct{ ent.Schema }

// Annotations of the table.
func (Allocation) Annotations() []schema.Annotation { return pipelined("allocation") }

// Mixin of the table.
func (Allocation) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}, referred{}} }

// Fields of the table.
func (Allocation) Fields() []ent.Field {
	return []ent.Field{
		optionalID("created_by_operation_id", "the operation that requested it; none when a person did"),
		str("name", "name for people"),
		field.Enum("shape").GoType(lifecycle.CapacityShape("")),
		field.Int("gpu_count").Comment("GPUs it holds"),
		str("sku", "what is rented; empty for any"),
		str("region", "where it is"),
		field.Enum("status").GoType(lifecycle.AllocationStatus("")),
		optionalID("node_id", "the node it is bound to"),
		optionalID("instance_id", "the instance that uses it"),
		str("scheduler_type", "integration metadata"),
		jsonb("integration_metadata", "integration metadata"),
		field.JSON("devices", []isolation.Device{}).Optional().Comment("the GPUs it holds, by identity"),
		field.Enum("isolation_class").GoType(isolation.Class("")).Optional().Nillable().
			Comment("the weakest that its " +
				"members may have; null for any"),
		field.Int("memory_mib").Optional().Nillable().Comment(
			"memory that its members share; null for the whole node's"),
		field.Int("cpu_millis").Optional().Nillable().Comment("thousandths of processors that its members share; " +
			"null for the whole node's"),
		optionalID("release_operation_id", "the operation that releases it"),
		created(),
		instant("released_at", "when its removal was proved"),
	}
}

// Indexes of the table.
func (Allocation) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("project_id", "id"),
		index.Fields("instance_id").Annotations(entsql.IndexWhere("instance_id IS NOT NULL")),
		index.Fields("node_id").StorageKey("allocation_held").
			Annotations(entsql.IndexWhere("released_at IS NULL"), entsql.IncludeColumns("gpu_count", "shape")),
		index.Fields("project_id", "id").StorageKey("allocation_held_by_project").
			Annotations(entsql.IndexWhere("((status)::text <> 'RELEASED'::text)")),
		index.Fields("id").StorageKey("allocation_requested").
			Annotations(entsql.IndexWhere("((status)::text = 'REQUESTED'::text)")),
		index.Fields("id").StorageKey("allocation_brought").Annotations(entsql.IndexWhere(
			"(((status)::text = 'READY'::text) AND (created_by_operation_id IS NOT NULL))")),
	}
}

// NodeTask is a piece of work for a node's agent.
type NodeTask struct{ ent.Schema }

// Annotations of the table.
func (NodeTask) Annotations() []schema.Annotation { return pipelined("node_task", "seq") }

// Mixin of the table.
func (NodeTask) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}} }

// Fields of the table.
func (NodeTask) Fields() []ent.Field {
	return []ent.Field{
		id("instance_id", "the instance"),
		id("member_id", "the member it acts in"),
		id("node_id", "the node that does it"),
		optionalID("operation_id", "the operation it belongs to"),
		field.Enum("kind").GoType(lifecycle.NodeTaskKind("")),
		jsonb("spec", "its details; secrets are sealed"),
		field.Bytes("spec_digest").Comment("SHA-256 of kind, spec and timeout"),
		field.Int("fence").Default(1).Comment("the agents' contract for a deliberate new dispatch; the platform " +
			"makes none, see ADR 0060"),
		field.Enum("state").GoType(lifecycle.NodeTaskState("")),
		field.Bool("cancel_requested").Default(false),
		field.Int("timeout_seconds"),
		field.Int("exit_code").Optional().Nillable(),
		field.Int64("progress_done").Default(0).Comment("how much of it is done, in bytes"),
		field.Int64("progress_total").Default(0).Comment("how much there is to do, in bytes; 0 when it is not known"),
		jsonb("result", "what it found"),
		str("message", "for a person"),
		str("stdout", "first 64 KiB"),
		str("stderr", "first 64 KiB"),
		field.String("idempotency_key").SchemaType(text),
		str("correlation_id", "that of its operation, or of the request that created it"),
		str("traceparent", "where its agent's span belongs, as W3C Trace Context writes it"),
		str("app_slug", "the app of its instance"),
		field.JSON("binding", &isolation.Binding{}).Optional().
			Comment("the walls of its member; null for a member without " +
				"an allocation"),
		created(),
		sequence(),
		instant("started_at", "when the agent began"),
		instant("ended_at", "when it ended"),
	}
}

// Indexes of the table.
func (NodeTask) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("member_id", "idempotency_key").Unique(),
		index.Fields("member_id", "id"),
		index.Fields("node_id", "id").StorageKey("node_task_open").
			Annotations(entsql.IndexWhere("ended_at IS NULL")),
		index.Fields("operation_id").Annotations(entsql.IndexWhere("operation_id IS NOT NULL")),
	}
}
