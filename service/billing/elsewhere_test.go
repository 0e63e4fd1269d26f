package billing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/pgtest"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/billing"
)

// Transaction numbers mean nothing on another server. The input of a run is known there all the same, and runs go on.
func TestRunsGiveTheSameBytesAfterADumpIsRestoredOnAnotherServer(t *testing.T) {
	t.Parallel()
	here, there := pgtest.NewCluster(t), pgtest.NewCluster(t)
	here.Migrated("app")
	here.Do("app", `DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`)
	b := over(t, platformtest.Over(t, here.DSN("app")))
	b.SQL(`INSERT INTO usage_source (source, basis, tenant_id, project_id)
		VALUES ('alc_1', 'CAPACITY', $1, $2)`, b.tenant.ID, b.project.ID)
	b.price("capacity", "h100", hourly("2"))
	for i := range 3 {
		b.use("alc_1", "mem_1", "", time.Duration(i*1000), 1000)
		require.NotNil(t, b.step(b.past))
	}
	b.use("alc_1", "mem_1", "", 5000, 500) // not yet in any run
	digests := b.text(`SELECT string_agg(output_digest, ' ' ORDER BY seq) FROM billing_run`)
	here.Dump("app", there)

	moved := *b
	moved.Kit = platformtest.Over(t, there.DSN("app"))
	moved.service = &billing.Service{DB: moved.DB}
	verify := func(want int) {
		t.Helper()
		require.Equal(t, want, moved.Count("billing_run", ""))
		for number := range want {
			id := moved.text(`SELECT id FROM billing_run WHERE seq = $1`, number+1)
			verified, err := moved.service.Verify(moved.admin, ids.ID(id))
			require.NoError(t, err)
			require.True(t, verified.Same, "run %d: %s: %s, %s", number+1, verified.Differs, verified.Recorded,
				verified.Recomputed)
		}
	}
	verify(3)
	require.NotNil(t, moved.step(b.past), "what was not booked there is booked here")
	require.Nil(t, moved.step(b.past), "and nothing again")
	moved.balanced()
	require.Equal(t, "1.94", moved.account("ACCRUED"), "3,500 s")
	moved.use("alc_1", "mem_1", "", 6000, 100)
	require.NotNil(t, moved.step(b.past))
	there.Do("app", `DO $$ BEGIN FOR i IN 1..6000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`)
	verify(5) // also as the numbers of this server pass those of the other
	require.Equal(t, digests, moved.text(`SELECT string_agg(output_digest, ' ' ORDER BY seq) FROM billing_run
		WHERE seq <= 3`))
}
