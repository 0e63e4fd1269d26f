// Package schema is the storage schema, written by hand: one Go type per table. Ent generates its client from it, and
// the versioned migrations are diffed from it.
//
// Two decisions shape every table. Ids are typed, prefixed text (domain/ids), so that one value serves the database,
// the API and the logs. And the schema has no Ent edges: references are plain id columns, and their foreign keys, which
// carry the tenant so that no row can point into another tenant, are in the hand-written migrations beside the
// row-level security policies.
package schema

import (
	"encoding/json"
	"time"

	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"entgo.io/ent/schema/mixin"

	"github.com/gpuaas/app-platform/domain/ids"
)

// table names the table as the schema names it: singular, no plural guessed by Ent.
func table(name string) []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Table: name}}
}

// Pipelined marks a table whose rows hand-written, pipelined reads scan. ent/template/rows.tmpl writes the columns and
// the scan function of each, so that a column is stated here and in its migration alone.
type Pipelined struct {
	// Omit are columns that these reads leave out.
	Omit map[string]bool
	// Lists are JSON columns whose NULL is read as the empty list.
	Lists map[string]bool
}

// Name is the key of the annotation in templates.
func (Pipelined) Name() string { return "Pipelined" }

// pipelined names the table and marks it. The reads leave out the columns that omit names.
func pipelined(name string, omit ...string) []schema.Annotation {
	mark := Pipelined{Omit: map[string]bool{}, Lists: map[string]bool{}}
	for _, column := range omit {
		mark.Omit[column] = true
	}
	return append(table(name), mark)
}

// text is the one string type of the database.
var text = map[string]string{dialect.Postgres: "text"}

// now is the time of a new row, in the microseconds that PostgreSQL keeps: a nanosecond more in memory would make
// cursors that skip rows.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// id is a required reference to another row.
func id(name, comment string) ent.Field {
	return field.String(name).GoType(ids.ID("")).SchemaType(text).Comment(comment)
}

// optionalID is a reference that may be missing.
func optionalID(name, comment string) ent.Field {
	return field.String(name).GoType(ids.ID("")).SchemaType(text).Optional().Nillable().Comment(comment)
}

// str is a required string that defaults to empty.
func str(name, comment string) ent.Field {
	return field.String(name).SchemaType(text).Default("").Comment(comment)
}

// jsonb is an optional JSON document.
func jsonb(name, comment string) ent.Field {
	return field.JSON(name, json.RawMessage{}).Optional().Comment(comment)
}

// idList is a list of references, in JSON; missing when it is empty.
func idList(name, comment string) ent.Field {
	return field.JSON(name, []ids.ID{}).Optional().Comment(comment)
}

// instant is an optional point in time.
func instant(name, comment string) ent.Field {
	return field.Time(name).Optional().Nillable().Comment(comment)
}

// created is when the row was created.
func created() ent.Field {
	return field.Time("created_at").Default(now).Immutable().Comment("when the row was created")
}

// sequence numbers a table's rows in the order in which they were written, whatever the clocks of their writers show;
// missing for rows from before it was kept, which come first.
func sequence() ent.Field {
	return field.Int64("seq").Optional().Nillable().Annotations(entsql.DefaultExpr("nextval('row_order'::regclass)")).
		Comment("the order in which rows were written; later is a higher number")
}

// identified gives a table its typed, prefixed id.
type identified struct{ mixin.Schema }

// Fields of every table: the id.
func (identified) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").GoType(ids.ID("")).SchemaType(text).Unique().Immutable().Comment("typed, prefixed id"),
	}
}

// owned gives a table the tenant and project it belongs to: the columns that row-level security reads.
type owned struct{ mixin.Schema }

// Fields that name the owner.
func (owned) Fields() []ent.Field {
	return []ent.Field{
		field.String("tenant_id").GoType(ids.ID("")).SchemaType(text).Immutable().Comment("owning tenant"),
		field.String("project_id").GoType(ids.ID("")).SchemaType(text).Immutable().Comment("owning project"),
	}
}

// referred adds what foreign keys with the tenant in them refer to.
type referred struct{ mixin.Schema }

// Indexes of the key that carries the tenant.
func (referred) Indexes() []ent.Index {
	return []ent.Index{index.Fields("id", "tenant_id").Unique()}
}
