package idem_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/idem"
)

// The bounds of every wait for a state.
const (
	patience = 60 * time.Second
	tick     = 10 * time.Millisecond
)

type bundle struct {
	*platformtest.Kit
	project, sibling *db.Project
	admin            *db.User
	ctx              context.Context
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{Kit: platformtest.New(t)}
	tenant := b.Tenant()
	b.project, b.sibling = b.Project(tenant), b.Project(tenant)
	b.admin = b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant),
		platformtest.In(authz.ProjectAdmin, b.project), platformtest.In(authz.ProjectAdmin, b.sibling))
	b.ctx = b.As(b.admin)
	return b
}

func (b *bundle) key(value string, input any) idem.Key {
	return idem.Key{Verb: "verb", TenantID: b.project.TenantID, ProjectID: b.project.ID, Value: value, Input: input}
}

// claim uses a key in a transaction of its own, with a result that the call would make.
func (b *bundle) claim(ctx context.Context, key idem.Key, result string) (string, bool, error) {
	var repeated bool
	err := b.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		repeated, err = idem.Claim(ctx, t, key, &result)
		return err
	})
	return result, repeated, err
}

// Across a rolling upgrade a repeat may meet a build that knows one field of the input more or less.
func TestARepeatIsKnownThoughAnotherBuildKnowsMoreFields(t *testing.T) {
	t.Parallel()
	b := setup(t)
	type older struct{ Name string }
	type newer struct {
		Name   string
		Labels map[string]string
		Wait   *int
		Force  bool
	}
	_, repeated, err := b.claim(b.ctx, b.key("k", older{Name: "a"}), "one")
	require.NoError(t, err)
	require.False(t, repeated)
	result, repeated, err := b.claim(b.ctx, b.key("k", newer{Name: "a"}), "two")
	require.NoError(t, err)
	require.True(t, repeated)
	require.Equal(t, "one", result)
	_, _, err = b.claim(b.ctx, b.key("k", newer{Name: "a", Force: true}), "three")
	platformtest.Refused(t, err, fault.IdempotencyKeyReused, "input.idempotencyKey")

	whole := sha256.Sum256([]byte(`{"Name":"a","Labels":null,"Wait":null,"Force":false}`))
	b.SQL(`UPDATE idempotency SET input_digest = $1`, whole[:]) // as a build before this one stored it
	_, repeated, err = b.claim(b.ctx, b.key("k", newer{Name: "a"}), "four")
	require.NoError(t, err)
	require.True(t, repeated)
}

func TestARepeatGetsWhatTheFirstCallMade(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made, repeated, err := b.claim(b.ctx, b.key("k", map[string]int{"n": 1}), "first")
	require.NoError(t, err)
	require.False(t, repeated)
	require.Equal(t, "first", made)
	made, repeated, err = b.claim(b.ctx, b.key("k", map[string]int{"n": 1}), "second")
	require.NoError(t, err)
	require.True(t, repeated)
	require.Equal(t, "first", made)
	require.Equal(t, 1, b.Count("idempotency", ""))
}

func TestOtherInputUnderTheSameKeyIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, _, err := b.claim(b.ctx, b.key("k", 1), "first")
	require.NoError(t, err)
	_, _, err = b.claim(b.ctx, b.key("k", 2), "second")
	require.True(t, fault.Is(err, fault.IdempotencyKeyReused), "%v", err)
	require.Equal(t, "input.idempotencyKey", fault.From(err).Reasons[0].Path)
	require.Equal(t, 1, b.Count("idempotency", ""))
}

func TestARefusedCallLeavesItsKeyFree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	refused := errors.New("refused")
	err := b.DB.Write(b.ctx, func(ctx context.Context, w *tx.Tx) error {
		_, err := idem.Claim(ctx, w, b.key("k", 1), new(string))
		require.NoError(t, err)
		return refused
	})
	require.ErrorIs(t, err, refused)
	_, repeated, err := b.claim(b.ctx, b.key("k", 2), "second")
	require.NoError(t, err)
	require.False(t, repeated)
}

