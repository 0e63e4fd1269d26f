package platformtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// Source creates an artifact source, the platform's for no tenant, that covers a location: host[:port][/path] of a
// registry, or an https address that ends with a slash. Signatures are optional (OPTIONAL) unless keys are given, which
// are valid from an hour ago on: then a signature is required (REQUIRED).
func (k *Kit) Source(tenant *db.Tenant, kind lifecycle.SourceKind, location string,
	keys ...crypto.PublicKey) *db.ArtifactSource {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	create := k.Ent.ArtifactSource.Create().SetID(ids.New(ids.ArtifactSource)).SetName(k.name("source")).SetKind(kind).
		SetLocation(location).
		SetSignaturePolicy(lifecycle.SignatureOptional)
	if len(keys) > 0 {
		create.SetSignaturePolicy(lifecycle.SignatureRequired)
	}
	if kind == lifecycle.SourceS3 {
		create.SetRegion("us-east-1")
	}
	if tenant != nil {
		create.SetTenantID(tenant.ID)
	}
	row, err := create.Save(ctx)
	require.NoError(k.t, err)
	for _, key := range keys {
		k.SignerKey(row, key)
	}
	return row
}

// SignerKey trusts a public key, ECDSA P-256 or Ed25519, at a source from an hour ago on.
func (k *Kit) SignerKey(source *db.ArtifactSource, key crypto.PublicKey) *db.SignerKey {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	der, err := x509.MarshalPKIXPublicKey(key)
	require.NoError(k.t, err)
	sum := sha256.Sum256(der)
	algorithm := "ed25519"
	if _, elliptic := key.(*ecdsa.PublicKey); elliptic {
		algorithm = "ecdsa-p256"
	}
	row, err := k.Ent.SignerKey.Create().SetID(ids.New(ids.SignerKey)).SetSourceID(source.ID).
		SetNillableTenantID(source.TenantID).
		SetName(k.name("key")).SetPublicKey(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))).
		SetFingerprint("sha256:" +
			hex.EncodeToString(sum[:])).SetAlgorithm(algorithm).SetValidFrom(time.Now().Add(-time.Hour)).Save(ctx)
	require.NoError(k.t, err)
	return row
}
