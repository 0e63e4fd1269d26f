package source_test

import (
	"context"
	"crypto/elliptic"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/origin"
	"github.com/gpuaas/app-platform/service/source"
)

func TestASourceIsChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.source()
	name, policy, off, on := "others", lifecycle.SignatureQuarantine, true, false
	after, err := b.verbs.Update(b.admin, source.UpdateInput{SourceID: made.ID, Name: &name, SignaturePolicy: &policy,
		Disabled: &off, Reason: "moved"})
	require.NoError(t, err)
	require.Equal(t, []any{name, policy}, []any{after.Name, after.SignaturePolicy})
	require.NotNil(t, after.DisabledAt)
	again, err := b.verbs.Update(b.admin, source.UpdateInput{SourceID: made.ID, Disabled: &off})
	require.NoError(t, err)
	require.Equal(t, after.DisabledAt, again.DisabledAt, "what is off stays off since then")
	after, err = b.verbs.Update(b.admin, source.UpdateInput{SourceID: made.ID, Disabled: &on})
	require.NoError(t, err)
	require.Nil(t, after.DisabledAt)
	require.Equal(t, name, after.Name)
	entry := b.entries("updateArtifactSource")[0]
	require.Equal(t, "moved", entry.Reason)
	require.Contains(t, string(entry.Before), `"models"`)
	require.Contains(t, string(entry.After), `"others"`)

	bad, none := "No name", lifecycle.SignaturePolicy("NONE")
	for what, one := range map[string]struct {
		as   context.Context
		in   source.UpdateInput
		code fault.Code
		path string
	}{
		"nothing": {b.admin, source.UpdateInput{SourceID: made.ID}, fault.InvalidArgument, "input"},
		"name":    {b.admin, source.UpdateInput{SourceID: made.ID, Name: &bad}, fault.InvalidArgument, "input.name"},
		"policy": {b.admin, source.UpdateInput{SourceID: made.ID, SignaturePolicy: &none}, fault.InvalidArgument,
			"input.signaturePolicy"},
		"reason": {b.admin, source.UpdateInput{SourceID: made.ID, Disabled: &off, Reason: strings.Repeat("x", 1_001)},
			fault.InvalidArgument, "input.reason"},
		"missing":   {b.admin, source.UpdateInput{SourceID: noSuch, Disabled: &off}, fault.NotFound, ""},
		"another's": {b.elsewhere, source.UpdateInput{SourceID: made.ID, Disabled: &off}, fault.NotFound, ""},
		"a viewer":  {b.viewer, source.UpdateInput{SourceID: made.ID, Disabled: &off}, fault.Forbidden, ""},
	} {
		_, err := b.verbs.Update(one.as, one.in)
		refused(t, err, one.code, one.path, what)
		b.unchanged(after, what)
	}
	common := b.Source(nil, lifecycle.SourceOCI, "common.test")
	_, err = b.verbs.Update(b.admin, source.UpdateInput{SourceID: common.ID, Disabled: &off})
	refused(t, err, fault.Forbidden, "", "the platform's, which a tenant reads")
	require.Equal(t, 1, b.Count("artifact_source", "id = $1 AND disabled_at IS NULL", common.ID))
}

func TestACredentialGoesIntoCustodyAndIsNeverShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.source()
	const secret = "hunter2-hunter2"
	set, err := b.verbs.SetCredential(b.admin, source.CredentialInput{SourceID: made.ID, User: "robot", Secret: secret,
		Reason: "first"})
	require.NoError(t, err)
	require.Equal(t, "robot", set.CredentialUser)
	require.NotNil(t, set.CredentialAt)
	require.Empty(t, set.Credential)
	require.Equal(t, b.verbs.Vault.Name(), set.Keeper)
	sealed := b.sealed(made.ID)
	value, err := b.verbs.Vault.Open(t.Context(), sealed, "artifact_source|"+string(made.ID))
	require.NoError(t, err)
	require.Equal(t, secret, string(value))
	require.Equal(t, "artifact_source|"+string(made.ID), origin.Associated(made.ID))

	_, err = b.verbs.SetCredential(b.admin, source.CredentialInput{SourceID: made.ID, User: "robot",
		Secret: "{\n\t\"key\": 1\n}\n"})
	require.NoError(t, err, "a key file is a secret too")
	require.NotEqual(t, sealed, b.sealed(made.ID))
	gone, err := b.verbs.SetCredential(b.admin, source.CredentialInput{SourceID: made.ID, Reason: "open by now"})
	require.NoError(t, err)
	require.Empty(t, gone.CredentialUser+gone.Keeper)
	require.Nil(t, gone.CredentialAt)
	require.Nil(t, b.sealed(made.ID))
	entries := b.entries("setSourceCredential")
	require.Len(t, entries, 3)
	require.Equal(t, 0, b.Count("audit_entry",
		"(audit_entry::text) LIKE '%hunter2%' OR (audit_entry::text) LIKE '%sealed%'"))
	require.Contains(t, string(entries[0].After), "robot")
}

