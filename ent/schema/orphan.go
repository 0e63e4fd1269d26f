package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Orphan is something that an operation could not take back: it is listed until it is deleted.
type Orphan struct{ ent.Schema }

// Annotations of the table.
func (Orphan) Annotations() []schema.Annotation { return pipelined("orphan") }

// Mixin of the table.
func (Orphan) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}} }

// Fields of the table.
func (Orphan) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("kind").GoType(lifecycle.OrphanKind("")),
		id("instance_id", "the instance it belongs to"),
		optionalID("operation_id", "the operation that left it"),
		optionalID("member_id", "the member that it is of"),
		optionalID("node_id", "the node that it lies on"),
		optionalID("allocation_id", "the allocation that it holds"),
		str("owner", "who can mend it: adapter, platform, user or node"),
		str("message", "what is left and why, for a person"),
		field.Int("attempts").Default(0).Comment("how often taking it back was tried"),
		str("last_error", "why the last try failed"),
		field.Time("next_try_at").Default(now).Comment("when it is tried again"),
		created(),
		instant("resolved_at", "when it was resolved"),
		str("resolution", "how it was resolved"),
	}
}

// Indexes of the table: what is due, and the lists.
func (Orphan) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("next_try_at", "id").StorageKey("orphan_due").
			Annotations(entsql.IndexWhere("resolved_at IS NULL")),
		index.Fields("project_id", "id"),
		index.Fields("instance_id",
			"id").StorageKey("orphan_open_by_instance").Annotations(entsql.IndexWhere("resolved_at IS NULL")),
		index.Fields("allocation_id").StorageKey("orphan_open_by_allocation").
			Annotations(entsql.IndexWhere("((resolved_at IS NULL) AND (allocation_id IS NOT NULL))")),
	}
}

// SKUPrice is the list price of a SKU.
type SKUPrice struct{ ent.Schema }

// Annotations of the table.
func (SKUPrice) Annotations() []schema.Annotation { return pipelined("sku_price") }

// Mixin of the table.
func (SKUPrice) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (SKUPrice) Fields() []ent.Field {
	return []ent.Field{
		field.String("sku").SchemaType(text).Unique().Comment("what is sold"),
		field.String("currency").SchemaType(text).Comment("ISO 4217"),
		field.Int64("hourly_micros").Comment("price of an allocation for an hour, in millionths of the currency"),
		field.Time("updated_at").Default(now),
	}
}
