package tx_test

import (
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

func TestEverySecretButALoginCodeIsACredential(t *testing.T) {
	t.Parallel()
	ring, err := token.NewKeyring(platformtest.Issuer)
	require.NoError(t, err)
	for _, kind := range []token.Kind{token.Session, token.Key, token.Node, token.Enrolment} {
		text, secret := token.Mint(kind)
		credential, err := tx.ParseCredential(text, ring, time.Now())
		require.NoError(t, err, kind)
		require.Equal(t, string(secret.ID), credential.ID())
		require.Equal(t, secret.Hash, credential.Hash())
	}
	login, _ := token.Mint(token.Login)
	for _, text := range []string{login, "", "gpu_", "gpu_ses_x_y", "Bearer x", "a.b.c"} {
		_, err := tx.ParseCredential(text, ring, time.Now())
		require.True(t, fault.Is(err, fault.Unauthenticated), "%q: %v", text, err)
	}
}

func TestAForgedSecretUnderAKnownIDIsAnotherCaller(t *testing.T) {
	t.Parallel()
	ring, err := token.NewKeyring(platformtest.Issuer)
	require.NoError(t, err)
	text, _ := token.Mint(token.Key)
	genuine, err := tx.ParseCredential(text, ring, time.Now())
	require.NoError(t, err)
	forged, err := tx.ParseCredential(guess(t, text), ring, time.Now())
	require.NoError(t, err, "its form is right: only the database can tell")
	require.Equal(t, genuine.ID(), forged.ID())
	require.NotEqual(t, genuine.Fingerprint(), forged.Fingerprint())
}

// guess is a key of the right form under the id of another.
func guess(t *testing.T, key string) string {
	t.Helper()
	secret, err := token.ParseSecret(key)
	require.NoError(t, err)
	other, _ := token.Mint(token.Key)
	forged := "gpu_sa_" + strings.TrimPrefix(string(secret.ID), "key_") + "_" + strings.Split(other, "_")[3]
	forged = forged[:len(forged)-6]
	return forged + checksum(forged)
}

// checksum ends a secret, as anybody can work out.
func checksum(body string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	out, n := []byte("000000"), crc32.ChecksumIEEE([]byte(body))
	for i := len(out) - 1; i >= 0; i-- {
		out[i], n = digits[n%62], n/62
	}
	return string(out)
}

func TestSignedTokensAreCredentialsUntilTheyEnd(t *testing.T) {
	t.Parallel()
	ring, err := token.NewKeyring(platformtest.Issuer)
	require.NoError(t, err)
	now := time.Now()
	claims := token.Claims{Operation: ids.New(ids.Operation), Instance: ids.New(ids.Instance),
		ExpiresAt: now.Add(time.Minute)}
	text, err := ring.Sign(claims, now)
	require.NoError(t, err)
	credential, err := tx.ParseCredential(text, ring, now)
	require.NoError(t, err)
	require.NotEmpty(t, credential.ID())
	require.Nil(t, credential.Hash())
	_, err = tx.ParseCredential(text, ring, now.Add(2*time.Minute))
	require.True(t, fault.Is(err, fault.TokenExpired), "%v", err)
}

// refused asserts that neither a read nor a write begins under the credential.
func refused(t *testing.T, kit *platformtest.Kit, credential string, code fault.Code) {
	t.Helper()
	ctx := kit.With(credential)
	_, err := kit.DB.Read(ctx)
	require.True(t, fault.Is(err, code), "read: %v", err)
	err = kit.DB.Write(ctx, ran(t))
	require.True(t, fault.Is(err, code), "write: %v", err)
}

func TestCredentialsThatAreUnknownExpiredOrRevokedEnterNowhere(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	user := kit.User(tenant, platformtest.In(authz.ProjectAdmin, project))
	node, credential := kit.Node(1)
	_, stored := kit.Launchable(project, "apps")
	instance := kit.Instance(project, stored, lifecycle.InstanceRunning, kit.Allocation(project, node))
	operation := kit.Operation(instance, lifecycle.InstanceCreate, lifecycle.OperationRunning)

	for _, kind := range []token.Kind{token.Session, token.Key, token.Node, token.Enrolment} {
		unknown, _ := token.Mint(kind)
		refused(t, kit, unknown, fault.Unauthenticated)
	}
	_, err := kit.DB.Read(t.Context())
	require.True(t, fault.Is(err, fault.Unauthenticated))
	require.True(t, fault.Is(kit.DB.Write(t.Context(), ran(t)), fault.Unauthenticated))

	expired, revoked := kit.Session(user), kit.Session(user)
	entered(t, kit, expired)
	entered(t, kit, revoked)
	kit.SQL(`UPDATE session SET expires_at = now() - interval '1 second' WHERE id = $1`, idOf(t, expired))
	kit.SQL(`UPDATE session SET revoked_at = now() WHERE id = $1`, idOf(t, revoked))
	refused(t, kit, expired, fault.Unauthenticated)
	refused(t, kit, revoked, fault.Unauthenticated)

	_, key := kit.ServiceAccount(project, authz.AppsInstanceRead)
	entered(t, kit, key)
	kit.SQL(`UPDATE service_account_key SET expires_at = now() - interval '1 second'`)
	refused(t, kit, key, fault.TokenExpired)
	refused(t, kit, guess(t, key), fault.Unauthenticated)
	kit.SQL(`UPDATE service_account_key SET revoked_at = now()`)
	refused(t, kit, key, fault.Unauthenticated)

	entered(t, kit, credential)
	kit.SQL(`UPDATE node_credential SET revoked_at = now()`)
	refused(t, kit, credential, fault.Unauthenticated)

	signed := kit.OperationToken(operation, authz.AppsInstanceRead)
	entered(t, kit, signed)
	kit.SQL(`UPDATE operation SET state = 'SUCCEEDED', ended_at = now()`)
	refused(t, kit, signed, fault.Unauthenticated)
}

func TestASignedTokenThatEndsWhileItsSocketIsOpenEntersNoMore(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	project := kit.Project(kit.Tenant())
	node, _ := kit.Node(1)
	_, stored := kit.Launchable(project, "apps")
	instance := kit.Instance(project, stored, lifecycle.InstanceRunning, kit.Allocation(project, node))
	operation := kit.Operation(instance, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	then := time.Now().Add(-2 * time.Minute)
	text, err := kit.Ring.Sign(token.Claims{Operation: operation.ID, Instance: instance.ID,
		ExpiresAt: then.Add(time.Minute)}, then)
	require.NoError(t, err)
	credential, err := tx.ParseCredential(text, kit.Ring, then)
	require.NoError(t, err)
	ctx := tx.WithCredential(t.Context(), credential)
	_, err = kit.DB.Read(ctx)
	require.True(t, fault.Is(err, fault.TokenExpired), "%v", err)
	require.True(t, fault.Is(kit.DB.Write(ctx, ran(t)), fault.TokenExpired))
}

func entered(t *testing.T, kit *platformtest.Kit, credential string) {
	t.Helper()
	_, err := kit.DB.Read(kit.With(credential))
	require.NoError(t, err)
}

func idOf(t *testing.T, text string) ids.ID {
	t.Helper()
	secret, err := token.ParseSecret(text)
	require.NoError(t, err)
	return secret.ID
}
