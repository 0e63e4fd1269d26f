package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// App is a name in the catalog.
type App struct{ ent.Schema }

// Annotations of the table.
func (App) Annotations() []schema.Annotation { return table("app") }

// Mixin of the table.
func (App) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (App) Fields() []ent.Field {
	return []ent.Field{
		field.String("slug").SchemaType(text).Unique().Comment("short name"),
		str("display_name", "name for people"),
		str("summary", "one line"),
		field.String("permission_family").SchemaType(text).Comment("apps or scheduler"),
		created(),
	}
}

// Artifact is something in a registry, pinned by digest.
type Artifact struct{ ent.Schema }

// Annotations of the table.
func (Artifact) Annotations() []schema.Annotation { return table("artifact") }

// Mixin of the table.
func (Artifact) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (Artifact) Fields() []ent.Field {
	return []ent.Field{
		str("name", "name for people"),
		str("media_type", "media type of what it holds"),
		str("ref", "host/repository@digest"),
		field.String("digest").SchemaType(text).Unique().Comment("SHA-256 of its manifest's bytes"),
		field.Int64("size_bytes").Default(0).Comment("manifest and layers together, bytes"),
		field.Enum("stage").GoType(lifecycle.Stage("")).Default(string(lifecycle.StageDraft)),
		jsonb("evidence", "what checking it found"),
		created(),
	}
}

// Manifest is an immutable version of an app.
type Manifest struct{ ent.Schema }

// Annotations of the table.
func (Manifest) Annotations() []schema.Annotation { return table("manifest") }

// Mixin of the table.
func (Manifest) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (Manifest) Fields() []ent.Field {
	return []ent.Field{
		id("app_id", "the app"),
		field.String("app_slug").SchemaType(text).Comment("the app's short name"),
		field.String("version").SchemaType(text).Comment("semantic version"),
		str("display_name", "name for people"),
		str("summary", "one line"),
		field.Enum("stage").GoType(lifecycle.Stage("")).Default(string(lifecycle.StageDraft)),
		field.String("digest").SchemaType(text).Comment("SHA-256 of the document's bytes"),
		field.Bytes("document").Immutable().Comment("the document's bytes as published: jsonb would reorder what the digest covers"),
		field.String("adapter_name").SchemaType(text).Comment("the registered adapter that runs it"),
		jsonb("evidence", "what lint and smoke found"),
		created(),
	}
}

// Indexes of the table: one version once, one active manifest an app.
func (Manifest) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("app_slug", "version").Unique(),
		index.Fields("app_slug").Unique().StorageKey("manifest_one_active").
			Annotations(entsql.IndexWhere("((stage)::text = 'ACTIVE'::text)")),
		index.Fields("app_slug", "id"),
	}
}

// ManifestArtifact says which artifacts a manifest pins.
type ManifestArtifact struct{ ent.Schema }

// Annotations of the table.
func (ManifestArtifact) Annotations() []schema.Annotation { return table("manifest_artifact") }

// Mixin of the table.
func (ManifestArtifact) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (ManifestArtifact) Fields() []ent.Field {
	return []ent.Field{
		id("manifest_id", "the manifest"),
		id("artifact_id", "the artifact"),
	}
}

// Indexes of the table.
func (ManifestArtifact) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("manifest_id", "artifact_id").Unique(),
		index.Fields("artifact_id"),
	}
}

// Adapter is an adapter the platform may call.
type Adapter struct{ ent.Schema }

// Annotations of the table.
func (Adapter) Annotations() []schema.Annotation { return table("adapter") }

// Mixin of the table.
func (Adapter) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (Adapter) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").SchemaType(text).Unique().Comment("audience of signed requests"),
		field.String("url").SchemaType(text).Comment("base address"),
		jsonb("description", "what it last said of itself"),
		instant("last_seen_at", "when it last answered"),
		str("last_error", "why it could not be reached"),
		str("feed_epoch", "epoch of its operations feed"),
		str("feed_cursor", "how far its operations feed was read"),
		optionalID("feed_holder", "the worker process that holds its long poll"),
		created(),
	}
}

// Entitlement lets a project launch an app.
type Entitlement struct{ ent.Schema }

// Annotations of the table.
func (Entitlement) Annotations() []schema.Annotation { return table("entitlement") }

// Mixin of the table.
func (Entitlement) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}} }

// Fields of the table.
func (Entitlement) Fields() []ent.Field {
	return []ent.Field{
		field.String("app_slug").SchemaType(text).Comment("the app"),
		str("granted_by", "who gave it"),
		str("reason", "why it was given"),
		field.Int("max_instances").Optional().Nillable().Comment("most live instances of the app; none for no bound"),
		field.Int("max_members").Optional().Nillable().Comment("most members of one instance; none for no bound"),
		field.Int("max_gpus").Optional().Nillable().Comment("most GPUs of one instance's allocations; none for no bound"),
		field.Strings("versions").Optional().Comment("version constraints, any of which lets a version in; none for all"),
		instant("expires_at", "when it ends"),
		instant("revoked_at", "when it was taken away"),
		created(),
	}
}

// Indexes of the table: at most one that holds.
func (Entitlement) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("project_id", "app_slug").Unique().StorageKey("entitlement_one_live").
			Annotations(entsql.IndexWhere("revoked_at IS NULL")),
	}
}
