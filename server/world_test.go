package server

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// house is a tenant with one of everything that a tenant can have, by id.
type house struct {
	Tenant, Project, User, Binding, Account, Key, App, Slug, Manifest, Artifact, Adapter  ids.ID
	Node, Free, Used, Instance, Member, Operation, Step, Event, Task, Entitlement, Record ids.ID
	Generation, Orphan, Share, Sibling, Secret, Overlay, Webhook, Delivery, Session       ids.ID
	Source, Signer, Fetch, Part, Owned, Draft, Period, Run, Budget, Gap, Volume           ids.ID

	class     ids.ID // of Volume; the platform's
	project   *db.Project
	operation *db.Operation
	digest    string          // of Owned
	document  json.RawMessage // the manifest's
	line      string          // the key of a statement's line
	published string          // the app that it publishes
	// The credentials of the house.
	admin, robot, node, token string
}

// secrets are the ids that no one outside of the house may be shown. What the platform owns (apps, manifests,
// artifacts) is not among them; nodes are, since only operators see nodes.
func (h *house) secrets() []string {
	var found []string
	for name, value := range fields(h) {
		switch name {
		case "App", "Slug", "Manifest", "Artifact", "Adapter":
		default:
			found = append(found, value)
		}
	}
	slices.Sort(found)
	return found
}

// fields are the house's exported ids by name.
func fields(h *house) map[string]string {
	found := map[string]string{}
	value := reflect.ValueOf(h).Elem()
	for i := range value.NumField() {
		if field := value.Type().Field(i); field.IsExported() {
			found[field.Name] = value.Field(i).String()
		}
	}
	return found
}

