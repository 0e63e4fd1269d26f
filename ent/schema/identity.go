package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Tenant is a customer of the platform.
type Tenant struct{ ent.Schema }

// Annotations of the table.
func (Tenant) Annotations() []schema.Annotation {
	return append(table("tenant"), Pipelined{Omit: map[string]bool{}, Lists: map[string]bool{"domains": true}})
}

// Mixin of the table.
func (Tenant) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (Tenant) Fields() []ent.Field {
	return []ent.Field{
		field.String("slug").SchemaType(text).Unique().Comment("short name"),
		str("display_name", "name for people"),
		field.Strings("domains").Optional().Comment("domains of addresses that the platform's staff has verified to " +
			"be the tenant's"),
		field.Bool("platform").Default(false).Comment("the platform's own: system apps run in its " +
			"projects, and no one is billed"),
		created(),
	}
}

// Indexes of the table: the platform has one tenant of its own at most.
func (Tenant) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("platform").Unique().StorageKey("tenant_one_platform").Annotations(entsql.IndexWhere("platform")),
	}
}

// Project is where a tenant's allocations and instances live.
type Project struct{ ent.Schema }

// Annotations of the table. The reads leave out when it was deleted.
func (Project) Annotations() []schema.Annotation { return pipelined("project", "deleted_at") }

// Mixin of the table.
func (Project) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (Project) Fields() []ent.Field {
	return []ent.Field{
		id("tenant_id", "owning tenant"),
		field.String("slug").SchemaType(text).Comment("short name, unique in the tenant"),
		str("display_name", "name for people"),
		field.Int("max_members").Optional().Nillable().Comment("most members that its instances may have; none for " +
			"no bound"),
		field.Int("max_gpus").Optional().Nillable().Comment(
			"most GPUs that its allocations may hold; none for no bound"),
		field.Int("max_volume_gib").Optional().Nillable().Comment(
			"most GiB that its volumes may have; none for no bound"),
		instant("deleted_at", "when it was deleted; its credentials ended then"),
		created(),
	}
}

// Indexes of the table.
func (Project) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("tenant_id", "slug").Unique(),
		index.Fields("id", "tenant_id").Unique(),
	}
}

// User is a person.
type User struct{ ent.Schema }

// Annotations of the table.
func (User) Annotations() []schema.Annotation { return pipelined("person") }

// Mixin of the table.
func (User) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (User) Fields() []ent.Field {
	return []ent.Field{
		optionalID("tenant_id", "the person's tenant; none for platform staff"),
		field.String("email").SchemaType(text).Comment("names the person in the tenant, or among the staff; no " +
			"authority"),
		str("display_name", "name for people"),
		instant("disabled_at", "when the person was disabled; no one can log in as them since"),
		instant("last_login_at", "when the person last logged in"),
		instant("invited_at", "since when an invitation waits to be accepted; none for whom the platform or a "+
			"verified domain vouches"),
		instant("invitation_ends_at", "until when the code that they were given works; none without one"),
		instant("accepted_at", "when the person accepted it"),
		created(),
	}
}

// Indexes of the table.
func (User) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("tenant_id", "id"),
		index.Fields("email"),
		index.Fields("tenant_id", "email").Unique().StorageKey("person_tenant_email"),
		index.Fields("email").Unique().StorageKey("person_staff_email").
			Annotations(entsql.IndexWhere("tenant_id IS NULL")),
	}
}

// Invitation is the code with which a person accepts to belong to a tenant; only its hash is kept.
type Invitation struct{ ent.Schema }

// Annotations of the table.
func (Invitation) Annotations() []schema.Annotation { return table("invitation") }

// Mixin of the table.
func (Invitation) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (Invitation) Fields() []ent.Field {
	return []ent.Field{
		id("user_id", "who is invited"),
		field.Bytes("secret_hash").Comment("SHA-256 of the code's secret"),
		optionalID("attempt_id", "the login at the identity provider that was begun with it last"),
		field.Time("expires_at").Comment("when it stops working"),
		created(),
	}
}

// Indexes of the table: old invitations are forgotten by age.
func (Invitation) Indexes() []ent.Index {
	return []ent.Index{index.Fields("user_id"), index.Fields("attempt_id"), index.Fields("expires_at")}
}

// Session is a person's login.
type Session struct{ ent.Schema }

// Annotations of the table.
func (Session) Annotations() []schema.Annotation { return table("session") }

// Mixin of the table.
func (Session) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (Session) Fields() []ent.Field {
	return []ent.Field{
		id("user_id", "who logged in"),
		field.Bytes("secret_hash").Comment("SHA-256 of the token's secret"),
		field.Time("expires_at").Comment("when it ends"),
		instant("revoked_at", "when it was ended early"),
		str("method", "how the login was proved: link or oidc"),
		str("origin", "address it was begun from"),
		str("agent", "what the client called itself, cut short"),
		optionalID("replaced_by", "the session that took its place when it was rotated"),
		created(),
	}
}

// Indexes of the table.
func (Session) Indexes() []ent.Index { return []ent.Index{index.Fields("user_id")} }

// LoginCode is a one-time login of a person, for development and for the first operator.
type LoginCode struct{ ent.Schema }

// Annotations of the table.
func (LoginCode) Annotations() []schema.Annotation { return table("login_code") }

// Mixin of the table.
func (LoginCode) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (LoginCode) Fields() []ent.Field {
	return []ent.Field{
		id("user_id", "who may log in"),
		field.Bytes("secret_hash").Comment("SHA-256 of the code's secret"),
		field.Time("expires_at").Comment("when it stops working"),
		instant("used_at", "when it was used"),
		created(),
	}
}

