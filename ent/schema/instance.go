package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodenet"
	"github.com/gpuaas/app-platform/domain/volume"
)

// Instance is a launched app. Its row carries its own read model: revision, counts by component,
// health and last operation, so that a list reads one table.
type Instance struct{ ent.Schema }

// Annotations of the table.
func (Instance) Annotations() []schema.Annotation { return pipelined("instance") }

// Mixin of the table.
func (Instance) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}, referred{}} }

// Fields of the table.
func (Instance) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").SchemaType(text).Comment("unique among the project's live instances"),
		field.String("app_slug").SchemaType(text),
		field.String("app_version").SchemaType(text),
		field.String("permission_family").SchemaType(text).Comment("whose keys its verbs check"),
		id("manifest_id", "the manifest"),
		field.Enum("status").GoType(lifecycle.InstanceStatus("")),
		field.Enum("health").GoType(lifecycle.Health("")).Default(string(lifecycle.HealthUnknown)),
		str("health_message", "what the adapter reports"),
		field.Int("revision").Default(0).Comment("number of its newest event"),
		jsonb("config", "config with defaults"),
		jsonb("roles", "read model: desired, current and healthy by component"),
		jsonb("capacity_intent", "what further members of each component are to live in"),
		field.JSON("volumes", []volume.Binding{}).Optional().
			Comment("which volumes it uses in which slots; null for none"),
		field.Int("generation").Default(1).Comment("number of the manifest and config it runs, from 1"),
		jsonb("drift", "where what the adapter sees differs from what is meant"),
		instant("observed_at", "when the adapter last reported what it sees"),
		field.Enum("bound_capacity_shape").GoType(lifecycle.CapacityShape("")),
		field.String("operating_mode").SchemaType(text).Default("TENANT_DEDICATED"),
		field.String("control_plane_scope").SchemaType(text).Default("PROJECT"),
		field.String("runtime_backend").SchemaType(text).Comment("the adapter's name"),
		field.Bool("smoke").Default(false),
		field.Bool("system").Default(false).Comment("of a system app: the platform's operator answers for it"),
		optionalID("operator_service_account_id",
			"the account of its project that its adapter may act by; none for none"),
		jsonb("repair", "policy of repair; null for the default"),
		str("repair_stopped", "why its repair has stopped; empty while it has not"),
		instant("unserved_at", "since when it has fewer members in service than its manifest demands"),
		str("failure_code", "why it failed"),
		str("failure_message", "why it failed, for a person"),
		str("failure_owner", "who can mend it"),
		field.Bool("failure_retryable").Default(false),
		optionalID("last_operation_id", "newest operation"),
		field.String("correlation_id").SchemaType(text),
		created(),
		field.Time("updated_at").Default(now),
		instant("released_at", "when nothing of it was left"),
	}
}

// Indexes of the table.
func (Instance) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("project_id", "name").Unique().StorageKey("instance_name_live").
			Annotations(entsql.IndexWhere("released_at IS NULL")),
		index.Fields("project_id", "id"),
		index.Fields("manifest_id").Annotations(entsql.IndexWhere("released_at IS NULL")),
		index.Fields("runtime_backend").Annotations(entsql.IndexWhere("released_at IS NULL")),
		index.Fields("id").StorageKey("instance_live").Annotations(entsql.IndexWhere("released_at IS NULL")),
		index.Fields("id").StorageKey("instance_repair_stopped").
			Annotations(entsql.IndexWhere("((repair_stopped <> ''::text) AND (released_at IS NULL))")),
		index.Fields("unserved_at", "id").StorageKey("instance_unserved").
			Annotations(entsql.IndexWhere("((unserved_at IS NOT NULL) AND (released_at IS NULL))")),
	}
}

// Member is one realised member of a component.
type Member struct{ ent.Schema }

// Annotations of the table.
func (Member) Annotations() []schema.Annotation { return pipelined("member") }

// Mixin of the table.
func (Member) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}, referred{}} }

