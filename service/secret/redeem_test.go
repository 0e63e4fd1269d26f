package secret_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/secret"
)

func TestASecretIsDeliveredOnceSealedToItsNodeAndThenGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.allow("joining")
	made := b.issue(b.toNode())
	got, err := b.secrets.Redeem(b.node, made.ID)
	require.NoError(t, err)
	require.Nil(t, got.Value, "a node gets it sealed")
	require.Len(t, b.open(*got.Sealed), 43)
	require.True(t, b.wiped(made.ID))
	_, err = b.secrets.Redeem(b.node, made.ID)
	platformtest.Refused(t, err, fault.SecretSpent, "secretId")
	require.Equal(t, 1, b.Count("runtime_secret", "id = $1 AND deliveries = 1 AND delivered_at IS NOT NULL", made.ID))
	for _, entry := range b.Audit() {
		require.NotContains(t, string(entry.After), b.open(*got.Sealed))
	}
	listed, err := b.secrets.List(b.admin, secret.Filter{InstanceID: b.instance.ID}, page.Args{First: 10})
	require.NoError(t, err)
	require.Empty(t, listed.Rows, "what is spent is listed when asked for")
	listed, err = b.secrets.List(b.admin, secret.Filter{InstanceID: b.instance.ID, Ended: true}, page.Args{First: 10})
	require.NoError(t, err)
	require.Len(t, listed.Rows, 1)
}

func TestOfManyTakersAtOnceOneGetsASecretThatIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.allow("joining")
	made := b.issue(b.input())
	var wait sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wait.Go(func() { _, errs[i] = b.secrets.Redeem(b.adapter, made.ID) })
	}
	wait.Wait()
	got := 0
	for _, err := range errs {
		if err == nil {
			got++
			continue
		}
		platformtest.Refused(t, err, fault.SecretSpent, "secretId")
	}
	require.Equal(t, 1, got)
	require.Equal(t, 1, b.Count("runtime_secret", "deliveries = 1"))
}

func TestASecretUntilExpiryIsTheSameEveryTimeAndEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.allow("joining")
	in := b.input()
	in.Delivery = lifecycle.DeliverUntilExpiry
	made := b.issue(in)
	call := b.signed(token.Claims{Instance: b.instance.ID, Keys: authz.OperationKeys(authz.SecretRedeem)})
	first, err := b.secrets.Redeem(b.adapter, made.ID)
	require.NoError(t, err)
	require.Nil(t, first.Sealed)
	second, err := b.secrets.Redeem(call, made.ID)
	require.NoError(t, err, "by the token of a call")
	require.Equal(t, *first.Value, *second.Value)
	b.SQL(`UPDATE runtime_secret SET expires_at = now() - interval '1 second'`)
	_, err = b.secrets.Redeem(b.adapter, made.ID)
	platformtest.Refused(t, err, fault.SecretSpent, "secretId")
	_, err = b.secrets.Rotate(b.admin, secret.RotateInput{SecretID: made.ID})
	platformtest.Refused(t, err, fault.SecretSpent, "secretId")
}