// build makes a house.
func (b *bench) build() *house {
	b.t.Helper()
	tenant := b.Kit.Tenant()
	project := b.Kit.Project(tenant)
	h := &house{Tenant: tenant.ID, Project: project.ID, project: project}
	admin := b.Kit.User(tenant)
	h.User = admin.ID
	h.Binding = b.Bind(admin, platformtest.Across(authz.TenantAdmin, tenant)).ID
	b.Bind(admin, platformtest.In(authz.ProjectAdmin, project))
	h.admin = b.Session(admin)
	account, key := b.ServiceAccount(project, authz.Keys()...)
	h.Account, h.robot = account.ID, key

	app, stored := b.Launchable(project, "apps")
	h.App, h.Slug, h.Manifest, h.document = app.ID, ids.ID(app.Slug), stored.ID, stored.Document
	node, credential := b.Kit.Node(2)
	h.Node, h.node = node.ID, credential
	h.Free, h.Used = b.Allocation(project, node).ID, ""
	used := b.Allocation(project, node)
	h.Used = used.ID
	instance := b.Instance(project, stored, lifecycle.InstanceRunning, used)
	h.Instance = instance.ID
	h.operation = b.Kit.Operation(instance, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	h.Operation = h.operation.ID
	h.token = b.OperationToken(h.operation, authz.Keys()...)
	b.find(h)
	b.add(h, instance)
	b.addBooks(h)
	b.addGap(h)
	b.addVolume(h)
	for name, value := range fields(h) {
		require.NotEmpty(b.t, value, name)
	}
	return h
}

// draft is a version that the house has not released, of an app that it publishes; it pins the house's own artifact.
func (b *bench) draft(h *house) *db.Manifest {
	b.t.Helper()
	app := b.App("apps")
	b.SQL(`UPDATE app SET publisher_tenant_id = $1, publisher_project_id = $2
		WHERE id = $3`, h.Tenant, h.Project, app.ID)
	h.published = app.Slug
	owned, err := b.Ent.Artifact.Get(b.t.Context(), h.Owned)
	require.NoError(b.t, err)
	owned.MediaType = "application/vnd.oci.image.manifest.v1+json"
	return b.Kit.Manifest(lifecycle.StageDraft, platformtest.Document(app, "0.1.0",
		b.Adapter("http://adapter.test", nil), owned))
}

// enrolment is a fresh one-time token for a node of any name.
func (b *bench) enrolment() string {
	b.t.Helper()
	text, secret := token.Mint(token.Enrolment)
	require.NoError(b.t, b.Ent.NodeEnrolment.Create().SetID(secret.ID).SetNodeID(ids.New(ids.Node)).
		SetSecretHash(secret.Hash).
		SetExpiresAt(time.Now().Add(time.Hour)).Exec(b.t.Context()))
	return text
}

// find reads the ids of rows that the fixtures created beside those they returned.
func (b *bench) find(h *house) {
	one := func(to *ids.ID, statement string, args ...any) {
		require.NoError(b.t, b.Admin.QueryRow(b.t.Context(), statement, args...).Scan(to))
	}
	one(&h.Session, `SELECT id FROM session WHERE user_id = $1`, h.User)
	one(&h.Key, `SELECT id FROM service_account_key WHERE service_account_id = $1`, h.Account)
	one(&h.Entitlement, `SELECT id FROM entitlement WHERE project_id = $1`, h.Project)
	one(&h.Member, `SELECT id FROM member WHERE instance_id = $1`, h.Instance)
	one(&h.Artifact, `SELECT artifact_id FROM manifest_artifact WHERE manifest_id = $1`, h.Manifest)
	one(&h.Adapter, `SELECT a.id FROM adapter a JOIN manifest m ON m.adapter_name = a.name WHERE m.id = $1`, h.Manifest)
}

// add makes the rows that have no fixture of their own: a step, an event, a task, an audit entry.
func (b *bench) add(h *house, instance *db.Instance) {
	h.Step, h.Event, h.Task, h.Record = ids.New(ids.OperationStep), ids.New(ids.Event), ids.New(ids.NodeTask),
		ids.New(ids.Audit)
	h.Generation, h.Orphan = ids.New(ids.Generation), ids.New(ids.OrphanedResource)
	ctx := b.t.Context()
	require.NoError(b.t, b.Ent.Generation.Create().SetID(h.Generation).SetTenantID(h.Tenant).SetProjectID(h.Project).
		SetInstanceID(h.Instance).
		SetNumber(1).SetManifestID(h.Manifest).SetAppVersion(instance.AppVersion).SetConfig([]byte(`{}`)).Exec(ctx))
	require.NoError(b.t, b.Ent.Orphan.Create().SetID(h.Orphan).SetTenantID(h.Tenant).SetProjectID(h.Project).
		SetInstanceID(h.Instance).
		SetKind(lifecycle.OrphanNodeResidue).SetOwner("node").SetMemberID(h.Member).SetNodeID(h.Node).
		SetOperationID(h.Operation).Exec(ctx))
	h.Webhook, h.Delivery = ids.New(ids.Webhook), ids.New(ids.WebhookDelivery)
	require.NoError(b.t, b.Ent.Webhook.Create().SetID(h.Webhook).SetTenantID(h.Tenant).SetProjectID(h.Project).
		SetURL("https://hooks.test/x").
		SetEventTypes([]string{"apps.*"}).SetFamilies([]string{"apps"}).SetSecret([]byte("sealed")).
		SetStatus(lifecycle.WebhookPaused).Exec(ctx))
	require.NoError(b.t, b.Ent.WebhookDelivery.Create().SetID(h.Delivery).SetTenantID(h.Tenant).SetProjectID(h.Project).
		SetWebhookID(h.Webhook).
		SetEventID(h.Event).SetEventType("apps.instance.requested").SetState(lifecycle.DeliveryDead).Exec(ctx))
	public, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(b.t, err)
	source := b.Kit.Source(&db.Tenant{ID: h.Tenant}, lifecycle.SourceOCI, "registry.test/"+string(h.Tenant))
	h.Source, h.Signer = source.ID, b.Kit.SignerKey(source, public).ID
	h.Owned, h.digest = ids.New(ids.Artifact), platformtest.Digest([]byte(h.Tenant))
	require.NoError(b.t, b.Ent.Artifact.Create().SetID(h.Owned).SetTenantID(h.Tenant).SetProjectID(h.Project).
		SetSourceID(h.Source).
		SetName("own").SetRef("registry.test/"+string(h.Tenant)+"/own@"+h.digest).SetDigest(h.digest).Exec(ctx))
	h.Draft = b.draft(h).ID
	h.Share, h.Sibling = ids.New(ids.ControlPlane), b.Kit.Project(&db.Tenant{ID: h.Tenant}).ID
	b.SQL(`UPDATE instance SET control_plane_scope = 'TENANT' WHERE id = $1`, h.Instance)
	require.NoError(b.t, b.Ent.ControlPlaneShare.Create().SetID(h.Share).SetTenantID(h.Tenant).SetProjectID(h.Sibling).
		SetOwnerProjectID(h.Project).
		SetInstanceID(h.Instance).SetReason("one for all").Exec(ctx))
	h.Overlay = ids.New(ids.PolicyOverlay)
	require.NoError(b.t, b.Ent.PolicyOverlay.Create().SetID(h.Overlay).SetScope(lifecycle.PolicyProject).
		SetTenantID(h.Tenant).SetProjectID(h.Project).
		SetRevision(1).SetDocument([]byte(`{}`)).Exec(ctx))
	h.Secret = ids.New(ids.RuntimeSecret)
	require.NoError(b.t, b.Ent.RuntimeSecret.Create().SetID(h.Secret).SetTenantID(h.Tenant).SetProjectID(h.Project).
		SetInstanceID(h.Instance).
		SetMemberID(h.Member).SetNodeID(h.Node).SetPurpose("joining").SetAudience(lifecycle.SecretForNode).
		SetDelivery(lifecycle.DeliverOnce).
		SetSealed([]byte("sealed")).SetExpiresAt(time.Now().Add(time.Hour)).Exec(ctx))
	require.NoError(b.t, b.Ent.OperationStep.Create().SetID(h.Step).SetTenantID(h.Tenant).SetProjectID(h.Project).
		SetOperationID(h.Operation).
		SetName("dispatch").SetOrdinal(0).SetState(lifecycle.StepRunning).Exec(ctx))
	h.Fetch, h.Part = ids.New(ids.NodeTask), ids.New(ids.Artifact)
	b.SQL(`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, kind, spec, spec_digest,
		fence, state, timeout_seconds,
		idempotency_key, created_at) SELECT $1, $2, $3, $4, $5, $6, 'FETCH_ARTIFACT', jsonb_build_object('digest', digest,
		'path', '/x'), '', 1, 'RUNNING',
		60, 'fetch', now() FROM artifact WHERE id =
		$7`, h.Fetch, h.Tenant, h.Project, h.Instance, h.Member, h.Node, h.Artifact)
	b.SQL(`INSERT INTO artifact_part (id, artifact_id, position, role, digest, size_bytes)
		SELECT $1, id, 0, 'MANIFEST', digest, 1 FROM artifact WHERE id = $2`,
		h.Part, h.Artifact)
	b.SQL(`INSERT INTO app_instance_event (id, tenant_id, project_id, instance_id, app_slug, permission_family, seq,
		type,
		message, payload, correlation_id, occurred_at)
		VALUES ($1, $2, $3, $4, $5, 'apps', 1, 'apps.instance.requested', 'asked for', '{}', 'c-1',
		now())`, h.Event, h.Tenant, h.Project, h.Instance, instance.AppSlug)
	b.SQL(`UPDATE instance SET revision = 1 WHERE id = $1`, h.Instance) // the number of its last event
	require.NoError(b.t, b.Ent.NodeTask.Create().SetID(h.Task).SetTenantID(h.Tenant).SetProjectID(h.Project).
		SetInstanceID(h.Instance).
		SetMemberID(h.Member).SetNodeID(h.Node).SetOperationID(h.Operation).SetKind(lifecycle.TaskRun).
		SetSpec([]byte(`{"command":["true"]}`)).
		SetSpecDigest([]byte("d")).SetIdempotencyKey("k").SetTimeoutSeconds(60).
		SetState(lifecycle.TaskPending).Exec(ctx))
	require.NoError(b.t, b.Ent.AuditEntry.Create().SetID(h.Record).SetTenantID(h.Tenant).SetProjectID(h.Project).
		SetActorKind("USER").
		SetActorID(string(h.User)).SetActorName("x").SetPermissionKey("apps.instance.create").
		SetAction("launchInstance").SetAllowed(true).
		SetObjectID(string(h.Instance)).SetCorrelationID("c-1").SetCreatedAt(time.Now()).Exec(ctx))
}