func (b *bench) sealed(id ids.ID) (sealed []byte) {
	b.t.Helper()
	require.NoError(b.t, b.Admin.QueryRow(b.t.Context(), `SELECT credential FROM artifact_source WHERE id = $1`,
		id).Scan(&sealed))
	return sealed
}

func TestAWrongCredentialIsRefusedWithoutRepeatingIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.source()
	var keeper platformtest.Silent
	b.verbs.Vault = keeper.Vault()
	for what, one := range map[string]struct {
		as   context.Context
		in   source.CredentialInput
		code fault.Code
		path string
	}{
		"no secret": {b.admin, source.CredentialInput{SourceID: made.ID, User: "robot"}, fault.InvalidArgument,
			"input.secret"},
		"no user": {b.admin, source.CredentialInput{SourceID: made.ID, Secret: "s3cret"}, fault.InvalidArgument,
			"input.user"},
		"long user": {b.admin, source.CredentialInput{SourceID: made.ID, User: strings.Repeat("u", 201),
			Secret: "s3cret"},
			fault.InvalidArgument, "input.user"},
		"colon": {b.admin, source.CredentialInput{SourceID: made.ID, User: "a:b", Secret: "s3cret"},
			fault.InvalidArgument, "input.user"},
		"long secret": {b.admin, source.CredentialInput{SourceID: made.ID, User: "robot",
			Secret: strings.Repeat("s3cret", 700)}, fault.InvalidArgument, "input.secret"},
		"zero byte": {b.admin, source.CredentialInput{SourceID: made.ID, User: "robot", Secret: "s3cret\x00"},
			fault.InvalidArgument, "input.secret"},
		"no text": {b.admin, source.CredentialInput{SourceID: made.ID, User: "robot", Secret: "s3cret\xff"},
			fault.InvalidArgument, "input.secret"},
		"reason": {b.admin, source.CredentialInput{SourceID: made.ID, User: "robot", Secret: "s3cret",
			Reason: strings.Repeat("x", 1_001)}, fault.InvalidArgument, "input.reason"},
		"missing": {b.admin, source.CredentialInput{SourceID: noSuch, User: "robot", Secret: "s3cret"}, fault.NotFound,
			""},
		"another's": {b.elsewhere, source.CredentialInput{SourceID: made.ID, User: "robot", Secret: "s3cret"},
			fault.NotFound, ""},
		"a viewer": {b.viewer, source.CredentialInput{SourceID: made.ID, User: "robot", Secret: "s3cret"},
			fault.Forbidden, ""},
	} {
		_, err := b.verbs.SetCredential(one.as, one.in)
		refused(t, err, one.code, one.path, what)
		require.NotContains(t, fmt.Sprintf("%+v", fault.From(err)), "s3cret", what)
		b.unchanged(made, what)
		require.Nil(t, b.sealed(made.ID), what)
	}
	require.Zero(t, keeper.Asked(), "whoever may not makes us ask nobody")
	_, err := b.verbs.SetCredential(b.admin, source.CredentialInput{SourceID: made.ID, User: "robot", Secret: "s3cret"})
	refused(t, err, fault.Unavailable, "", "the keeper is away")
	require.Equal(t, int64(1), keeper.Asked())
	b.unchanged(made, "the keeper is away")
	require.Empty(t, b.entries("setSourceCredential"))
	_, err = b.verbs.SetCredential(b.admin, source.CredentialInput{SourceID: made.ID})
	require.NoError(t, err, "to take one away no keeper is needed")
}

