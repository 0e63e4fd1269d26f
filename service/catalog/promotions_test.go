package catalog_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

func TestOfTwoPromotionsAtOnceOneWins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	for range 5 {
		b.SQL(`DELETE FROM manifest_artifact`)
		b.SQL(`DELETE FROM manifest`)
		old := b.Manifest(lifecycle.StageActive, w.document("1.0.0"))
		rivals := []lifecycle.Stage{lifecycle.StageActive, lifecycle.StageStaged}
		canary := b.Manifest(lifecycle.StageCanary, w.document("1.1.0"))
		results := make(chan error, len(rivals))
		for _, to := range rivals {
			go func() { _, err := b.promote(canary, to); results <- err }()
		}
		var lost []error
		for range rivals {
			if err := <-results; err != nil {
				lost = append(lost, err)
			}
		}
		require.Len(t, lost, 1)
		code := fault.From(lost[0]).Code
		require.Contains(t, []fault.Code{fault.Conflict, fault.FailedPrecondition}, code, lost[0].Error())
		if b.stage(canary) == lifecycle.StageActive {
			require.Equal(t, lifecycle.StageDeprecated, b.stage(old))
		} else {
			require.Equal(t, lifecycle.StageActive, b.stage(old))
		}
	}
}

func TestAnAppHasOneCanaryAtATimeHoweverManyWantToBe(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	var rivals []*db.Manifest
	for _, version := range []string{"1.1.0", "1.2.0", "1.3.0"} {
		rivals = append(rivals, b.Manifest(lifecycle.StageStaged, w.document(version)))
	}
	results := make(chan error, len(rivals))
	for _, rival := range rivals {
		go func() { _, err := b.promote(rival, lifecycle.StageCanary); results <- err }()
	}
	won := 0
	for range rivals {
		if err := <-results; err != nil {
			platformtest.Refused(t, err, fault.Conflict)
		} else {
			won++
		}
	}
	require.Equal(t, 1, won)
	require.Equal(t, 1, b.Count("manifest", "stage = 'CANARY'"))
	require.Equal(t, 1, b.Count("promotion", ""))
	for _, rival := range rivals {
		if b.stage(rival) == lifecycle.StageStaged {
			_, err := b.promote(rival, lifecycle.StageCanary)
			platformtest.Refused(t, err, fault.Conflict, "input.to")
			require.ErrorContains(t, err, "man_")
		}
	}
}

func TestAPromotionThatWaitedForAnotherIsAConflict(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	canary := b.Manifest(lifecycle.StageCanary, w.document("1.0.0"))
	other, err := b.Admin.Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), `SELECT FROM app FOR UPDATE`)
	require.NoError(t, err)
	result := make(chan error, 1)
	go func() { _, err := b.promote(canary, lifecycle.StageStaged); result <- err }()
	require.Eventually(t, func() bool {
		return b.Count("pg_stat_activity", "datname = current_database() AND wait_event_type = 'Lock'") == 1
	}, 10*time.Second, 5*time.Millisecond)
	_, err = other.Exec(t.Context(), `UPDATE manifest SET stage = 'ACTIVE'`)
	require.NoError(t, err)
	require.NoError(t, other.Commit(t.Context()))
	err = <-result
	platformtest.Refused(t, err, fault.Conflict, "input.manifestId")
	require.ErrorContains(t, err, "CANARY")
	require.ErrorContains(t, err, "ACTIVE")
}

func TestAPromotionToActiveDoesNotPutAsideWhatBecameActiveMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	one := b.Manifest(lifecycle.StageCanary, w.document("1.0.0"))
	two := ids.New(ids.Manifest)
	other, err := b.Admin.Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), `SELECT FROM app FOR UPDATE`)
	require.NoError(t, err)
	result := make(chan error, 1)
	go func() { _, err := b.promote(one, lifecycle.StageActive); result <- err }()
	require.Eventually(t, func() bool {
		return b.Count("pg_stat_activity", "datname = current_database() AND wait_event_type = 'Lock'") == 1
	}, 10*time.Second, 5*time.Millisecond)
	_, err = other.Exec(t.Context(), `INSERT INTO manifest (id, app_id, app_slug, version, display_name, summary, stage,
		digest, document, adapter_name, created_at)
		SELECT $1, app_id, app_slug, '1.1.0', display_name, summary, 'ACTIVE', digest, document, adapter_name, now()
		FROM manifest WHERE id = $2`, two, one.ID)
	require.NoError(t, err)
	require.NoError(t, other.Commit(t.Context()))
	platformtest.Refused(t, <-result, fault.Conflict, "input.manifestId")
	require.Equal(t, 1, b.Count("manifest", "id = $1 AND stage = 'ACTIVE'", two))
	require.Equal(t, lifecycle.StageCanary, b.stage(one))
}
