package source_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/source"
)

// bench is a tenant with an admin and a project's viewer, the platform's operator, and a stranger.
type bench struct {
	*platformtest.Kit
	t                                  *testing.T
	verbs                              *source.Service
	tenant                             *db.Tenant
	operator, admin, viewer, elsewhere context.Context
}

func newBench(t *testing.T) *bench {
	t.Helper()
	kit := platformtest.New(t)
	vault, err := custody.Open(t.Context(), "", t.TempDir())
	require.NoError(t, err)
	b := &bench{Kit: kit, t: t, tenant: kit.Tenant(), operator: kit.As(kit.Operator())}
	b.verbs = &source.Service{DB: kit.DB, Vault: vault, Allow: func(address *url.URL) error {
		if dial.Check(dial.Policy{}, true, address) != nil {
			return fault.New(fault.DialRefused, "the operator does not allow it")
		}
		return nil
	}}
	b.admin = kit.As(kit.User(b.tenant, platformtest.Across(authz.TenantAdmin, b.tenant)))
	b.viewer = kit.As(kit.User(b.tenant, platformtest.In(authz.ProjectViewer, kit.Project(b.tenant))))
	other := kit.Tenant()
	b.elsewhere = kit.As(kit.User(other, platformtest.Across(authz.TenantAdmin, other)))
	return b
}

// input is the input that creates a source of the tenant.
func (b *bench) input() source.CreateInput {
	return source.CreateInput{TenantID: &b.tenant.ID, Name: "models", Kind: lifecycle.SourceOCI,
		Location:        "registry.test/models",
		SignaturePolicy: lifecycle.SignatureRequired, IdempotencyKey: rand.Text()}
}

func (b *bench) source() *db.ArtifactSource {
	b.t.Helper()
	made, err := b.verbs.Create(b.admin, b.input())
	require.NoError(b.t, err)
	return made
}

// nothing asserts that neither a source nor a key nor a claim of an idempotency key is there.
func (b *bench) nothing(what any) {
	b.t.Helper()
	require.Zero(b.t, b.Count("artifact_source", "")+b.Count("signer_key", "")+b.Count("idempotency", ""), what)
}

func refused(t *testing.T, err error, code fault.Code, path string, what any) {
	t.Helper()
	t.Log(what)
	platformtest.Refused(t, err, code, path)
}

// encode is a public key as people hand it around.
func encode(t *testing.T, public crypto.PublicKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func edwards(t *testing.T) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return encode(t, public)
}

func ellipticKey(t *testing.T, curve elliptic.Curve) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	return encode(t, key.Public())
}

func rsaKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	return encode(t, key.Public())
}

// entries are the audit entries of an action that was allowed.
func (b *bench) entries(action string) (found []*db.AuditEntry) {
	b.t.Helper()
	for _, entry := range b.Audit() {
		if entry.Action == action && entry.Allowed {
			found = append(found, entry)
		}
	}
	return found
}

// denied says how many attempts at an action are in the audit as refused.
func (b *bench) denied(action string) (n int) {
	b.t.Helper()
	for _, entry := range b.Audit() {
		if entry.Action == action && !entry.Allowed {
			n++
		}
	}
	return n
}

// unchanged asserts that a source's row is what it was.
func (b *bench) unchanged(before *db.ArtifactSource, what any) {
	b.t.Helper()
	after, err := b.verbs.Get(b.admin, before.ID)
	require.NoError(b.t, err)
	require.Equal(b.t, before, after, what)
}

var noSuch = ids.New(ids.ArtifactSource)
