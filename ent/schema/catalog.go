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
func (App) Annotations() []schema.Annotation { return pipelined("app") }

// Mixin of the table.
func (App) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (App) Fields() []ent.Field {
	return []ent.Field{
		field.String("slug").SchemaType(text).Unique().Comment("short name"),
		str("display_name", "name for people"),
		str("summary", "one line"),
		field.String("permission_family").SchemaType(text).Comment("apps or scheduler"),
		optionalID("publisher_tenant_id", "the tenant of its publisher; none for the platform's"),
		optionalID("publisher_project_id", "the project that publishes it; none for the platform's"),
		jsonb("promotion_terms", "what a version's steps need; none for the platform's defaults"),
		field.Bool("sandbox").Default(false).Comment("only its publisher's project may launch it, and only the " +
			"tenant sees it"),
		field.Bool("system").Default(false).Comment("the operator runs it for the platform: only projects of its own " +
			"tenant launch it"),
		created(),
	}
}

// Artifact is something in a registry, pinned by digest.
type Artifact struct{ ent.Schema }

// Annotations of the table.
func (Artifact) Annotations() []schema.Annotation {
	return append(table("artifact"), Pipelined{Omit: map[string]bool{}, Lists: map[string]bool{"platforms": true}})
}

// Mixin of the table.
func (Artifact) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, referred{}} }

// Fields of the table.
func (Artifact) Fields() []ent.Field {
	return []ent.Field{
		str("name", "name for people"),
		str("media_type", "media type of what it holds"),
		str("ref", "host/repository@digest"),
		field.String("digest").SchemaType(text).Comment("SHA-256 of its manifest's bytes, or of a blob's"),
		field.Int64("size_bytes").Default(0).Comment("manifest and layers together, bytes"),
		field.Enum("stage").GoType(lifecycle.Stage("")).Default(string(lifecycle.StageDraft)),
		jsonb("evidence", "what checking it found"),
		field.Enum("kind").GoType(lifecycle.ArtifactKind("")).Default(string(lifecycle.ArtifactImage)),
		optionalID("source_id", "where it comes from; none for what was published before there were sources"),
		optionalID("tenant_id", "the tenant whose artifact it is; none for the platform's"),
		optionalID("project_id", "the project that published it; none for the tenant's and the platform's"),
		field.Strings("platforms").Optional().Comment("of images: such as linux/amd64"),
		field.Enum("signature").GoType(lifecycle.SignatureState("")).Default(string(lifecycle.SignatureNotChecked)),
		optionalID("signer_key_id", "the trusted key that signed it"),
		instant("quarantined_at", "since when no one gets it; none when it is not in quarantine"),
		str("quarantine_code",
			"why it is in quarantine, a code of the catalogue of faults; empty when a person put it there"),
		str("quarantine_reason", "why it is in quarantine, for people"),
		instant("verified_at", "when its bytes were last read and checked against their digests"),
		created(),
	}
}

// Indexes of the table: a digest once among an owner's, and the lists.
func (Artifact) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("digest").Unique().StorageKey("artifact_platform_digest").
			Annotations(entsql.IndexWhere("tenant_id IS NULL")),
		index.Fields("tenant_id",
			"digest").Unique().StorageKey("artifact_tenant_digest").
			Annotations(entsql.IndexWhere("tenant_id IS NOT NULL")),
		index.Fields("digest"),
		index.Fields("source_id"),
	}
}

// Manifest is an immutable version of an app.
type Manifest struct{ ent.Schema }

// Annotations of the table.
func (Manifest) Annotations() []schema.Annotation { return pipelined("manifest") }

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
		field.Bytes("document").Immutable().Comment("the document's bytes as published: jsonb would reorder what the " +
			"digest covers"),
		field.String("adapter_name").SchemaType(text).Comment("the registered adapter that runs it"),
		jsonb("evidence", "what lint and smoke found"),
		field.String("artifact_kind").SchemaType(text).Default("controller").
			Comment("oci, launchable or controller, as " +
				"the document says"),
		field.Int("canary_percent").Default(0).Comment("percent of the projects that its canary takes in"),
		instant("canary_started_at", "when its canary began"),
		instant("canary_halted_at", "when its canary was halted; none while it is not"),
		str("canary_halt_reason", "why it was halted"),
		field.Bool("sandbox").Default(false).Comment("its app is in a sandbox: only the publisher's tenant sees it"),
		field.Bool("system").Default(false).Comment("its app is the platform's own: tenants do not see it"),
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
		index.Fields("app_slug").Unique().StorageKey("manifest_one_canary").
			Annotations(entsql.IndexWhere("((stage)::text = 'CANARY'::text)")),
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
		field.Bool("sandbox").Default(false).Comment("the manifest's app is in a sandbox: the pin " +
			"hides the artifact from no one"),
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

// Annotations of the table. Only workers read its operations feed.
func (Adapter) Annotations() []schema.Annotation {
	return pipelined("adapter", "feed_epoch", "feed_cursor", "feed_holder")
}

// Mixin of the table.
func (Adapter) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (Adapter) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").SchemaType(text).Unique().Comment("audience of signed requests"),
		field.String("url").SchemaType(text).Comment("base address"),
		str("authority", "PEM certificates that alone vouch for it by https; empty for none"),
		jsonb("description", "what it last reported about itself"),
		instant("last_seen_at", "when it last answered"),
		str("last_error", "why it could not be reached"),
		field.Bool("narrow_calls").Default(false).Comment("calls that only read have task.inspect, not task.run"),
		str("feed_epoch", "epoch of its operations feed"),
		str("feed_cursor", "how far its operations feed was read"),
		optionalID("feed_holder", "the worker process that holds its long poll"),
		optionalID("tenant_id", "the tenant that registered it for itself; none for the platform's"),
		optionalID("project_id", "the project whose sandbox it is in; none for the platform's"),
		optionalID("service_account_id",
			"the service account that it acts by where it automates; none when it does not"),
		created(),
	}
}

// Indexes of the table.
func (Adapter) Indexes() []ent.Index {
	return []ent.Index{index.Fields("project_id").Annotations(entsql.IndexWhere("project_id IS NOT NULL"))}
}

// Entitlement lets a project launch an app.
type Entitlement struct{ ent.Schema }

// Annotations of the table.
func (Entitlement) Annotations() []schema.Annotation { return pipelined("entitlement") }

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
		field.Int("max_gpus").Optional().Nillable().Comment(
			"most GPUs of one instance's allocations; none for no bound"),
		field.Strings("versions").Optional().Comment(
			"version constraints, any of which lets a version in; none for all"),
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
