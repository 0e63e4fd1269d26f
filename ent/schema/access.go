package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// PolicyOverlay is a revision of the policy of the platform, a tenant or a project. Append only but for
// superseded_at.
type PolicyOverlay struct{ ent.Schema }

// Annotations of the table.
func (PolicyOverlay) Annotations() []schema.Annotation { return pipelined("policy_overlay") }

// Mixin of the table.
func (PolicyOverlay) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (PolicyOverlay) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("scope").GoType(lifecycle.PolicyScope("")),
		optionalID("tenant_id", "the tenant; none at platform scope"),
		optionalID("project_id", "the project; none at platform and tenant scope"),
		field.Int("revision").Comment("number in its scope, from 1"),
		jsonb("document", "the rules"),
		str("reason", "why it was written"),
		str("updated_by", "who wrote it"),
		instant("superseded_at", "when the next revision took its place"),
		created(),
	}
}

// Indexes of the table: one that holds for each place.
func (PolicyOverlay) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("scope").Unique().StorageKey("policy_overlay_platform_live").
			Annotations(entsql.IndexWhere("((superseded_at IS NULL) AND (tenant_id IS NULL))")),
		index.Fields("tenant_id").Unique().StorageKey("policy_overlay_tenant_live").
			Annotations(entsql.IndexWhere(
				"((superseded_at IS NULL) AND (tenant_id IS NOT NULL) AND (project_id IS NULL))")),
		index.Fields("project_id").Unique().StorageKey("policy_overlay_project_live").
			Annotations(entsql.IndexWhere("((superseded_at IS NULL) AND (project_id IS NOT NULL))")),
		index.Fields("tenant_id", "project_id", "revision"),
	}
}

// ControlPlaneShare is the offer of a tenant's shared control plane to another of its projects. project_id is
// the project that it is offered to.
type ControlPlaneShare struct{ ent.Schema }

// Annotations of the table.
func (ControlPlaneShare) Annotations() []schema.Annotation { return pipelined("control_plane_share") }

// Mixin of the table.
func (ControlPlaneShare) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}} }

// Fields of the table.
func (ControlPlaneShare) Fields() []ent.Field {
	return []ent.Field{
		id("instance_id", "the shared instance"),
		id("owner_project_id", "the project that the instance lives in"),
		field.Enum("status").GoType(lifecycle.ShareStatus("")).Default(string(lifecycle.ShareOffered)),
		str("reason", "why it was offered"),
		str("offered_by", "who offered it"),
		str("answered_by", "who accepted or declined it"),
		str("ended_by", "who withdrew or detached it"),
		str("end_reason", "why it was declined, withdrawn or detached"),
		instant("answered_at", "when it was accepted or declined"),
		instant("ended_at", "when it was withdrawn, declined or detached"),
		created(),
	}
}

// Indexes of the table: one open share for an instance and a project.
func (ControlPlaneShare) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("instance_id", "project_id").Unique().StorageKey("control_plane_share_open").
			Annotations(entsql.IndexWhere("ended_at IS NULL")),
		index.Fields("project_id", "id"),
		index.Fields("owner_project_id", "id"),
	}
}

// RuntimeSecret is a secret of an instance in custody: the value is enveloped, and delivered only to the recipient that
// it is bound to.
type RuntimeSecret struct{ ent.Schema }

// Annotations of the table.
func (RuntimeSecret) Annotations() []schema.Annotation { return table("runtime_secret") }

// Mixin of the table.
func (RuntimeSecret) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}} }

// Fields of the table.
func (RuntimeSecret) Fields() []ent.Field {
	return []ent.Field{
		id("instance_id", "the instance"),
		optionalID("member_id", "the member that it is for; none for the whole instance"),
		optionalID("node_id", "the node that may take delivery; none for the adapter"),
		field.String("purpose").SchemaType(text).Comment("what it is for, as the manifest declares it"),
		field.Enum("audience").GoType(lifecycle.SecretAudience("")),
		field.Enum("delivery").GoType(lifecycle.SecretDelivery("")),
		jsonb("spec", "what it is created for, such as an artifact's digest; no secret"),
		field.Int("version").Default(1).Comment("number of the value, raised by rotation"),
		field.Bytes("sealed").Optional().Comment("the enveloped value; wiped when it can be delivered no more"),
		str("keeper", "the keeper that wrapped the value's key"),
		field.Bytes("previous").Optional().Comment("the enveloped value before the last rotation, while both work"),
		instant("previous_until", "until when the value before still counts"),
		field.Int("deliveries").Default(0).Comment("how often this version was delivered"),
		instant("delivered_at", "when it was last delivered"),
		field.Time("expires_at").Comment("when it can be delivered no more"),
		instant("rotated_at", "when it was last rotated"),
		instant("revoked_at", "when it was revoked"),
		str("actor_kind", "what sort of subject issued it"),
		str("actor_id", "who issued it"),
		str("actor_name", "who issued it, by name"),
		created(),
	}
}

// Indexes of the table: the lists, and what is due to be wiped.
func (RuntimeSecret) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("instance_id", "id"),
		index.Fields("node_id").Annotations(entsql.IndexWhere("node_id IS NOT NULL")),
		index.Fields("expires_at").StorageKey("runtime_secret_due").
			Annotations(entsql.IndexWhere("sealed IS NOT NULL")),
	}
}