// ExternalIdentity ties a person to a subject of an identity provider: the issuer and its subject identify the person,
// never an email address.
type ExternalIdentity struct{ ent.Schema }

// Annotations of the table.
func (ExternalIdentity) Annotations() []schema.Annotation { return table("external_identity") }

// Mixin of the table.
func (ExternalIdentity) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (ExternalIdentity) Fields() []ent.Field {
	return []ent.Field{
		id("user_id", "the person"),
		field.String("issuer").SchemaType(text).Comment("exact issuer"),
		field.String("subject").SchemaType(text).Comment("the issuer's own id of the person"),
		str("email", "what the issuer last called them; no authority"),
		instant("last_login_at", "when it was last used"),
		created(),
	}
}

// Indexes of the table.
func (ExternalIdentity) Indexes() []ent.Index {
	return []ent.Index{index.Fields("issuer", "subject").Unique(), index.Fields("user_id")}
}

// LoginAttempt is a login at an identity provider that has begun and not come back yet.
type LoginAttempt struct{ ent.Schema }

// Annotations of the table.
func (LoginAttempt) Annotations() []schema.Annotation { return table("login_attempt") }

// Mixin of the table.
func (LoginAttempt) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (LoginAttempt) Fields() []ent.Field {
	return []ent.Field{
		field.Bytes("state_hash").Comment("SHA-256 of the state that comes back"),
		field.Bytes("browser_hash").Comment("SHA-256 of the cookie that the same browser shows"),
		str("nonce", "what the ID token must hold"),
		str("verifier", "the PKCE code verifier"),
		str("return_to", "the console's path to go on at"),
		field.Time("expires_at").Comment("when it stops working"),
		instant("used_at", "when it came back"),
		created(),
	}
}

// Indexes of the table: old attempts are forgotten by age.
func (LoginAttempt) Indexes() []ent.Index { return []ent.Index{index.Fields("expires_at")} }

// ServiceAccount is an automation identity of one project.
type ServiceAccount struct{ ent.Schema }

// Annotations of the table.
func (ServiceAccount) Annotations() []schema.Annotation { return pipelined("service_account") }

// Mixin of the table.
func (ServiceAccount) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}, referred{}} }

// Fields of the table.
func (ServiceAccount) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").SchemaType(text).Comment("unique in the project"),
		field.Strings("permission_keys").Comment("the keys it may use"),
		jsonb("limits", "objects, highest risk and operations an hour that it is bound to; missing for none"),
		instant("deleted_at", "when it was deleted; its keys ended then"),
		optionalID("maker_id",
			"who is responsible for it: it may not use what this person can no longer grant; none for older ones"),
		optionalID("made_under",
			"the break-glass binding without which it could not have been created: it ends with that"),
		field.Time("updated_at").Default(now),
		created(),
	}
}

// Indexes of the table.
func (ServiceAccount) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("project_id", "name").Unique().StorageKey("service_account_name_live").
			Annotations(entsql.IndexWhere("deleted_at IS NULL")),
		index.Fields("id", "project_id").Unique(), // what names an account with its project refers to it
	}
}

// ServiceAccountKey is a secret of a service account; only its hash is kept.
type ServiceAccountKey struct{ ent.Schema }

// Annotations of the table. The reads leave out the hash, which no caller's login role can read.
func (ServiceAccountKey) Annotations() []schema.Annotation {
	return pipelined("service_account_key", "secret_hash")
}

// Mixin of the table.
func (ServiceAccountKey) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, owned{}} }

// Fields of the table.
func (ServiceAccountKey) Fields() []ent.Field {
	return []ent.Field{
		id("service_account_id", "whom it speaks for"),
		field.Bytes("secret_hash").Comment("SHA-256 of the secret"),
		instant("expires_at", "when it stops working"),
		instant("revoked_at", "when it was revoked"),
		instant("last_used_at", "when it was last used, to the minute"),
		optionalID("replaced_by", "the key that takes its place; both work until this one ends"),
		optionalID("maker_id", "who is responsible for it, as for an account"),
		optionalID("made_under", "the break-glass binding that it ends with"),
		created(),
	}
}

// Indexes of the table.
func (ServiceAccountKey) Indexes() []ent.Index {
	return []ent.Index{index.Fields("service_account_id")}
}

// RoleBinding gives a person a role at the platform, a tenant or a project.
type RoleBinding struct{ ent.Schema }

// Annotations of the table.
func (RoleBinding) Annotations() []schema.Annotation { return pipelined("role_binding") }

// Mixin of the table.
func (RoleBinding) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

// Fields of the table.
func (RoleBinding) Fields() []ent.Field {
	return []ent.Field{
		id("user_id", "who holds the role"),
		field.String("role").SchemaType(text).Comment("role name"),
		optionalID("tenant_id", "limit; none at platform scope"),
		optionalID("project_id", "limit; none at platform or tenant scope"),
		instant("expires_at", "when it ends"),
		instant("revoked_at", "when it was taken away"),
		str("granted_by", "who gave it"),
		str("reason", "why it was given"),
		field.Bool("break_glass").Default(false).Comment("given by a break-glass mutation"),
		optionalID("made_under",
			"the break-glass binding without which it could not have been given: it ends with that"),
		created(),
	}
}

// Indexes of the table.
func (RoleBinding) Indexes() []ent.Index {
	return []ent.Index{index.Fields("user_id"), index.Fields("tenant_id", "id"), index.Fields("project_id", "id")}
}
