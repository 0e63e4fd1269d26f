package platformtest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// Node makes an online node with 8 CPUs, 16 GiB and some simulated GPUs, and a credential of it.
func (k *Kit) Node(gpus int) (node *db.ComputeNode, credential string) {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	id := ids.New(ids.Node)
	node, err := k.Ent.ComputeNode.Create().SetID(id).SetName(k.name("node")).SetAddress("192.0.2.10").
		SetStatus(lifecycle.NodeOnline).SetCpus(8).SetMemoryMib(16_384).SetGpus(gpus).SetGpusSimulated(true).
		SetIsolation("NAMESPACE").SetSealingKey("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").
		SetLastSeenAt(time.Now()).Save(ctx)
	require.NoError(k.t, err)
	text, secret := token.Mint(token.Node)
	require.NoError(k.t, k.Ent.NodeCredential.Create().SetID(secret.ID).SetNodeID(id).SetSecretHash(secret.Hash).
		SetExpiresAt(time.Now().Add(time.Hour)).Exec(ctx))
	return node, text
}

// Allocation makes a ready allocation of a whole node.
func (k *Kit) Allocation(project *db.Project, node *db.ComputeNode) *db.Allocation {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	row, err := k.Ent.Allocation.Create().SetID(ids.New(ids.Allocation)).SetTenantID(project.TenantID).
		SetProjectID(project.ID).
		SetName(k.name("alloc")).SetShape(lifecycle.ShapeBaremetal).SetGpuCount(node.Gpus).
		SetStatus(lifecycle.AllocationReady).
		SetNodeID(node.ID).Save(ctx)
	require.NoError(k.t, err)
	return row
}

// App makes an app of the catalog.
func (k *Kit) App(family string) *db.App {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	name := k.name("app")
	row, err := k.Ent.App.Create().SetID(ids.New(ids.App)).SetSlug(name).SetDisplayName(name).
		SetPermissionFamily(family).Save(ctx)
	require.NoError(k.t, err)
	return row
}

// Adapter registers an adapter at an address, with what it says of itself (nil for nothing yet).
func (k *Kit) Adapter(address string, description json.RawMessage) *db.Adapter {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	create := k.Ent.Adapter.Create().SetID(ids.New(ids.Adapter)).SetName(k.name("adapter")).SetURL(address)
	if description != nil { // Ent would store nil as the JSON null
		create.SetDescription(description)
	}
	row, err := create.Save(ctx)
	require.NoError(k.t, err)
	return row
}

// Artifact makes an artifact of a stage that lies in no registry.
func (k *Kit) Artifact(stage lifecycle.Stage) *db.Artifact {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	name := k.name("artifact")
	digest := Digest([]byte(name))
	row, err := k.Ent.Artifact.Create().SetID(ids.New(ids.Artifact)).SetName(name).
		SetMediaType("application/vnd.oci.image.manifest.v1+json").
		SetRef("registry.test/" + name + "@" + digest).SetDigest(digest).SetSizeBytes(1_024).SetStage(stage).Save(ctx)
	require.NoError(k.t, err)
	return row
}

// Digest is the digest of some bytes, "sha256:" and 64 hexadecimal digits.
func Digest(data []byte) string {
	return digest.Of(data)
}

// Document is a manifest that lints: one component "worker" of 1 to 8 members, an integer
// "size" in its config, and an action "queue.read". Change what it answers, then store it.
func Document(app *db.App, version string, adapter *db.Adapter, artifacts ...*db.Artifact) map[string]any {
	pins := make([]map[string]any, len(artifacts))
	for i, artifact := range artifacts {
		pins[i] = map[string]any{"name": artifact.Name, "mediaType": artifact.MediaType, "ref": artifact.Ref,
			"digest": artifact.Digest}
	}
	object := map[string]any{"type": "object"}
	return map[string]any{
		"schema": manifest.SchemaV1, "app": app.Slug, "version": version, "displayName": "App " + version,
		"summary":      "An app for tests.",
		"artifactKind": "controller", "artifacts": pins, "adapter": adapter.Name,
		"permissionFamily": app.PermissionFamily,
		"compatibility": map[string]any{"requires_capacity_shape": []string{"baremetal", "gpu_slice"},
			"min_gpu_count": 0, "requires_exclusive_node": false, "network_span": "multi_allocation"},
		"components": []map[string]any{{"key": "worker", "displayName": "Workers", "min": 1, "max": 8, "default": 1}},
		"configSchema": map[string]any{"type": "object", "additionalProperties": false,
			"properties": map[string]any{"size": map[string]any{"type": "integer", "minimum": 1, "default": 2}}},
		"actions": []map[string]any{{"name": "queue.read", "displayName": "Read the queue", "risk": "read",
			"permissionKey": app.PermissionFamily + ".queue.read", "inputSchema": object, "outputSchema": object}},
		"readiness": []any{}, "secretPurposes": []any{}, "usageDimensions": []any{}, "docs": "# App",
	}
}