// AuditLink is a link of the audit's hash chain: link = SHA-256(link before || leaf), leaf = SHA-256 of the
// entry's canonical form. Append only.
type AuditLink struct{ ent.Schema }

// Annotations of the table.
func (AuditLink) Annotations() []schema.Annotation { return table("audit_link") }

// Fields of the table.
func (AuditLink) Fields() []ent.Field {
	return []ent.Field{
		field.Int("id").Immutable().StorageKey("seq").Comment("place in the chain, from 1, without gaps"),
		id("entry_id", "the entry"),
		field.Bytes("leaf").Comment("SHA-256 of the entry's canonical form"),
		field.Bytes("link").Comment("SHA-256 of the link before and the leaf"),
		field.Time("sealed_at").Default(now).Immutable(),
	}
}

// Indexes of the table.
func (AuditLink) Indexes() []ent.Index { return []ent.Index{index.Fields("entry_id").Unique()} }

// AuditCheckpoint is a signed statement of the last link of the chain at a time. Append only.
type AuditCheckpoint struct{ ent.Schema }

// Annotations of the table.
func (AuditCheckpoint) Annotations() []schema.Annotation { return table("audit_checkpoint") }

// Mixin of the table.
func (AuditCheckpoint) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (AuditCheckpoint) Fields() []ent.Field {
	return []ent.Field{
		field.Int("seq").Unique().Comment("the link it signs"),
		field.Bytes("link").Comment("that link"),
		field.String("signature").SchemaType(text).Comment("JWS, compact, of seq, link and time"),
		created(),
	}
}

// Webhook is a subscription of a project to its events by HTTP.
type Webhook struct{ ent.Schema }

// Annotations of the table. The reads leave out the secrets.
func (Webhook) Annotations() []schema.Annotation {
	return pipelined("webhook", "secret", "previous_secret")
}

// Mixin of the table.
func (Webhook) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}, referred{}} }

// Fields of the table.
func (Webhook) Fields() []ent.Field {
	return []ent.Field{
		field.String("url").SchemaType(text).Comment("where events are sent"),
		str("description", "for people"),
		field.Strings("event_types").Comment("types, or prefixes that end in .*"),
		field.Strings("families").Comment("permission families whose events are sent: those that its maker, and all " +
			"who changed its address since, may read"),
		field.Enum("status").GoType(lifecycle.WebhookStatus("")).Default(string(lifecycle.WebhookActive)),
		str("cursor", "how far the project's feed was read for it"),
		field.Bytes("secret").Optional().Comment("enveloped signing secret"),
		field.Bytes("previous_secret").Optional().Comment("enveloped secret before the last rotation, while both sign"),
		instant("previous_until", "until when the secret before still signs"),
		instant("secret_rotated_at", "when the secret was last rotated"),
		instant("last_delivered_at", "when a delivery last succeeded"),
		instant("failing_since", "since when every delivery failed"),
		str("last_error", "why the last delivery failed"),
		str("created_by", "who created it"),
		optionalID("maker_id",
			"who is responsible for it: events are sent while this subject may see them; none for older ones"),
		optionalID("made_under", "the break-glass binding that it ends with"),
		created(),
		field.Time("updated_at").Default(now),
		instant("deleted_at", "when it was deleted"),
	}
}

// Indexes of the table.
func (Webhook) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("project_id", "id"),
		index.Fields("project_id").StorageKey("webhook_served").
			Annotations(entsql.IndexWhere("((deleted_at IS NULL) AND " +
				"((status)::text = 'ACTIVE'::text))")),
	}
}

// WebhookDelivery is an event on its way to a webhook.
type WebhookDelivery struct{ ent.Schema }

// Annotations of the table.
func (WebhookDelivery) Annotations() []schema.Annotation { return pipelined("webhook_delivery") }

// Mixin of the table.
func (WebhookDelivery) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}} }

// Fields of the table.
func (WebhookDelivery) Fields() []ent.Field {
	return []ent.Field{
		id("webhook_id", "the webhook"),
		id("event_id", "the event"),
		field.String("event_type").SchemaType(text),
		field.Enum("state").GoType(lifecycle.DeliveryState("")).Default(string(lifecycle.DeliveryPending)),
		field.Int("attempts").Default(0),
		field.Int("response_status").Optional().Nillable().Comment("HTTP status of the last answer"),
		str("error", "why the last try failed"),
		instant("next_attempt_at", "when it is tried again"),
		instant("delivered_at", "when it was accepted"),
		created(),
		field.Time("updated_at").Default(now),
	}
}

// Indexes of the table: an event once to a webhook, the lists, and what is forgotten by age.
func (WebhookDelivery) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("webhook_id", "event_id").Unique(),
		index.Fields("webhook_id", "id"),
		index.Fields("webhook_id", "state", "id"),
		index.Fields("webhook_id",
			"next_attempt_at").StorageKey("webhookdelivery_due").Annotations(entsql.IndexWhere("((state)::text = " +
			"'PENDING'::text)")),
		index.Fields("updated_at"),
	}
}