func TestAKeyIsOfOneCallerProjectAndVerb(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, _, err := b.claim(b.ctx, b.key("k", 1), "first")
	require.NoError(t, err)
	verb, project := b.key("k", 2), b.key("k", 2)
	verb.Verb, project.ProjectID = "other", b.sibling.ID
	colleague := b.As(b.User(nil, platformtest.In(authz.ProjectAdmin, b.project)))
	_, credential := b.ServiceAccount(b.project, authz.AppsInstanceCreate)
	for name, use := range map[string]struct {
		ctx context.Context
		key idem.Key
	}{"verb": {b.ctx, verb}, "project": {b.ctx, project}, "person": {colleague, b.key("k", 2)},
		"account": {b.With(credential), b.key("k", 2)}} {
		made, repeated, err := b.claim(use.ctx, use.key, name)
		require.NoError(t, err, name)
		require.False(t, repeated, name)
		require.Equal(t, name, made)
	}
	_, repeated, err := b.claim(b.As(b.admin), b.key("k", 1), "again") // another session of the same person
	require.NoError(t, err)
	require.True(t, repeated)
}

func TestOfTwoAtOnceOneWinsAndTheOtherGetsTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const rivals = 4
	var running sync.WaitGroup
	made, repeats, errs := [rivals]string{}, [rivals]bool{}, [rivals]error{}
	for i := range rivals {
		running.Go(func() {
			made[i] = string(rune('a' + i))
			errs[i] = b.DB.Write(b.ctx, func(ctx context.Context, w *tx.Tx) (err error) {
				repeats[i], err = idem.Claim(ctx, w, b.key("k", 1), &made[i])
				if err == nil && !repeats[i] { // the winner holds its transaction open until a rival waits
					require.Eventually(t, func() bool {
						return b.Count("pg_locks",
							"NOT granted AND locktype = 'transactionid' AND pid IN (SELECT pid FROM pg_stat_activity "+
								"WHERE datname = current_database())") > 0
					}, patience, tick)
				}
				return err
			})
		})
	}
	running.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	winners := 0
	for i := range rivals {
		require.Equal(t, made[0], made[i])
		if !repeats[i] {
			winners++
		}
	}
	require.Equal(t, 1, winners)
	require.Equal(t, 1, b.Count("idempotency", ""))
}

func TestTheLoserOfARefusedRivalTakesItsPlace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	held, rest := make(chan struct{}), make(chan error, 1)
	go func() {
		rest <- b.DB.Write(b.ctx, func(ctx context.Context, w *tx.Tx) error {
			_, err := idem.Claim(ctx, w, b.key("k", 1), new(string))
			close(held)
			if err != nil {
				return err
			}
			require.Eventually(t, func() bool {
				return b.Count("pg_stat_activity", "datname = current_database() AND wait_event_type = 'Lock'") > 0
			}, patience, tick)
			return errors.New("refused after all")
		})
	}()
	<-held
	made, repeated, err := b.claim(b.ctx, b.key("k", 2), "mine")
	require.NoError(t, err)
	require.False(t, repeated)
	require.Equal(t, "mine", made)
	require.ErrorContains(t, <-rest, "refused after all")
}

func TestAnAnswerStoredLaterIsWhatRepeatsGet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, _, err := b.claim(b.ctx, b.key("k", 1), "")
	require.NoError(t, err)
	require.NoError(t, b.DB.Write(b.ctx, func(ctx context.Context, w *tx.Tx) error {
		return idem.Store(ctx, w, b.key("k", 1), "the answer")
	}))
	made, repeated, err := b.claim(b.ctx, b.key("k", 1), "")
	require.NoError(t, err)
	require.True(t, repeated)
	require.Equal(t, "the answer", made)
}

func TestMalformedKeysAreRefusedWithTheirPath(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, value := range []string{"", " ", "a b", "tab\t", "ü", "\x00", "\x7f", strings.Repeat("k", idem.MaxKey+1)} {
		_, _, err := b.claim(b.ctx, b.key(value, 1), "")
		require.True(t, fault.Is(err, fault.InvalidArgument), "%q: %v", value, err)
		require.Equal(t, "input.idempotencyKey", fault.From(err).Reasons[0].Path)
	}
	_, _, err := b.claim(b.ctx, b.key(strings.Repeat("k", idem.MaxKey), 1), "")
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("idempotency", ""))
}
