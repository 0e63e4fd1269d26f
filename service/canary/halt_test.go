package canary_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbpromotion "github.com/gpuaas/app-platform/ent/generated/db/promotion"
	"github.com/gpuaas/app-platform/service/canary"
)

// bad is a canary of which six of six launches failed, beside twelve that came to run.
const bad = "AAcAAcAAcAAcAAcAAc"

func (b *bundle) halt() *canary.Halted {
	b.t.Helper()
	halted, err := b.service.Halt(b.t.Context(), b.canary.ID)
	require.NoError(b.t, err)
	return halted
}

func (b *bundle) history() []*db.Promotion {
	b.t.Helper()
	found, err := b.Ent.Promotion.Query().Where(dbpromotion.ObjectID(b.canary.ID)).All(b.t.Context())
	require.NoError(b.t, err)
	return found
}

func TestAClearlyWorseCanaryIsHaltedOnceAndItIsWrittenDown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.launches(bad[:len(bad)-3])
	require.Nil(t, b.halt(), "not yet")
	require.Nil(t, b.stored().CanaryHaltedAt)
	b.launches(bad[len(bad)-3:])

	halted := b.halt()
	require.NotNil(t, halted)
	reason := "6 of 6 launches failed, and 0 of 12 of version 1.0.0: the evidence that it is worse reached 431 of 100"
	assert.Equal(t, canary.Halted{AppSlug: b.app.Slug, Version: "1.1.0", Reason: reason}, *halted)
	row := b.stored()
	assert.Equal(t, lifecycle.StageCanary, row.Stage)
	assert.NotNil(t, row.CanaryHaltedAt)
	assert.Equal(t, reason, row.CanaryHaltReason)
	assert.Equal(t, 20, row.CanaryPercent)

	history := b.history()
	require.Len(t, history, 1)
	step := history[0]
	assert.Equal(t, []lifecycle.Stage{lifecycle.StageCanary, lifecycle.StageCanary},
		[]lifecycle.Stage{step.FromStage, step.ToStage})
	assert.Equal(t, 20, *step.CanaryPercent, "the share that it had")
	assert.Equal(t, []string{"platform", reason}, []string{step.ActorName, step.Reason})
	entries := b.Audit()
	require.Len(t, entries, 1)
	entry := entries[0]
	assert.Equal(t, []string{"haltCanary", authz.ManifestPromote.String(), "platform", reason, string(b.canary.ID)},
		[]string{entry.Action, entry.PermissionKey, entry.ActorName, entry.Reason, entry.ObjectID})
	assert.Equal(t, b.publisher.TenantID, *entry.TenantID, "the publisher reads it in its audit")

	require.Nil(t, b.halt(), "a second time changes nothing")
	assert.Equal(t, row.CanaryHaltedAt, b.stored().CanaryHaltedAt)
	assert.Len(t, b.history(), 1)
	assert.Len(t, b.Audit(), 1)

	report := b.report()
	assert.Equal(t, lifecycle.CanaryWorse, report.Verdict)
	assert.Equal(t, reason, report.HaltReason)
	assert.GreaterOrEqual(t, report.Points[len(report.Points)-1].Evidence, report.Threshold)
}

func TestWhatIsNoWorseOrNoCanaryIsNotHalted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.launches(strings.Repeat("aCAc", 16)) // both fail half of the time
	require.Nil(t, b.halt())
	assert.Equal(t, lifecycle.CanaryNoWorse, b.report().Verdict)
	b.launches(strings.Repeat("Ac", 30))
	b.SQL(`UPDATE manifest SET stage = 'STAGED' WHERE id = $1`, b.canary.ID)
	require.Nil(t, b.halt())
	assert.Empty(t, b.history())
	assert.Empty(t, b.Audit())
}

func TestWithoutAnActiveVersionACanaryIsHeldAgainstATolerance(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`UPDATE manifest SET stage = 'DEPRECATED' WHERE id = $1`, b.active.ID)
	b.launches("cccccCcc")
	halted := b.halt()
	require.NotNil(t, halted)
	assert.Contains(t, halted.Reason,
		"7 of 8 launches failed, and there is no launch of an active version to compare with; 20 percent may fail")
}

// Of several that look at once one halts; the history and the audit have it once.
func TestOfHaltsAtOnceOneHalts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.launches(bad)
	var wait sync.WaitGroup
	halts := make(chan *canary.Halted, 8)
	for range cap(halts) {
		wait.Go(func() {
			halted, err := b.service.Halt(context.WithoutCancel(t.Context()), b.canary.ID)
			assert.NoError(t, err)
			if halted != nil {
				halts <- halted
			}
		})
	}
	wait.Wait()
	assert.Len(t, halts, 1)
	assert.Len(t, b.history(), 1)
	assert.Len(t, b.Audit(), 1)
}

// A halt waits for a promotion that has locked the app, and does not halt a manifest that is not a canary any more.
func TestAPromotionThatComesFirstIsNotUndone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.launches(bad)
	ctx := t.Context()
	promotion, err := b.Admin.Begin(ctx)
	require.NoError(t, err)
	_, err = promotion.Exec(ctx, `SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE`, b.app.ID)
	require.NoError(t, err)
	done := make(chan *canary.Halted, 1)
	go func() {
		halted, err := b.service.Halt(context.WithoutCancel(ctx), b.canary.ID)
		assert.NoError(t, err)
		done <- halted
	}()
	require.Eventually(t, func() bool {
		return b.Count("pg_stat_activity", "datname = current_database() AND wait_event_type = 'Lock'") == 1
	}, 20*time.Second, 10*time.Millisecond)
	_, err = promotion.Exec(ctx, `UPDATE manifest SET stage = 'STAGED' WHERE id = $1`, b.canary.ID)
	require.NoError(t, err)
	require.NoError(t, promotion.Commit(ctx))
	assert.Nil(t, <-done)
	assert.Nil(t, b.stored().CanaryHaltedAt)
	assert.Empty(t, b.history())
}
