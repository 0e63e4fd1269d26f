package secret_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/secret"
)

func TestASecretIsIssuedKeptInCustodyAndListedWithoutItsValue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.allow("joining")
	in := b.toNode()
	in.Reason = "a worker joins"
	made := b.issue(in)
	require.Equal(t, b.nodeID, *made.NodeID)
	require.Equal(t, 1, made.Version)
	require.WithinDuration(t, made.CreatedAt.Add(300*time.Second), made.ExpiresAt, time.Second)
	require.Equal(t, 1, b.Count("runtime_secret", "id = $1 AND sealed IS NOT NULL AND keeper = 'local'", made.ID))

	again := b.issue(in)
	require.Equal(t, made.ID, again.ID, "the same key is the same secret")
	other := in
	other.TTLSeconds = 60
	_, err := b.secrets.Issue(b.admin, other)
	platformtest.Refused(t, err, fault.IdempotencyKeyReused, "input.idempotencyKey")

	listed, err := b.secrets.List(b.admin, secret.Filter{InstanceID: b.instance.ID}, page.Args{First: 10})
	require.NoError(t, err)
	require.Len(t, listed.Rows, 1)
	got, err := b.secrets.Get(b.admin, made.ID)
	require.NoError(t, err)
	require.Equal(t, listed.Rows[0], got)
	entries := b.Audit()
	last := entries[len(entries)-1]
	require.Equal(t, "issueRuntimeSecret", last.Action)
	require.Equal(t, "secret.issue", last.PermissionKey)
	require.Equal(t, "a worker joins", last.Reason)
}

func TestBadInputIsRefusedByItsFieldAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.allow("joining")
	foreign := ids.New(ids.Member)
	for _, c := range []struct {
		name   string
		change func(in *secret.IssueInput)
		code   fault.Code
		path   string
	}{
		{"purpose", func(in *secret.IssueInput) { in.Purpose = "Not A Name" }, fault.InvalidArgument, "input.purpose"},
		{"too short", func(in *secret.IssueInput) { in.TTLSeconds = 29 }, fault.InvalidArgument, "input.ttlSeconds"},
		{"too long", func(in *secret.IssueInput) { in.TTLSeconds = 86_401 }, fault.InvalidArgument, "input.ttlSeconds"},
		{"pull too long", func(in *secret.IssueInput) {
			in.Purpose, in.ArtifactDigest, in.TTLSeconds = secret.PurposeArtifactPull, b.digest, 901
		}, fault.InvalidArgument, "input.ttlSeconds"},
		{"pull of nothing", func(in *secret.IssueInput) {
			in.Purpose = secret.PurposeArtifactPull
		}, fault.InvalidArgument,
			"input.artifactDigest"},
		{"pull of another", func(in *secret.IssueInput) {
			in.Purpose, in.ArtifactDigest = secret.PurposeArtifactPull, platformtest.Digest([]byte("other"))
		}, fault.InvalidArgument, "input.artifactDigest"},
		{"digest of none", func(in *secret.IssueInput) { in.ArtifactDigest = b.digest }, fault.InvalidArgument,
			"input.artifactDigest"},
		{"node without member", func(in *secret.IssueInput) {
			in.Audience = lifecycle.SecretForNode
		}, fault.InvalidArgument,
			"input.memberId"},
		{"adapter with member", func(in *secret.IssueInput) { in.MemberID = &b.member }, fault.InvalidArgument,
			"input.memberId"},
		{"unknown member", func(in *secret.IssueInput) {
			in.Audience, in.MemberID = lifecycle.SecretForNode, &foreign
		}, fault.InvalidArgument, "input.memberId"},
		{"reason", func(in *secret.IssueInput) { in.Reason = strings.Repeat("x", 1_001) }, fault.InvalidArgument,
			"input.reason"},
		{"key", func(in *secret.IssueInput) { in.IdempotencyKey = "" }, fault.InvalidArgument, "input.idempotencyKey"},
		{"undeclared", func(in *secret.IssueInput) { in.Purpose = "undeclared" }, fault.PolicyDenied, "input.purpose"},
		{"instance", func(in *secret.IssueInput) { in.InstanceID = ids.New(ids.Instance) }, fault.NotFound, ""},
	} {
		in := b.input()
		c.change(&in)
		_, err := b.secrets.Issue(b.admin, in)
		platformtest.Refused(t, err, c.code, c.path)
	}
	require.Zero(t, b.Count("runtime_secret", ""))
	require.Zero(t, b.Count("idempotency", ""))
}