func TestKeysAreTrustedAndRevoked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.source()
	first, err := b.verbs.AddKey(b.admin, source.KeyInput{SourceID: made.ID, Name: "release", PublicKey: edwards(t),
		Reason: "first"})
	require.NoError(t, err)
	require.Equal(t, []any{"release", "ed25519", made.ID, made.TenantID},
		[]any{first.Name, first.Algorithm, first.SourceID, first.TenantID})
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", first.Fingerprint)
	require.WithinDuration(t, time.Now(), first.ValidFrom, time.Minute)
	require.Nil(t, first.ValidUntil)
	text := ellipticKey(t, elliptic.P256())
	from, until := time.Now().Add(time.Hour).UTC().Truncate(time.Second),
		time.Now().Add(2*time.Hour).UTC().Truncate(time.Second)
	second, err := b.verbs.AddKey(b.admin, source.KeyInput{SourceID: made.ID, Name: "next", PublicKey: text + "\n",
		ValidFrom: &from, ValidUntil: &until})
	require.NoError(t, err)
	require.Equal(t, []any{"ecdsa-p256", text}, []any{second.Algorithm, second.PublicKey}, "the key alone is stored")
	require.Equal(t, []time.Time{from, until}, []time.Time{second.ValidFrom.UTC(), second.ValidUntil.UTC()})

	revoked, err := b.verbs.RevokeKey(b.admin, first.ID, "lost")
	require.NoError(t, err)
	require.NotNil(t, revoked.RevokedAt)
	require.Equal(t, "lost", revoked.RevokeReason)
	again, err := b.verbs.RevokeKey(b.admin, first.ID, "lost again")
	require.NoError(t, err)
	require.Equal(t, revoked, again, "for good, and once")
	_, err = b.verbs.AddKey(b.admin, source.KeyInput{SourceID: made.ID, Name: "back", PublicKey: first.PublicKey})
	refused(t, err, fault.Conflict, "input.publicKey", "a revoked key does not come back")

	of, err := b.verbs.KeysOf(b.viewer, []ids.ID{made.ID, noSuch})
	require.NoError(t, err)
	require.Equal(t, map[ids.ID][]*db.SignerKey{made.ID: {second, revoked}}, of)
	some, err := b.verbs.Keys(b.viewer, []ids.ID{second.ID})
	require.NoError(t, err)
	require.Equal(t, map[ids.ID]*db.SignerKey{second.ID: second}, some)
	_, account := b.ServiceAccount(b.Project(b.tenant), authz.ArtifactRead)
	some, err = b.verbs.Keys(b.With(account), []ids.ID{second.ID})
	require.NoError(t, err)
	require.Equal(t, map[ids.ID]*db.SignerKey{second.ID: second}, some, "whoever reads artifacts reads who signed them")
	_, err = b.verbs.KeysOf(b.With(account), []ids.ID{made.ID})
	refused(t, err, fault.Forbidden, "", "what a source trusts is its own matter")
	of, err = b.verbs.KeysOf(b.elsewhere, []ids.ID{made.ID})
	require.NoError(t, err)
	require.Empty(t, of, "another tenant's")
	some, err = b.verbs.Keys(b.elsewhere, []ids.ID{second.ID})
	require.NoError(t, err)
	require.Empty(t, some)
	require.Len(t, b.entries("addSignerKey"), 2)
	entries := b.entries("revokeSignerKey")
	require.Len(t, entries, 1)
	require.Equal(t, "lost", entries[0].Reason)
	require.Contains(t, string(entries[0].After), first.Fingerprint)
}

