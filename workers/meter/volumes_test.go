package meter_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
)

// volume creates a volume, of a new class, that no node has proved yet.
func (b *bench) volume(kind string, size int) ids.ID {
	b.Helper()
	class, id := ids.New(ids.StorageClass), ids.New(ids.Volume)
	b.SQL(`INSERT INTO storage_class (id, name, kind, title, created_at, updated_at)
		VALUES ($1, lower($2) || '-' || (SELECT count(*) FROM storage_class), $2, $2, now(), now())`, class, kind)
	b.SQL(`INSERT INTO volume (id, tenant_id, project_id, storage_class_id, name, size_gib, status, created_by,
		created_at,
		updated_at) VALUES ($1, $2, $3, $4, 'v' || lower(right($1, 20)), $5, 'READY', '', now(), now())`, id,
		b.project.TenantID, b.project.ID, class, size)
	return id
}

// move changes a volume as the verbs and the agents' reports do, so long ago.
func (b *bench) move(volume ids.ID, ago time.Duration, set string) {
	b.Helper()
	b.SQL(`UPDATE volume SET `+set+` WHERE id = $1`, volume)
	b.SQL(`ALTER TABLE volume_fact DISABLE TRIGGER append_only`)
	b.SQL(`UPDATE volume_fact SET at = now() - $2 * interval '1 second' WHERE volume_id = $1
		AND seq = (SELECT max(seq) FROM volume_fact WHERE volume_id = $1)`, volume, ago.Seconds())
	b.SQL(`ALTER TABLE volume_fact ENABLE TRIGGER append_only`)
}

// owed is size by time of a volume by its facts, up to where it is recorded.
func (b *bench) owed(volume ids.ID) (gibSeconds int64) {
	b.Helper()
	require.NoError(b.TB, b.Admin.QueryRow(context.Background(), `SELECT
		coalesce(sum(size_gib * extract(epoch FROM least(ends,
			(SELECT recorded_to FROM usage_source WHERE source = $1)) - starts)), 0)::bigint FROM (SELECT size_gib,
			date_trunc('second', at) AS starts, coalesce(lead(date_trunc('second', at)) OVER (ORDER BY seq), 'infinity') AS ends
		FROM volume_fact WHERE volume_id = $1) f WHERE starts < (SELECT recorded_to FROM usage_source
		WHERE source = $1)`,
		volume).Scan(&gibSeconds))
	return gibSeconds
}

// metered is what is recorded of a volume, after it was seen that no second is in two records and none is missing.
func (b *bench) metered(volume ids.ID) (gibSeconds int64) {
	b.Helper()
	require.Zero(b.TB, b.Count("(SELECT from_at, lag(to_at) OVER (ORDER BY from_at) AS until FROM usage_record WHERE "+
		"source = '"+
		string(volume)+"') r", "until IS NOT NULL AND from_at <> until"))
	require.NoError(b.TB, b.Admin.QueryRow(context.Background(), `SELECT coalesce(sum(quantity), 0)::bigint
		FROM usage_record
		WHERE source = $1 AND basis = 'STORAGE' AND meter = 'volume_gib_seconds'`, volume).Scan(&gibSeconds))
	return gibSeconds
}

func TestAVolumeThatIsNotProvedHasNoSource(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	volume := b.volume("SHARED", 5)
	b.SQL(`UPDATE volume SET size_gib = 6 WHERE id = $1`, volume)
	b.SQL(`UPDATE volume SET status = 'DELETED', deleted_at = now() WHERE id = $1`, volume)
	require.NoError(t, b.meter().Storage(t.Context()))
	require.Zero(t, b.Count("usage_source", "source = $1", volume))
	require.Zero(t, b.Count("volume_fact", ""))
}

// Any number of processes, at any time, while the volume is resized and deleted: size by time to the GiB-second.
func TestAVolumeIsRecordedOnceByAnyNumberOfProcesses(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		b, random := newBench(t), rand.New(rand.NewPCG(seed, 3))
		var volumes []ids.ID
		for range 4 {
			volumes = append(volumes, b.volume("SHARED", 1+random.IntN(9)))
		}
		all := func() {
			var processes sync.WaitGroup
			for range 4 {
				processes.Go(func() {
					for range 2 {
						if err := b.meter().Storage(context.WithoutCancel(t.Context())); err != nil {
							t.Error(err)
						}
						b.allDue()
					}
				})
			}
			processes.Wait()
		}
		for _, one := range volumes {
			b.move(one, time.Duration(7_000+random.IntN(3_000))*time.Second, "present_at = now()")
		}
		for _, one := range volumes[1:] {
			b.move(one, time.Duration(4_000+random.IntN(2_000))*time.Second, "size_gib = size_gib + 3")
		}
		all()
		b.move(volumes[2], 0, "size_gib = size_gib * 2")
		b.move(volumes[3], 0, "status = 'DELETING'")
		all()
		b.move(volumes[3], 0, "status = 'DELETED', deleted_at = now()")
		all()
		for i, one := range volumes {
			want := b.owed(one)
			require.Positive(t, want)
			require.Equal(t, want, b.metered(one), "seed %d, volume %d", seed, i)
			require.Equal(t, 1, b.Count("usage_source", "source = $1 AND failures = 0 AND (ended_at IS NOT NULL) = $2",
				one, i == 3))
		}
		require.EqualValues(t, b.Count("usage_record", "basis = 'STORAGE'"), b.stats.Storage.Load(), "each once")
	}
}

func TestALocalVolumeIsMeteredUntilItsNodeIsTakenOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	local, shared := b.volume("LOCAL", 3), b.volume("SHARED", 3)
	for _, one := range []ids.ID{local, shared} {
		b.move(one, 2*time.Hour, "present_at = now()")
	}
	b.SQL(`UPDATE volume SET node_id = $2 WHERE id = $1`, local, b.node.ID)
	b.SQL(`UPDATE compute_node SET status = 'RETIRED', retired_at = now() WHERE id = $1`, b.node.ID)
	require.NoError(t, b.meter().Storage(t.Context()))
	require.Equal(t, 1, b.Count("usage_source", "source = $1 AND ended_at IS NOT NULL", local))
	require.InDelta(t, 3*2*3_600, b.metered(local), 6)
	require.Equal(t, 1, b.Count("volume", "id = $1 AND status = 'READY' AND lost_at IS NOT NULL AND message LIKE "+
		"'%taken out%'", local))
	require.Equal(t, 1, b.Count("usage_source", "source = $1 AND ended_at IS NULL", shared))
	before := b.metered(local)
	b.SQL(`UPDATE volume SET status = 'DELETED', deleted_at = now() WHERE id = $1`, local)
	require.NoError(t, b.meter().Storage(t.Context()))
	require.Equal(t, before, b.metered(local))
}