func TestPurposesNeedThePlatformsPolicyAndTheManifest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.secrets.Issue(b.admin, b.input())
	platformtest.Refused(t, err, fault.PolicyDenied, "input.purpose")
	require.Equal(t, fault.PurposeDenied, fault.From(err).Reasons[0].Code)
	entries := b.Audit()
	require.Equal(t, string(fault.PolicyDenied), entries[len(entries)-1].Code)
	require.Zero(t, b.Count("runtime_secret", ""))
	b.allow("joining")
	b.issue(b.input())
}

func TestAPullTokenSaysWhatMayBePulledAndTheAPIDoesNotTakeIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := b.toNode()
	in.Purpose, in.ArtifactDigest, in.TTLSeconds = secret.PurposeArtifactPull, b.digest, 900
	made := b.issue(in)
	var spec struct{ Registry, Repository, Digest string }
	require.NoError(t, json.Unmarshal(made.Spec, &spec))
	require.Equal(t, "registry.test", spec.Registry)
	require.Equal(t, b.digest, spec.Digest)
	got, err := b.secrets.Redeem(b.node, made.ID)
	require.NoError(t, err)
	text := b.open(*got.Sealed)
	_, err = b.Ring.Verify(text, time.Now())
	require.True(t, fault.Is(err, fault.Unauthenticated), "%v", err)
	body, err := base64.RawURLEncoding.DecodeString(strings.Split(text, ".")[1])
	require.NoError(t, err)
	var claims map[string]any
	require.NoError(t, json.Unmarshal(body, &claims))
	require.Equal(t, string(b.nodeID), claims["sub"])
	require.Equal(t, string(made.ID), claims["jti"])
	require.Equal(t, platformtest.Issuer, claims["iss"])
	require.Equal(t, []any{map[string]any{"type": "repository", "name": spec.Repository, "actions": []any{"pull"}}},
		claims["access"])
	require.EqualValues(t, made.ExpiresAt.Unix(), claims["exp"])
}

func TestWhatIsGoneGetsNoSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.allow("joining")
	b.SQL(`UPDATE member SET node_id = NULL WHERE id = $1`, b.member)
	_, err := b.secrets.Issue(b.admin, b.toNode())
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.memberId")
	b.SQL(`UPDATE instance SET released_at = now() WHERE id = $1`, b.instance.ID)
	_, err = b.secrets.Issue(b.admin, b.input())
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.instanceId")
	require.Zero(t, b.Count("runtime_secret", ""))
}

func TestWhoLacksTheKeyIssuesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.allow("joining")
	viewer := b.As(b.User(nil, platformtest.In(authz.ProjectViewer, b.project)))
	_, err := b.secrets.Issue(viewer, b.input())
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = b.secrets.List(viewer, secret.Filter{InstanceID: b.instance.ID}, page.Args{First: 1})
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = b.secrets.Issue(b.node, b.input())
	platformtest.Refused(t, err, fault.Forbidden, "")
	other := b.Instance(b.project, b.manifest(), lifecycle.InstanceRunning)
	in := b.input()
	in.InstanceID = other.ID
	_, err = b.secrets.Issue(b.adapter, in)
	platformtest.Refused(t, err, fault.NotFound, "")
	require.Zero(t, b.Count("runtime_secret", ""))
	_, err = b.secrets.Issue(b.adapter, b.input())
	require.NoError(t, err, "an operation issues for its own instance")
}