func TestWhatIsWrongWithAKeyIsNamedAndNothingIsTrusted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.source()
	good, past, soon := edwards(t), time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	for what, one := range map[string]struct {
		as     context.Context
		change func(in *source.KeyInput)
		code   fault.Code
		path   string
	}{
		"name": {b.admin, func(in *source.KeyInput) { in.Name = "" }, fault.InvalidArgument, "input.name"},
		"long name": {b.admin, func(in *source.KeyInput) { in.Name = strings.Repeat("n", 81) }, fault.InvalidArgument,
			"input.name"},
		"no key": {b.admin, func(in *source.KeyInput) { in.PublicKey = "" }, fault.InvalidArgument, "input.publicKey"},
		"no PEM": {b.admin, func(in *source.KeyInput) { in.PublicKey = "AAAA" }, fault.InvalidArgument,
			"input.publicKey"},
		"P-384": {b.admin, func(in *source.KeyInput) { in.PublicKey = ellipticKey(t, elliptic.P384()) },
			fault.InvalidArgument, "input.publicKey"},
		"RSA": {b.admin, func(in *source.KeyInput) { in.PublicKey = rsaKey(t) }, fault.InvalidArgument,
			"input.publicKey"},
		"two keys": {b.admin, func(in *source.KeyInput) { in.PublicKey = good + edwards(t) }, fault.InvalidArgument,
			"input.publicKey"},
		"too long": {b.admin, func(in *source.KeyInput) { in.PublicKey = good + strings.Repeat("\n", 5_000) },
			fault.InvalidArgument, "input.publicKey"},
		"ended": {b.admin, func(in *source.KeyInput) { in.ValidUntil = &past }, fault.InvalidArgument,
			"input.validUntil"},
		"backwards": {b.admin, func(in *source.KeyInput) {
			later := soon.Add(time.Hour)
			in.ValidFrom, in.ValidUntil = &later, &soon
		}, fault.InvalidArgument,
			"input.validUntil"},
		"reason": {b.admin, func(in *source.KeyInput) { in.Reason = strings.Repeat("x", 1_001) }, fault.InvalidArgument,
			"input.reason"},
		"missing":   {b.admin, func(in *source.KeyInput) { in.SourceID = noSuch }, fault.NotFound, ""},
		"another's": {b.elsewhere, func(*source.KeyInput) {}, fault.NotFound, ""},
		"a viewer":  {b.viewer, func(*source.KeyInput) {}, fault.Forbidden, ""},
	} {
		in := source.KeyInput{SourceID: made.ID, Name: "release", PublicKey: good}
		one.change(&in)
		_, err := b.verbs.AddKey(one.as, in)
		refused(t, err, one.code, one.path, what)
		require.Zero(t, b.Count("signer_key", ""), what)
	}
	key, err := b.verbs.AddKey(b.admin, source.KeyInput{SourceID: made.ID, Name: "release", PublicKey: good})
	require.NoError(t, err)
	for what, one := range map[string]struct {
		as     context.Context
		id     ids.ID
		reason string
		code   fault.Code
		path   string
	}{
		"no reason":   {b.admin, key.ID, "", fault.InvalidArgument, "reason"},
		"long reason": {b.admin, key.ID, strings.Repeat("x", 1_001), fault.InvalidArgument, "reason"},
		"missing":     {b.admin, ids.New(ids.SignerKey), "lost", fault.NotFound, ""},
		"another's":   {b.elsewhere, key.ID, "lost", fault.NotFound, ""},
		"a viewer":    {b.viewer, key.ID, "lost", fault.Forbidden, ""},
	} {
		_, err := b.verbs.RevokeKey(one.as, one.id, one.reason)
		refused(t, err, one.code, one.path, what)
		require.Equal(t, 1, b.Count("signer_key", "revoked_at IS NULL AND revoke_reason = ''"), what)
	}
	b.SQL(`INSERT INTO signer_key (id, source_id, tenant_id, name, public_key, fingerprint, algorithm, valid_from,
		created_at)
		SELECT 'sgk_' || n, $1, $2, 'n', 'x', 'sha256:' || n, 'ed25519', now(), now()
		FROM generate_series(1, 49) n`, made.ID, made.TenantID)
	_, err = b.verbs.AddKey(b.admin, source.KeyInput{SourceID: made.ID, Name: "one too many", PublicKey: edwards(t)})
	refused(t, err, fault.LimitExceeded, "input.sourceId", "one too many")
	require.Equal(t, 50, b.Count("signer_key", ""))
}