func TestWhoASecretIsNotBoundToFindsNothingAndIsAudited(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.allow("joining")
	forNode, forAdapter := b.issue(b.toNode()), b.issue(b.input())
	_, credential := b.Node(1)
	other := b.Instance(b.project, b.manifest(), lifecycle.InstanceRunning)
	otherOperation := b.Operation(other, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	stranger := b.With(b.OperationToken(otherOperation, authz.SecretRedeem))
	for name, c := range map[string]struct {
		err  error
		code fault.Code
	}{
		"another node":            {second(b.secrets.Redeem(b.With(credential), forNode.ID)), fault.NotFound},
		"a node, the adapter's":   {second(b.secrets.Redeem(b.node, forAdapter.ID)), fault.NotFound},
		"the adapter, the node's": {second(b.secrets.Redeem(b.adapter, forNode.ID)), fault.NotFound},
		"the adapter of another":  {second(b.secrets.Redeem(stranger, forAdapter.ID)), fault.NotFound},
		"a token without the key": {second(b.secrets.Redeem(b.With(b.OperationToken(b.operation, authz.SecretRead)),
			forAdapter.ID)), fault.Forbidden},
		"the admin":       {second(b.secrets.Redeem(b.admin, forAdapter.ID)), fault.Forbidden},
		"an operator":     {second(b.secrets.Redeem(b.As(b.Operator()), forAdapter.ID)), fault.Forbidden},
		"nobody's secret": {second(b.secrets.Redeem(b.node, ids.New(ids.RuntimeSecret))), fault.NotFound},
		"the admin, one that is nobody": {second(b.secrets.Redeem(b.admin, ids.New(ids.RuntimeSecret))),
			fault.Forbidden},
	} {
		require.True(t, fault.Is(c.err, c.code), "%s: %v", name, c.err)
	}
	denied := 0
	for _, entry := range b.Audit() {
		if entry.Action == "redeemRuntimeSecret" && !entry.Allowed {
			denied += entry.Repeats
		}
	}
	require.GreaterOrEqual(t, denied, 8)
	require.Equal(t, 2, b.Count("runtime_secret", "deliveries = 0 AND sealed IS NOT NULL"))
}

func second[T any](_ T, err error) error { return err }

func TestTheDatabaseItselfShowsNoSealedValueToTheAPI(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.allow("joining")
	b.issue(b.input())
	for _, statement := range []string{`SELECT sealed FROM runtime_secret`, `SELECT * FROM runtime_secret`,
		`UPDATE runtime_secret SET previous = sealed`} {
		err := b.try(statement)
		require.ErrorContains(t, err, "permission denied", statement)
	}
}

func TestRotationMakesANewValueAndKeepsTheOneBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.allow("joining")
	made := b.issue(b.input())
	first, err := b.secrets.Redeem(b.adapter, made.ID)
	require.NoError(t, err)
	next, err := b.secrets.Rotate(b.admin, secret.RotateInput{SecretID: made.ID, OverlapSeconds: 60, Reason: "weekly"})
	require.NoError(t, err)
	require.Equal(t, 2, next.Version)
	require.Zero(t, next.Deliveries)
	require.NotNil(t, next.RotatedAt)
	got, err := b.secrets.Redeem(b.adapter, made.ID)
	require.NoError(t, err)
	require.Equal(t, 2, got.Version)
	require.NotEqual(t, *first.Value, *got.Value)

	in := b.input()
	in.Delivery = lifecycle.DeliverUntilExpiry
	lasting := b.issue(in)
	_, err = b.secrets.Rotate(b.admin, secret.RotateInput{SecretID: lasting.ID, OverlapSeconds: 60})
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("runtime_secret",
		"id = $1 AND previous IS NOT NULL AND previous <> sealed AND previous_until > now()", lasting.ID))
	_, err = b.secrets.Rotate(b.admin, secret.RotateInput{SecretID: lasting.ID})
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("runtime_secret", "id = $1 AND previous IS NULL AND version = 3", lasting.ID))
	_, err = b.secrets.Rotate(b.admin, secret.RotateInput{SecretID: lasting.ID, OverlapSeconds: 86_401})
	platformtest.Refused(t, err, fault.InvalidArgument, "overlapSeconds")
	_, err = b.secrets.Rotate(b.As(b.User(nil, platformtest.In(authz.ProjectViewer, b.project))),
		secret.RotateInput{SecretID: lasting.ID})
	platformtest.Refused(t, err, fault.Forbidden, "")
}

func TestRevocationAndTheEndOfWhatItIsForWipeASecret(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.allow("joining")
	revoked, member, instance := b.issue(b.input()), b.issue(b.toNode()), b.issue(b.input())
	out, err := b.secrets.Revoke(b.admin, revoked.ID, "leaked")
	require.NoError(t, err)
	require.NotNil(t, out.RevokedAt)
	require.True(t, b.wiped(revoked.ID))
	again, err := b.secrets.Revoke(b.admin, revoked.ID, "")
	require.NoError(t, err)
	require.Equal(t, out.RevokedAt, again.RevokedAt)
	_, err = b.secrets.Redeem(b.adapter, revoked.ID)
	platformtest.Refused(t, err, fault.SecretSpent, "secretId")

	b.SQL(`UPDATE member SET status = 'REMOVING' WHERE id = $1`, b.member)
	require.False(t, b.wiped(member.ID))
	b.SQL(`UPDATE member SET status = 'REMOVED' WHERE id = $1`, b.member)
	require.True(t, b.wiped(member.ID))
	_, err = b.secrets.Redeem(b.node, member.ID)
	platformtest.Refused(t, err, fault.NotFound, "")
	require.False(t, b.wiped(instance.ID))
	b.SQL(`UPDATE instance SET released_at = now() WHERE id = $1`, b.instance.ID)
	require.True(t, b.wiped(instance.ID))
	require.Equal(t, 3, b.Count("runtime_secret", "revoked_at IS NOT NULL"))
}

func TestAValueOfAnotherRowDoesNotOpen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.allow("joining")
	one, two := b.issue(b.input()), b.issue(b.input())
	b.SQL(`UPDATE runtime_secret SET sealed = (SELECT sealed FROM runtime_secret WHERE id = $2) WHERE id = $1`, one.ID,
		two.ID)
	_, err := b.secrets.Redeem(b.adapter, one.ID)
	require.Error(t, err)
	require.Equal(t, fault.Internal, fault.From(err).Code)
	require.Equal(t, 1, b.Count("runtime_secret", "id = $1 AND deliveries = 0", one.ID),
		"what could not be opened was not delivered")
}
