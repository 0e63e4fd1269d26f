package origin_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/origin"
)

// find looks for a source as somebody.
func find(kit *platformtest.Kit, as context.Context, tenant *db.Tenant, ref string) (out *origin.Source, err error) {
	err = kit.DB.Write(as, func(ctx context.Context, t *tx.Tx) error {
		var owner *ids.ID
		if tenant != nil {
			owner = &tenant.ID
		}
		out, err = origin.Find(ctx, t, owner, ref)
		return err
	})
	return out, err
}

func member(kit *platformtest.Kit, tenant *db.Tenant) context.Context {
	return kit.As(kit.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
}

func TestTheLongestLocationAnswersAndATenantsOwnBeforeThePlatforms(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	ours, theirs := kit.Tenant(), kit.Tenant()
	us, them := member(kit, ours), member(kit, theirs)
	host := kit.Source(nil, lifecycle.SourceOCI, "registry.test:5000")
	apps := kit.Source(nil, lifecycle.SourceOCI, "registry.test:5000/apps")
	own := kit.Source(ours, lifecycle.SourceOCI, "registry.test:5000/apps")
	files := kit.Source(nil, lifecycle.SourceHTTPS, "https://files.test/pub/")
	bucket := kit.Source(ours, lifecycle.SourceS3, "https://files.test/pub/bucket/")
	digest := "@sha256:" + platformtest.Digest(nil)[7:]
	for _, one := range []struct {
		as     context.Context
		tenant *db.Tenant
		ref    string
		want   *db.ArtifactSource
	}{
		{us, ours, "registry.test:5000/other/x" + digest, host},
		{us, ours, "registry.test:5000/apps/x:tag" + digest, own},
		{us, ours, "registry.test:5000/apps" + digest, own},
		{us, ours, "registry.test:5000/apps2/x:tag", host},
		{us, nil, "registry.test:5000/apps/x:tag", apps},
		{them, theirs, "registry.test:5000/apps/x:tag", apps},
		{us, ours, "https://files.test/pub/bucket/a%20b.bin", bucket},
		{us, ours, "https://files.test/pub/bucket/Größe(1)%28!.bin", bucket},
		{them, theirs, "https://files.test/pub/bucket/a.bin", files},
	} {
		found, err := find(kit, one.as, one.tenant, one.ref)
		require.NoError(t, err, one.ref)
		require.Equal(t, one.want.ID, found.ID, one.ref)
		require.Equal(t, one.want.Location, found.Location)
		require.Equal(t, one.want.TenantID, found.TenantID)
		require.Equal(t, one.want.Kind, found.Kind)
	}
	kit.SQL(`UPDATE artifact_source SET disabled_at = now() WHERE id = $1`, own.ID)
	found, err := find(kit, us, ours, "registry.test:5000/apps/x:tag")
	require.NoError(t, err)
	require.Equal(t, apps.ID, found.ID, "one that is switched off answers for nothing")
}

func TestWhatNoSourceCoversIsUnknown(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	ours, theirs := kit.Tenant(), kit.Tenant()
	kit.Source(nil, lifecycle.SourceOCI, "registry.test/apps")
	kit.Source(nil, lifecycle.SourceHTTPS, "https://files.test/pub/")
	kit.Source(theirs, lifecycle.SourceOCI, "private.test")
	as := member(kit, ours)
	for _, ref := range []string{
		"registry.test/appsy/x:1", "registry.test/x:1", "registry.test:443/apps/x:1", "Registry.test/apps/x:1",
		"registry.test/apps/../x:1", "registry.test//apps/x:1",
		"private.test/x:1", "https://registry.test/apps/x", "files.test/pub/x", "", "@", "://",
		"https://files.test/pub/", "https://files.test/pubx", "http://files.test/pub/x", "https://Files.test/pub/x",
		"https://u@files.test/pub/x",
		"https://files.test/pub/../x", "https://files.test/pub/%2e%2e/x", "https://files.test/pub//x",
		"https://files.test/pub/%2Fx", "https://files.test/pub/%61",
		"https://files.test/pub/x?y", "https://files.test/pub/x#y", `https://files.test/pub\x`,
		"https://files.test/pub/%5cx",
		"https://files.test:443/pub/x",
		"https://files.test/pub/%252e", "https://files.test/pub/%", "https://files.test/pub/%4",
		"https://files.test/pub/a b",
		"https://files.test/pub/%00", "HTTPS://files.test/pub/x",
	} {
		_, err := find(kit, as, ours, ref)
		require.True(t, fault.Is(err, fault.SourceUnknown), "%s: %v", ref, err)
		require.ErrorContains(t, err, "input.ref")
	}
	_, err := find(kit, as, theirs, "private.test/x:1")
	require.True(t, fault.Is(err, fault.SourceUnknown), "whoever asks in another's name finds nothing: %v", err)
}

func TestKeysThatAreRevokedOrEndedOrYetToComeDoNotCount(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	elliptical, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	source := kit.Source(nil, lifecycle.SourceOCI, "registry.test", edwards, elliptical.Public())
	for _, sort := range []string{`revoked_at = now()`, `valid_until = now() - interval '1 second'`,
		`valid_from = now() + interval '1 hour'`} {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		require.NoError(t, err)
		key := kit.SignerKey(source, public)
		kit.SQL(`UPDATE signer_key SET `+sort+` WHERE id = $1`, key.ID)
	}
	found, err := find(kit, kit.As(kit.Operator()), nil, "registry.test/x:1")
	require.NoError(t, err)
	require.Len(t, found.Keys, 2)
	require.Equal(t, lifecycle.SignatureRequired, found.Policy)
	require.Equal(t, edwards, found.Keys[0].Public)
	require.True(t, elliptical.PublicKey.Equal(found.Keys[1].Public))
	for _, key := range found.Keys {
		require.Equal(t, 1, kit.Count("signer_key", "id = $1 AND name = $2 AND fingerprint = $3", key.ID, key.Name,
			key.Fingerprint))
	}
}

func TestACredentialOpensForItsSourceAndForNoOther(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	vault, err := custody.Open(t.Context(), "", t.TempDir())
	require.NoError(t, err)
	ours, theirs := kit.Tenant(), kit.Tenant()
	open, sealed := kit.Source(nil, lifecycle.SourceOCI, "open.test"),
		kit.Source(ours, lifecycle.SourceOCI, "sealed.test")
	value, err := vault.Seal(t.Context(), []byte("hunter2"), origin.Associated(sealed.ID))
	require.NoError(t, err)
	kit.SQL(`UPDATE artifact_source SET credential_user = 'robot', credential = $2 WHERE id = $1`, sealed.ID, value)

	load := func(as context.Context, id ids.ID) (out *origin.Source, err error) {
		err = kit.DB.Write(as, func(ctx context.Context, t *tx.Tx) error {
			out, err = origin.Load(ctx, t, id, &ours.ID, "sealed.test/app")
			return err
		})
		return out, err
	}
	us := member(kit, ours)
	found, err := load(us, open.ID)
	require.NoError(t, err)
	none, err := found.Credential(t.Context(), vault)
	require.NoError(t, err)
	require.Zero(t, none)
	for _, as := range []context.Context{us, kit.As(kit.Operator())} {
		found, err = load(as, sealed.ID)
		require.NoError(t, err)
		got, err := found.Credential(t.Context(), vault)
		require.NoError(t, err)
		require.Equal(t, fetch.Credential{User: "robot", Secret: "hunter2"}, got)
	}
	err = kit.DB.As(t.Context(), &authz.Actor{}, func(ctx context.Context, t *tx.Tx) error {
		found, err = origin.Load(ctx, t, sealed.ID, nil, "sealed.test/app")
		return err
	})
	require.NoError(t, err)
	require.Equal(t, value, found.Sealed, "the platform's own work asks sources too")

	_, err = load(member(kit, theirs), sealed.ID)
	require.True(t, fault.Is(err, fault.SourceUnknown), "%v", err)
	found.ID = open.ID
	_, err = found.Credential(t.Context(), vault)
	require.ErrorIs(t, err, custody.ErrRefused)
	found.ID = sealed.ID
	other, err := custody.Open(t.Context(), "", t.TempDir())
	require.NoError(t, err)
	_, err = found.Credential(t.Context(), other)
	require.True(t, fault.Is(err, fault.Unavailable), "%v", err)
	kit.SQL(`UPDATE artifact_source SET disabled_at = now() WHERE id = $1`, sealed.ID)
	_, err = load(us, sealed.ID)
	require.True(t, fault.Is(err, fault.SourceUnknown), "%v", err)
}
