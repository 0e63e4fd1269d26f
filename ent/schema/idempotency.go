package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Idempotency remembers what a key was used for: caller, project and verb make its scope.
type Idempotency struct{ ent.Schema }

// Annotations of the table.
func (Idempotency) Annotations() []schema.Annotation { return table("idempotency") }

// Fields of the table.
func (Idempotency) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").SchemaType(text).Immutable().Comment("SHA-256 of caller, scope, verb and key"),
		field.Bytes("input_digest").Comment("SHA-256 of the input"),
		jsonb("result", "ids of what was created, or the stored answer"),
		optionalID("tenant_id", "owning tenant, if any"),
		optionalID("project_id", "owning project, if any"),
		created(),
	}
}

// Indexes of the table: old keys are forgotten by age.
func (Idempotency) Indexes() []ent.Index { return []ent.Index{index.Fields("created_at")} }