// Fields of the table.
func (Member) Fields() []ent.Field {
	return []ent.Field{
		id("instance_id", "the instance"),
		field.String("component_key").SchemaType(text).Comment("key of its component in the manifest"),
		field.Int("ordinal").Comment("number in the component, from 0"),
		field.Enum("status").GoType(lifecycle.MemberStatus("")),
		field.Bool("cordoned").Default(false),
		field.Enum("health").GoType(lifecycle.Health("")).Default(string(lifecycle.HealthUnknown)),
		str("health_message", "what the adapter reports"),
		optionalID("allocation_id", "the allocation it lives in"),
		optionalID("node_id", "the node it is bound to"),
		field.Enum("profile").GoType(isolation.Profile("")).Default(string(isolation.Service)).
			Comment("what it may do " +
				"inside of its walls"),
		field.Enum("isolation_class").GoType(isolation.Class("")).Optional().Nillable().
			Comment("what keeps it apart on its node; null when the node had not reported what it offers"),
		field.Int("max_pids").Default(isolation.DefaultPids).Comment("most processes and threads of it"),
		str("address", "its own on the members' network; empty where it has the node's"),
		field.JSON("ranges", []nodenet.Range{}).Optional().Comment("further addresses that are routed to it"),
		optionalID("last_operation_id", "last operation that touched it"),
		str("correlation_id", "of that operation"),
		jsonb("adapter_detail", "the adapter's own detail"),
		jsonb("labels", "labels, by name"),
		field.Enum("failure").GoType(lifecycle.MemberFailure("")).Optional().Nillable().
			Comment("why it was lost in service; null when it was not, or since it has come back"),
		instant("failed_at", "when that was found"),
		field.Int("restarts").Default(0).Comment("how often its supervised processes were restarted since it joined"),
		created(),
		field.Time("updated_at").Default(now),
	}
}

// Indexes of the table. The database derives the column removed from the status. No index is built on the status
// itself, so that the steps of a member's life write none of them.
func (Member) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("instance_id", "component_key", "ordinal").Unique().StorageKey("member_ordinal_live").
			Annotations(entsql.IndexWhere("(NOT removed)")),
		index.Fields("instance_id", "id"),
		index.Fields("allocation_id"),
		index.Fields("address").Unique().StorageKey("member_address_live").
			Annotations(entsql.IndexWhere("((address <> ''::text) AND (NOT removed))")),
		index.Fields("node_id").Annotations(entsql.IndexWhere("(NOT removed)")),
		index.Fields("instance_id").StorageKey("member_lost").
			Annotations(entsql.IndexWhere("((failure IS NOT NULL) AND (NOT removed))")),
	}
}

// Generation is a manifest and config that an instance runs or has run: what a rollback goes back
// to. Append only.
type Generation struct{ ent.Schema }

// Annotations of the table.
func (Generation) Annotations() []schema.Annotation { return pipelined("instance_generation") }

// Mixin of the table.
func (Generation) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}} }

// Fields of the table.
func (Generation) Fields() []ent.Field {
	return []ent.Field{
		id("instance_id", "the instance"),
		field.Int("number").Comment("number in the instance, from 1"),
		id("manifest_id", "the manifest"),
		field.String("app_version").SchemaType(text),
		jsonb("config", "config with defaults"),
		optionalID("operation_id", "the operation that created it"),
		created(),
	}
}

// Indexes of the table.
func (Generation) Indexes() []ent.Index {
	return []ent.Index{index.Fields("instance_id", "number").Unique(), index.Fields("manifest_id", "created_at")}
}

// Event is something that happened to an instance, to an allocation that none uses, or to a volume: append only,
// numbered without gaps.
type Event struct{ ent.Schema }

// Annotations of the table.
func (Event) Annotations() []schema.Annotation { return pipelined("app_instance_event") }

// Mixin of the table.
func (Event) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}} }

// Fields of the table.
func (Event) Fields() []ent.Field {
	return []ent.Field{
		optionalID("instance_id", "the instance; none for an event of an allocation or a volume"),
		optionalID("allocation_id", "the allocation, where no instance uses it"),
		optionalID("volume_id", "the volume"),
		field.Int("seq").Comment("number in the instance, the allocation or the volume, from 1, no gaps"),
		field.Int64("generation").Annotations(entsql.DefaultExpr("platform.generation()")).
			Comment(
				"the past of the database that it was written in; numbers of transactions compare within one alone"),
		field.Int64("xid").Annotations(entsql.DefaultExpr("(pg_current_xact_id()::text)::bigint")).
			Comment("the transaction that wrote it: with position, the project feed's commit-safe order"),
		field.Int64("position").Annotations(entsql.DefaultExpr("nextval('event_position'::regclass)")).
			Comment("order within a transaction"),
		field.String("type").SchemaType(text),
		field.String("app_slug").SchemaType(text),
		field.String("permission_family").SchemaType(text),
		optionalID("operation_id", "cause"),
		optionalID("member_id", "about"),
		str("message", "for a person"),
		jsonb("payload", "details"),
		field.String("correlation_id").SchemaType(text),
		str("trace_id", "the trace of the request or attempt that wrote it"),
		field.Time("occurred_at").Default(now),
	}
}

// Indexes of the table.
func (Event) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("instance_id", "seq").Unique(),
		index.Fields("allocation_id", "seq").Unique().Annotations(entsql.IndexWhere("(allocation_id IS NOT NULL)")),
		index.Fields("project_id", "permission_family", "generation", "xid", "position").StorageKey("event_feed"),
		index.Fields("volume_id", "seq").Unique().Annotations(entsql.IndexWhere("(volume_id IS NOT NULL)")),
	}
}