// Manifest stores a document as a manifest of a stage, past every rule but that it parses.
func (k *Kit) Manifest(stage lifecycle.Stage, document map[string]any) *db.Manifest {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	data, err := json.Marshal(document)
	require.NoError(k.t, err)
	parsed, err := manifest.Parse(data)
	require.NoError(k.t, err)
	var appID ids.ID
	require.NoError(k.t, k.Admin.QueryRow(ctx, `SELECT id FROM app WHERE slug = $1`, parsed.App).Scan(&appID))
	row, err := k.Ent.Manifest.Create().SetID(ids.New(ids.Manifest)).SetAppID(appID).SetAppSlug(parsed.App).
		SetVersion(parsed.Version).
		SetDisplayName(parsed.DisplayName).SetSummary(parsed.Summary).SetStage(stage).SetDigest(Digest(data)).
		SetDocument(data).
		SetAdapterName(parsed.Adapter).SetArtifactKind(parsed.ArtifactKind).Save(ctx)
	require.NoError(k.t, err)
	for _, pin := range parsed.Artifacts {
		k.SQL(`INSERT INTO manifest_artifact (id, manifest_id, artifact_id) SELECT $1, $2, id FROM artifact
			WHERE digest = $3`,
			ids.New(ids.Manifest), row.ID, pin.Digest)
	}
	return row
}

// Entitle lets the project launch the app.
func (k *Kit) Entitle(project *db.Project, app *db.App) {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	require.NoError(k.t, k.Ent.Entitlement.Create().SetID(ids.New(ids.Entitlement)).SetTenantID(project.TenantID).
		SetProjectID(project.ID).SetAppSlug(app.Slug).Exec(ctx))
}

// Launchable creates an app that the project may launch: an adapter that no request reaches, an active artifact and an
// active manifest, version 1.0.0.
func (k *Kit) Launchable(project *db.Project, family string) (*db.App, *db.Manifest) {
	k.t.Helper()
	app := k.App(family)
	adapter := k.Adapter("http://adapter.test", nil)
	stored := k.Manifest(lifecycle.StageActive, Document(app, "1.0.0", adapter, k.Artifact(lifecycle.StageActive)))
	k.Entitle(project, app)
	return app, stored
}

// Instance makes an instance of the manifest with members on the allocations, all of component
// "worker", in the state named. It has neither operation nor event.
func (k *Kit) Instance(project *db.Project, of *db.Manifest, status lifecycle.InstanceStatus,
	allocations ...*db.Allocation) *db.Instance {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	name := k.name("instance")
	var family string
	require.NoError(k.t, k.Admin.QueryRow(ctx, `SELECT permission_family FROM app
		WHERE id = $1`, of.AppID).Scan(&family))
	roles := fmt.Sprintf(
		`[{"componentKey":"worker","displayName":"Workers","desired":%d,"current":%[1]d,"healthy":0,"summary":""}]`,
		len(allocations))
	row, err := k.Ent.Instance.Create().SetID(ids.New(ids.Instance)).SetTenantID(project.TenantID).
		SetProjectID(project.ID).SetName(name).
		SetAppSlug(of.AppSlug).SetAppVersion(of.Version).SetPermissionFamily(family).SetManifestID(of.ID).
		SetStatus(status).
		SetConfig(json.RawMessage(`{"size": 2}`)).SetRoles(json.RawMessage(roles)).
		SetBoundCapacityShape(lifecycle.ShapeBaremetal).
		SetRuntimeBackend(of.AdapterName).SetCorrelationID(name).SetUpdatedAt(time.Now()).Save(ctx)
	require.NoError(k.t, err)
	member := lifecycle.MemberPending
	if status == lifecycle.InstanceRunning {
		member = lifecycle.MemberActive
	}
	for i, allocation := range allocations {
		k.member(ctx, row, i, member, allocation)
	}
	return row
}

func (k *Kit) member(ctx context.Context, row *db.Instance, ordinal int, status lifecycle.MemberStatus,
	allocation *db.Allocation) {
	require.NoError(k.t, k.Ent.Member.Create().SetID(ids.New(ids.Member)).SetTenantID(row.TenantID).
		SetProjectID(row.ProjectID).
		SetInstanceID(row.ID).SetComponentKey("worker").SetOrdinal(ordinal).SetStatus(status).
		SetAllocationID(allocation.ID).
		SetNillableNodeID(allocation.NodeID).SetCorrelationID(row.CorrelationID).SetUpdatedAt(time.Now()).Exec(ctx))
	k.SQL(`UPDATE allocation SET instance_id = $1 WHERE id = $2`, row.ID, allocation.ID)
}

// Operation makes an operation of the instance in a state, with an hour to its deadline.
func (k *Kit) Operation(of *db.Instance, kind lifecycle.OperationKind, state lifecycle.OperationState) *db.Operation {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	create := k.Ent.Operation.Create().SetID(ids.New(ids.Operation)).SetTenantID(of.TenantID).
		SetProjectID(of.ProjectID).
		SetInstanceID(of.ID).SetKind(kind).SetState(state).SetAdapterName(of.RuntimeBackend).SetRequesterKind("USER").
		SetRequesterID("usr_fixture").SetCorrelationID(of.CorrelationID).SetDispatchAttempt(1).SetNextRunAt(time.Now()).
		SetDeadline(time.Now().Add(time.Hour))
	if state.Terminal() {
		create.SetEndedAt(time.Now())
	}
	row, err := create.Save(ctx)
	require.NoError(k.t, err)
	k.SQL(`UPDATE instance SET last_operation_id = $1 WHERE id = $2`, row.ID, of.ID)
	return row
}
