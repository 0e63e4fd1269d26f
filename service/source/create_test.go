package source_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/source"
)

func TestASourceIsMadeOnceAndKnownToItsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := b.input()
	made, err := b.verbs.Create(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, []any{"models", lifecycle.SourceOCI, "registry.test/models", "", lifecycle.SignatureRequired, "",
		&b.tenant.ID},
		[]any{made.Name, made.Kind, made.Location, made.Region, made.SignaturePolicy, made.CredentialUser,
			made.TenantID})
	require.Nil(t, made.DisabledAt)
	require.Nil(t, made.CredentialAt)
	require.NotEmpty(t, made.CreatedBy)
	again, err := b.verbs.Create(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, made, again)
	in.Name = "others"
	_, err = b.verbs.Create(b.admin, in)
	refused(t, err, fault.IdempotencyKeyReused, "", "other input")
	require.Equal(t, 1, b.Count("artifact_source", ""))
	entries := b.entries("createArtifactSource")
	require.Len(t, entries, 1)
	require.Contains(t, string(entries[0].After), "registry.test/models")
	require.Equal(t, made.ID, ids.ID(entries[0].ObjectID))

	store := b.input()
	store.Kind, store.Location, store.Name = lifecycle.SourceS3, "https://s3.test:9000/bucket/weights/", "store"
	bucket, err := b.verbs.Create(b.admin, store)
	require.NoError(t, err)
	require.Equal(t, "us-east-1", bucket.Region)
	platforms := b.input()
	platforms.TenantID = nil // with the name and the location that a tenant has
	common, err := b.verbs.Create(b.operator, platforms)
	require.NoError(t, err)
	require.Nil(t, common.TenantID)

	for who, want := range map[context.Context][]ids.ID{
		b.viewer: {common.ID, made.ID, bucket.ID}, b.operator: {common.ID, made.ID, bucket.ID},
		b.elsewhere: {common.ID},
	} {
		var found []ids.ID
		args := page.Args{First: 1}
		for {
			p, err := b.verbs.List(who, nil, args)
			require.NoError(t, err)
			found = append(found, p.Rows[0].ID)
			if !p.HasNext {
				break
			}
			args.After = p.Cursors[0]
		}
		require.ElementsMatch(t, want, found)
	}
	p, err := b.verbs.List(b.viewer, &b.tenant.ID, page.Args{First: 10})
	require.NoError(t, err)
	require.Len(t, p.Rows, 3)
	p, err = b.verbs.List(b.elsewhere, &b.tenant.ID, page.Args{First: 10})
	require.NoError(t, err)
	require.Len(t, p.Rows, 1, "another's tenant adds nothing")
	_, err = b.verbs.Get(b.elsewhere, made.ID)
	refused(t, err, fault.NotFound, "", "another tenant's")
	many, err := b.verbs.Many(b.elsewhere, []ids.ID{made.ID, common.ID})
	require.NoError(t, err)
	require.Equal(t, map[ids.ID]*db.ArtifactSource{common.ID: common}, many, "another tenant's is left out")
	nobody := b.As(b.User(b.Tenant()))
	for what, read := range map[string]func() error{
		"list": func() error { _, err := b.verbs.List(nobody, nil, page.Args{First: 1}); return err },
		"get":  func() error { _, err := b.verbs.Get(nobody, common.ID); return err },
		"many": func() error { _, err := b.verbs.Many(nobody, []ids.ID{common.ID}); return err },
		"keys": func() error { _, err := b.verbs.KeysOf(nobody, []ids.ID{common.ID}); return err },
		"key":  func() error { _, err := b.verbs.Keys(nobody, nil); return err },
	} {
		refused(t, read(), fault.Forbidden, "", what)
	}
	_, err = b.verbs.List(b.admin, nil, page.Args{First: 1, After: "x"})
	refused(t, err, fault.CursorInvalid, "", "cursor")
}

