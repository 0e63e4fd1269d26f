package secret_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/nacl/box"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/secret"
)

// bench is a project with a running instance of one member, whose manifest declares the purpose "joining".
type bench struct {
	*platformtest.Kit
	t        *testing.T
	secrets  *secret.Service
	project  *db.Project
	instance *db.Instance
	member   ids.ID
	digest   string
	// admin is a project's admin; node and adapter are who takes delivery.
	admin, node, adapter context.Context
	operation            *db.Operation
	nodeID               ids.ID
	opening              *[32]byte
	public               *[32]byte
}

func newBench(t *testing.T) *bench {
	t.Helper()
	kit := platformtest.New(t)
	vault, err := custody.Open(t.Context(), "", t.TempDir())
	require.NoError(t, err)
	b := &bench{Kit: kit, t: t, secrets: &secret.Service{DB: kit.DB, Vault: vault, Keys: kit.Ring}}
	tenant := kit.Tenant()
	b.project = kit.Project(tenant)
	b.admin = kit.As(kit.User(tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	app := kit.App("apps")
	artifact := kit.Artifact(lifecycle.StageActive)
	b.digest = artifact.Digest
	document := platformtest.Document(app, "1.0.0", kit.Adapter("http://adapter.test", nil), artifact)
	document["secretPurposes"] = []string{"joining"}
	stored := kit.Manifest(lifecycle.StageActive, document)
	kit.Entitle(b.project, app)
	node, credential := kit.Node(2)
	b.nodeID, b.node = node.ID, kit.With(credential)
	b.public, b.opening, err = box.GenerateKey(rand.Reader)
	require.NoError(t, err)
	kit.SQL(`UPDATE compute_node SET sealing_key = $2 WHERE id = $1`, node.ID,
		base64.StdEncoding.EncodeToString(b.public[:]))
	b.instance = kit.Instance(b.project, stored, lifecycle.InstanceRunning, kit.Allocation(b.project, node))
	b.operation = kit.Operation(b.instance, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	b.adapter = kit.With(kit.OperationToken(b.operation, authz.SecretIssue, authz.SecretRedeem, authz.SecretRead))
	require.NoError(t, kit.Admin.QueryRow(t.Context(), `SELECT id FROM member WHERE instance_id = $1`,
		b.instance.ID).Scan(&b.member))
	return b
}

// allow lets the platform's policy name purposes.
func (b *bench) allow(purposes ...string) {
	b.t.Helper()
	document, err := json.Marshal(map[string]any{"secretPurposes": map[string]any{"allow": append(purposes,
		secret.PurposeArtifactPull)}})
	require.NoError(b.t, err)
	b.SQL(`INSERT INTO policy_overlay (id, scope, revision, document, created_at)
		VALUES ($1, 'PLATFORM', 1, $2, now())`,
		ids.New(ids.PolicyOverlay), document)
}

func (b *bench) input() secret.IssueInput {
	return secret.IssueInput{InstanceID: b.instance.ID, Purpose: "joining", Audience: lifecycle.SecretForAdapter,
		TTLSeconds: 300,
		Delivery:   lifecycle.DeliverOnce, IdempotencyKey: rand.Text()}
}

func (b *bench) toNode() secret.IssueInput {
	in := b.input()
	in.Audience, in.MemberID = lifecycle.SecretForNode, &b.member
	return in
}

func (b *bench) issue(in secret.IssueInput) *secret.View {
	b.t.Helper()
	made, err := b.secrets.Issue(b.admin, in)
	require.NoError(b.t, err)
	return made
}

// open is what the node's agent does with a delivery.
func (b *bench) open(sealed string) string {
	b.t.Helper()
	raw, err := base64.StdEncoding.DecodeString(sealed)
	require.NoError(b.t, err)
	plain, ok := box.OpenAnonymous(nil, raw, b.public, b.opening)
	require.True(b.t, ok)
	var content struct {
		InstanceID ids.ID `json:"instanceId"`
		Value      []byte `json:"value"`
	}
	require.NoError(b.t, json.Unmarshal(plain, &content))
	require.Equal(b.t, b.instance.ID, content.InstanceID)
	return string(content.Value)
}

// wiped says whether nothing of the value is left in the row.
func (b *bench) wiped(id ids.ID) bool {
	return b.Count("runtime_secret", "id = $1 AND sealed IS NULL AND previous IS NULL", id) == 1
}

func (b *bench) signed(claims token.Claims) context.Context {
	b.t.Helper()
	claims.ExpiresAt = time.Now().Add(time.Hour)
	text, err := b.Ring.Sign(claims, time.Now())
	require.NoError(b.t, err)
	return b.With(text)
}

// manifest returns the instance's manifest.
func (b *bench) manifest() *db.Manifest {
	b.t.Helper()
	found, err := b.Ent.Manifest.Get(b.t.Context(), b.instance.ManifestID)
	require.NoError(b.t, err)
	return found
}

// try runs a statement as the API's login role, for the admin.
func (b *bench) try(statement string) error {
	return b.DB.Write(b.admin, func(ctx context.Context, t *tx.Tx) error {
		_, err := t.Exec(ctx, statement)
		return err
	})
}
