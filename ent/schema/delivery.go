package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// ArtifactSource is a place that artifacts may come from: the platform's, or a tenant's own. Its credential is in
// custody.
type ArtifactSource struct{ ent.Schema }

// Annotations of the table. The reads leave out the credential, which no caller's login role can read.
func (ArtifactSource) Annotations() []schema.Annotation {
	return pipelined("artifact_source", "credential")
}

// Mixin of the table.
func (ArtifactSource) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, referred{}} }

// Fields of the table.
func (ArtifactSource) Fields() []ent.Field {
	return []ent.Field{
		optionalID("tenant_id", "the tenant whose source it is; none for the platform's, which all may use"),
		field.String("name").SchemaType(text).Comment("short name, unique among its owner's"),
		field.Enum("kind").GoType(lifecycle.SourceKind("")),
		field.String("location").SchemaType(text).Immutable().
			Comment("what it covers: host[/path] of a registry, or an " +
				"https address that ends with a slash"),
		str("region", "an object store's region"),
		field.Enum("signature_policy").GoType(lifecycle.SignaturePolicy("")).
			Default(string(lifecycle.SignatureRequired)),
		str("credential_user", "user name or access key id of its credential; empty when there is none"),
		field.Bytes("credential").Optional().Comment("the enveloped password or secret key"),
		str("keeper", "the keeper that wrapped the credential's key"),
		instant("credential_at", "when the credential was set"),
		instant("disabled_at", "when it was switched off"),
		str("created_by", "who added it"),
		created(),
	}
}

// Indexes of the table: names are unique among an owner's, and so are the locations of what is switched on, so that one
// source answers for an artifact.
func (ArtifactSource) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("name").Unique().StorageKey("artifact_source_platform_name").
			Annotations(entsql.IndexWhere("tenant_id IS NULL")),
		index.Fields("tenant_id",
			"name").Unique().StorageKey("artifact_source_tenant_name").
			Annotations(entsql.IndexWhere("tenant_id IS NOT NULL")),
		index.Fields("location").Unique().StorageKey("artifact_source_platform_location").
			Annotations(entsql.IndexWhere("((disabled_at IS NULL) AND (tenant_id IS NULL))")),
		index.Fields("tenant_id", "location").Unique().StorageKey("artifact_source_tenant_location").
			Annotations(entsql.IndexWhere("((disabled_at IS NULL) AND (tenant_id IS NOT NULL))")),
	}
}

// SignerKey is a public key whose signatures count at a source.
type SignerKey struct{ ent.Schema }

// Annotations of the table.
func (SignerKey) Annotations() []schema.Annotation { return pipelined("signer_key") }

// Mixin of the table.
func (SignerKey) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (SignerKey) Fields() []ent.Field {
	return []ent.Field{
		id("source_id", "the source"),
		optionalID("tenant_id", "the source's tenant; none for the platform's"),
		field.String("name").SchemaType(text).Comment("name for people"),
		field.String("public_key").SchemaType(text).Immutable().
			Comment("PEM of a PKIX public key: ECDSA P-256 or Ed25519"),
		field.String("fingerprint").SchemaType(text).Immutable().Comment("SHA-256 of the key's PKIX DER, sha256:…"),
		field.String("algorithm").SchemaType(text).Immutable().Comment("ecdsa-p256 or ed25519"),
		field.Time("valid_from").Comment("from when signatures by it count"),
		instant("valid_until", "until when they count; none for no end"),
		instant("revoked_at", "when it was revoked"),
		str("revoke_reason", "why it was revoked"),
		str("created_by", "who added it"),
		created(),
	}
}

// Indexes of the table: a key once at a source.
func (SignerKey) Indexes() []ent.Index {
	return []ent.Index{index.Fields("source_id", "fingerprint").Unique()}
}

// ArtifactPart is a part of an artifact, by its own digest: only these may be delivered of the artifact.
type ArtifactPart struct{ ent.Schema }

// Annotations of the table.
func (ArtifactPart) Annotations() []schema.Annotation { return pipelined("artifact_part") }

// Mixin of the table.
func (ArtifactPart) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (ArtifactPart) Fields() []ent.Field {
	return []ent.Field{
		id("artifact_id", "the artifact"),
		optionalID("tenant_id", "the artifact's tenant; none for the platform's"),
		field.Int("position").Comment("its place, from 0: a manifest before what it lists"),
		field.Enum("role").GoType(lifecycle.PartRole("")),
		field.String("digest").SchemaType(text).Comment("SHA-256 of its bytes, sha256:…"),
		str("media_type", "media type"),
		field.Int64("size_bytes").Comment("bytes"),
		str("platform", "the platform that an index lists it for, such as linux/amd64; of a manifest alone"),
		str("title", "the file name that an artifact's manifest gives it"),
		field.String("parent").SchemaType(text).Default("").Comment(
			"digest of the manifest that lists it; empty for the " +
				"artifact itself"),
	}
}