func TestOnlyLocationsInTheirOneSpellingAreTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	long := strings.Repeat("a", 63) + "."
	for kind, locations := range map[lifecycle.SourceKind][]string{
		lifecycle.SourceOCI: {"", "registry", "registry.test/", "registry.test/a/", "https://registry.test",
			"registry.test//a", "/a", "Registry.test", "registry.test/A",
			"registry.test/a:tag", "registry.test/a@sha256:0", "registry.test:0", "registry.test:443",
			"registry.test:05000",
			"registry.test:65536", "registry.test:x", "registry.test:", "user@registry.test",
			"registry.test/../a", "registry.test/a b", "registry.test?x", "registry.test#x", "registry.test.",
			".registry.test",
			"-a.test", "a_b.test", "1::2", "[::1", "[0:0::1]:5000", "[fe80::1%eth0]:5000",
			"registry.test/" + strings.Repeat("a", 400), strings.Repeat(long, 4) + "test"},
		lifecycle.SourceHTTPS: {"", "https://", "https:///", "http://files.test/", "files.test/", "https://files.test",
			"https://files.test/a", "https://Files.test/", "https://u:p@files.test/",
			"https://files.test/?", "https://files.test/?a=b/", "https://files.test/#/", "https://files.test//",
			"https://files.test/a//", "https://files.test/../", "https://files.test/a/./",
			"https://files.test/%61/", "https://files.test:443/", "https://files.test/a b/", `https://files.test/a\b/`,
			"ftp://files.test/", "https://files.test:/"},
		lifecycle.SourceS3: {"https://s3.test/", "https://s3.test/Bucket/", "https://s3.test/b/",
			"https://s3.test/-bucket/",
			"https://s3.test/bucket", "s3://bucket/", "https://s3.test/bucket//"},
		"FTP": {"registry.test", "https://files.test"},
	} {
		for _, location := range locations {
			in := b.input()
			in.Kind, in.Location = kind, location
			_, err := b.verbs.Create(b.admin, in)
			refused(t, err, fault.InvalidArgument, "input.location", string(kind)+" "+location)
		}
	}
	b.nothing("refused locations")
	names := 0
	for kind, locations := range map[lifecycle.SourceKind][]string{
		lifecycle.SourceOCI: {"localhost", "registry:5000", "8.8.8.8/a", "[2606:4700::1]:5000/a",
			"registry.test/a/b__c/d-e.f", "xn--bcher-kva.test"},
		lifecycle.SourceHTTPS: {"https://files.test/", "https://files.test:8443/A/b~c/d=1/", "https://files/"},
		lifecycle.SourceS3:    {"https://s3.test/bucket/", "https://s3.test:9000/my.bucket-1/Prefix/x/"},
	} {
		for _, location := range locations {
			in := b.input()
			names++
			in.Kind, in.Location, in.Name = kind, location, "source-"+string(rune('a'+names))
			made, err := b.verbs.Create(b.admin, in)
			require.NoError(t, err, location)
			require.Equal(t, location, made.Location)
		}
	}
}

func TestWhatIsWrongWithASourceIsNamedAndNothingIsMade(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for what, one := range map[string]struct {
		as     context.Context
		change func(in *source.CreateInput)
		code   fault.Code
		path   string
	}{
		"name": {b.admin, func(in *source.CreateInput) { in.Name = "My models" }, fault.InvalidArgument,
			"input.name"},
		"region": {b.admin, func(in *source.CreateInput) { in.Region = "eu-1" }, fault.InvalidArgument, "input.region"},
		"bad region": {b.admin, func(in *source.CreateInput) {
			in.Kind, in.Location, in.Region = lifecycle.SourceS3, "https://s3.test/bucket/", "EU 1"
		}, fault.InvalidArgument, "input.region"},
		"policy": {b.admin, func(in *source.CreateInput) { in.SignaturePolicy = "MAYBE" }, fault.InvalidArgument,
			"input.signaturePolicy"},
		"key": {b.admin, func(in *source.CreateInput) { in.IdempotencyKey = "" }, fault.InvalidArgument,
			"input.idempotencyKey"},
		"inside": {b.admin, func(in *source.CreateInput) { in.Location = "169.254.169.254/latest" },
			fault.DialRefused, "input.location"},
		"inside by number": {b.admin, func(in *source.CreateInput) { in.Location = "127.1:5000" }, fault.DialRefused,
			"input.location"},
		"inside, v6": {b.admin, func(in *source.CreateInput) {
			in.Kind, in.Location = lifecycle.SourceHTTPS, "https://[::1]:8443/"
		}, fault.DialRefused, "input.location"},
		"no tenant": {b.admin, func(in *source.CreateInput) { id := ids.New(ids.Tenant); in.TenantID = &id },
			fault.NotFound, ""},
		"another's tenant": {b.elsewhere, func(*source.CreateInput) {}, fault.NotFound, ""},
		"the platform's":   {b.admin, func(in *source.CreateInput) { in.TenantID = nil }, fault.Forbidden, ""},
		"a viewer":         {b.viewer, func(*source.CreateInput) {}, fault.Forbidden, ""},
	} {
		in := b.input()
		one.change(&in)
		_, err := b.verbs.Create(one.as, in)
		refused(t, err, one.code, one.path, what)
		b.nothing(what)
	}
	require.GreaterOrEqual(t, b.denied("createArtifactSource"), 4, "refusals are in the audit")
}

func TestNamesAndLocationsAreOnesOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.source()
	in := b.input()
	in.Location = "registry.test/others"
	_, err := b.verbs.Create(b.admin, in)
	refused(t, err, fault.Conflict, "input.name", "the same name")
	in = b.input()
	in.Name = "others"
	_, err = b.verbs.Create(b.admin, in)
	refused(t, err, fault.Conflict, "input.location", "the same location")
	require.Equal(t, 1, b.Count("artifact_source", ""))
	require.Equal(t, 1, b.Count("idempotency", ""))

	off, on, name := true, false, "others"
	_, err = b.verbs.Update(b.admin, source.UpdateInput{SourceID: first.ID, Disabled: &off})
	require.NoError(t, err)
	second, err := b.verbs.Create(b.admin, in)
	require.NoError(t, err, "what is switched off gives its place")
	_, err = b.verbs.Update(b.admin, source.UpdateInput{SourceID: first.ID, Disabled: &on})
	refused(t, err, fault.Conflict, "input.disabled", "its place is taken")
	_, err = b.verbs.Update(b.admin, source.UpdateInput{SourceID: first.ID, Name: &name})
	refused(t, err, fault.Conflict, "input.name", "its new name is taken")
	require.Equal(t, 1, b.Count("artifact_source", "id = $1 AND name = 'others' AND disabled_at IS NULL", second.ID))
	require.Equal(t, 1, b.Count("artifact_source", "id = $1 AND name = 'models' AND disabled_at IS NOT NULL", first.ID))
}

func TestPolicyRulesWhatSourcesMayCover(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Policy(nil, `{"artifactSources":{"allow":["registry.test"],"deny":["registry.test/models"]}}`)
	_, err := b.verbs.Create(b.admin, b.input())
	refused(t, err, fault.PolicyDenied, "input.location", "denied")
	require.Equal(t, fault.SourceDenied, fault.From(err).Reasons[0].Code)
	in := b.input()
	in.Kind, in.Location = lifecycle.SourceHTTPS, "https://files.test/"
	_, err = b.verbs.Create(b.admin, in)
	refused(t, err, fault.PolicyDenied, "input.location", "not among the allowed")
	b.nothing("denied")

	b.Policy(nil, `{}`)
	made := b.source()
	off, on := true, false
	_, err = b.verbs.Update(b.admin, source.UpdateInput{SourceID: made.ID, Disabled: &off})
	require.NoError(t, err)
	b.Policy(nil, `{"final":{"artifactSources":["registry.test"]}}`)
	_, err = b.verbs.Update(b.admin, source.UpdateInput{SourceID: made.ID, Disabled: &on})
	refused(t, err, fault.PolicyDenied, "input.disabled", "switched on against policy")
	require.Equal(t, fault.PlatformFinal, fault.From(err).Reasons[0].Code)
	require.Equal(t, 1, b.Count("artifact_source", "disabled_at IS NOT NULL"))
	b.SQL(`DELETE FROM policy_overlay`)
	b.SQL(`INSERT INTO policy_overlay (id, scope, tenant_id, revision, document, created_at)
		VALUES ($1, 'TENANT', $2, 1, '{"artifactSources":{"deny":["registry.test"]}}', now())`,
		ids.New(ids.PolicyOverlay), b.tenant.ID)
	_, err = b.verbs.Update(b.admin, source.UpdateInput{SourceID: made.ID, Disabled: &on})
	refused(t, err, fault.PolicyDenied, "input.disabled", "against the tenant's own policy")
}

func TestAnOwnerHasABoundedNumberOfSources(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.SQL(`INSERT INTO artifact_source (id, tenant_id, name, kind, location, created_at)
		SELECT 'src_' || n, $1, 'n' || n, 'OCI', 'registry.test/n' || n, now()
		FROM generate_series(1, 200) n`, b.tenant.ID)
	_, err := b.verbs.Create(b.admin, b.input())
	refused(t, err, fault.LimitExceeded, "input.tenantId", "one too many")
	require.Equal(t, 200, b.Count("artifact_source", ""))
	in := b.input()
	in.TenantID = nil
	_, err = b.verbs.Create(b.operator, in)
	require.NoError(t, err, "another owner has its own")
}