// Indexes of the table: a digest once under a manifest.
func (ArtifactPart) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("artifact_id", "position").Unique(),
		index.Fields("artifact_id", "digest"),
	}
}

// PromotionEvidence is a report that a publisher brings for a manifest. Append only.
type PromotionEvidence struct{ ent.Schema }

// Annotations of the table. The reads leave out the report's bytes.
func (PromotionEvidence) Annotations() []schema.Annotation {
	return pipelined("promotion_evidence", "report")
}

// Mixin of the table.
func (PromotionEvidence) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (PromotionEvidence) Fields() []ent.Field {
	return []ent.Field{
		id("manifest_id", "the manifest that it is for"),
		optionalID("tenant_id", "the tenant that publishes the app; none for the platform's"),
		field.Enum("kind").GoType(lifecycle.EvidenceKind("")),
		field.String("digest").SchemaType(text).Comment("SHA-256 of the report's bytes, sha256:…"),
		field.Bytes("report").Immutable().Comment("the report's bytes as they were submitted"),
		jsonb("summary", "what the report comes to"),
		field.Bool("passed").Comment("whether everything in it passed"),
		str("submitted_by", "who submitted it"),
		str("runner_id", "the runner that signed it; empty when no runner did"),
		created(),
	}
}

// Indexes of the table: the same report once.
func (PromotionEvidence) Indexes() []ent.Index {
	return []ent.Index{index.Fields("manifest_id", "kind", "digest", "runner_id").Unique()}
}

// ArtifactSmoke is a signed report of a smoke of an artifact's kind.
type ArtifactSmoke struct{ ent.Schema }

// Annotations of the table. The reads leave out the report's bytes.
func (ArtifactSmoke) Annotations() []schema.Annotation { return pipelined("artifact_smoke", "report") }

// Mixin of the table.
func (ArtifactSmoke) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (ArtifactSmoke) Fields() []ent.Field {
	return []ent.Field{
		id("artifact_id", "the artifact that it is for"),
		optionalID("tenant_id", "the tenant whose artifact it is; none for the platform's"),
		field.String("digest").SchemaType(text).Comment("SHA-256 of the report's bytes, sha256:…"),
		field.Bytes("report").Immutable().Comment("the report's bytes as they were submitted"),
		jsonb("summary", "what the report comes to"),
		field.Bool("passed").Comment("whether every check of the kind passed"),
		str("submitted_by", "who submitted it"),
		field.String("runner_id").SchemaType(text).Comment("the runner that signed it"),
		created(),
	}
}

// Indexes of the table: the same report once.
func (ArtifactSmoke) Indexes() []ent.Index {
	return []ent.Index{index.Fields("artifact_id", "digest", "runner_id").Unique()}
}

// EvidenceRunner is a machine that runs the conformance suite and signs its reports. The platform's operators trust it.
type EvidenceRunner struct{ ent.Schema }

// Annotations of the table.
func (EvidenceRunner) Annotations() []schema.Annotation { return pipelined("evidence_runner") }

// Mixin of the table.
func (EvidenceRunner) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (EvidenceRunner) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").SchemaType(text).Unique().Comment("what to call it"),
		field.String("public_key").SchemaType(text).Unique().Comment("Ed25519, base64"),
		str("created_by", "who registered it"),
		instant("revoked_at", "when its reports ceased to count"),
		str("revoke_reason", "why"),
		created(),
	}
}

// Promotion is a step of an artifact or a manifest from stage to stage. Append only.
type Promotion struct{ ent.Schema }

// Annotations of the table.
func (Promotion) Annotations() []schema.Annotation { return pipelined("promotion") }

// Mixin of the table.
func (Promotion) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (Promotion) Fields() []ent.Field {
	return []ent.Field{
		id("object_id", "the artifact or manifest"),
		optionalID("tenant_id", "the tenant of a tenant's artifact; none for everything else"),
		field.Enum("from_stage").GoType(lifecycle.Stage("")),
		field.Enum("to_stage").GoType(lifecycle.Stage("")),
		field.Int("canary_percent").Optional().Nillable().Comment(
			"percent of the projects, of a step to CANARY and of a " +
				"change within it"),
		str("reason", "why"),
		str("override", "why the terms of the step were set aside; empty when they were met"),
		str("actor_kind", "what sort of subject took it"),
		str("actor_id", "who took it"),
		str("actor_name", "who took it, by name"),
		created(),
	}
}

// Indexes of the table: an object's history.
func (Promotion) Indexes() []ent.Index {
	return []ent.Index{index.Fields("object_id", "id")}
}
