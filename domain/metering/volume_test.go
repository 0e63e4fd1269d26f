package metering_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/metering"
)

// kept is a fact of a volume.
func kept(at float64, state metering.VolumeState, size int) metering.VolumeFact {
	return metering.VolumeFact{At: after(at), State: state, SizeGiB: size, Class: "parallel"}
}

func stored(facts ...metering.VolumeFact) *metering.Volume {
	return &metering.Volume{ID: "vol_1", TenantID: "ten_1", ProjectID: "prj_1", Facts: facts}
}

func TestAVolumeIsMeteredFromItsProofThroughEveryResizeToItsEnd(t *testing.T) {
	t.Parallel()
	v := stored(kept(10.4, metering.VolumePresent, 2), kept(130.9, metering.VolumePresent, 5),
		kept(700.2, metering.VolumeDeleting, 5), kept(710.9, metering.VolumeDeleted, 0))
	got := v.Meter(time.Time{}, after(800), 100)
	require.Equal(t, []string{"volume_gib_seconds 10-130 240 TENANT", "volume_gib_seconds 130-600 2350 TENANT",
		"volume_gib_seconds 600-700 500 TENANT", "volume_gib_seconds 700-710 50 TENANT"}, lines(got.Records))
	require.True(t, got.Ended)
	require.Equal(t, after(710), got.To)
	require.Equal(t, metering.Record{Source: "vol_1", Meter: "volume_gib_seconds", UsageID: "2026-11-23T12:00:10Z",
		Basis: metering.Storage, TenantID: "ten_1", ProjectID: "prj_1", SKU: "parallel", Session: "vol_1",
		Unit: "GiB-second", Quantity: "240", From: after(10), To: after(130), BorneBy: metering.Tenant}, got.Records[0])
}

func TestAVolumeThatNoNodeHasProvedIsNotMetered(t *testing.T) {
	t.Parallel()
	require.Equal(t, metering.Metered{}, stored().Meter(time.Time{}, after(5_000), 100))
}

func TestTheSliceOfThePresentIsRecordedOnceItHasPassed(t *testing.T) {
	t.Parallel()
	v := stored(kept(10, metering.VolumePresent, 2))
	require.Equal(t, metering.Metered{To: after(10)}, v.Meter(time.Time{}, after(599.9), 100))
	got := v.Meter(time.Time{}, after(1_199), 100)
	require.Equal(t, []string{"volume_gib_seconds 10-600 1180 TENANT"}, lines(got.Records))
	require.Equal(t, after(600), got.To)
	require.False(t, got.Ended)
}

// What changes twice within a second counts as it was last, and what came and went within one is nothing.
func TestFactsOfOneSecondAreTheLastOfThem(t *testing.T) {
	t.Parallel()
	v := stored(kept(10.1, metering.VolumePresent, 2), kept(10.2, metering.VolumePresent, 3),
		kept(10.9, metering.VolumePresent, 4))
	require.Equal(t, []string{"volume_gib_seconds 10-600 2360 TENANT"},
		lines(v.Meter(time.Time{}, after(600), 9).Records))
	gone := stored(kept(10.1, metering.VolumePresent, 2), kept(10.2, metering.VolumeLost, 0)).
		Meter(time.Time{}, after(11), 9)
	require.Empty(t, gone.Records)
	require.True(t, gone.Ended)
}

// A tenant that requested a deletion does not pay for a node that is away longer than an agent can answer for.
func TestADeletionThatWaitsLongIsThePlatforms(t *testing.T) {
	t.Parallel()
	v := stored(kept(0, metering.VolumePresent, 1), kept(60, metering.VolumeDeleting, 1),
		kept(4_000, metering.VolumeDeleted, 0))
	got := v.Meter(time.Time{}, after(4_001), 100)
	sums := map[string]int{}
	for _, r := range got.Records {
		quantity, err := strconv.Atoi(r.Quantity)
		require.NoError(t, err)
		sums[string(r.BorneBy)+r.BorneReason+r.BorneOwner] += quantity
	}
	require.Equal(t, map[string]int{"TENANT": 3_660, "PLATFORMDELETION_WAITSnode": 340}, sums)
}

// However the work is cut, by whom and when: the same records, and their sum is size by time to the GiB-second.
func TestRecordsOfAVolumeAreTheSameHoweverTheyAreMade(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 5))
		v, want, end := pastOf(random)
		whole := v.Meter(time.Time{}, after(100_000), 10_000)
		sum := 0
		for i, r := range whole.Records {
			quantity, err := strconv.Atoi(r.Quantity)
			require.NoError(t, err)
			sum += quantity
			require.True(t, i == 0 || whole.Records[i-1].To.Equal(r.From), "each second is in one record")
			require.LessOrEqual(t, r.To.Sub(r.From), metering.VolumeSlice)
		}
		require.Equal(t, want, sum, "seed %d", seed)
		require.Equal(t, end, whole.Ended)

		made, done := map[string]metering.Record{}, time.Time{}
		known := &metering.Volume{ID: v.ID, TenantID: v.TenantID, ProjectID: v.ProjectID}
		for at := 0.0; at < 100_000; at += float64(random.IntN(1_500)) {
			for len(known.Facts) < len(v.Facts) && !v.Facts[len(known.Facts)].At.After(after(at)) {
				known.Facts = append(known.Facts, v.Facts[len(known.Facts)])
			}
			from := done
			if random.IntN(4) == 0 {
				from = time.Time{} // another process, which begins at the beginning
			}
			got := known.Meter(from, after(at), 1+random.IntN(200))
			for _, r := range got.Records {
				before, twice := made[r.UsageID]
				require.True(t, !twice || before == r, "seed %d", seed)
				made[r.UsageID] = r
			}
			if got.To.After(done) {
				done = got.To
			}
		}
		for _, r := range known.Meter(done, after(100_000), 10_000).Records {
			made[r.UsageID] = r
		}
		require.Len(t, made, len(whole.Records), "seed %d", seed)
		for _, r := range whole.Records {
			require.Equal(t, r, made[r.UsageID], "seed %d", seed)
		}
	}
}

// pastOf is a volume that is resized now and then, with its size by its time up to 100,000 s, reckoned apart.
func pastOf(random *rand.Rand) (v *metering.Volume, want int, ended bool) {
	v = stored()
	at, size := float64(random.IntN(5_000))+random.Float64(), 1+random.IntN(50)
	last := 0
	put := func(state metering.VolumeState, gib int) {
		if n := len(v.Facts); n > 0 {
			want += v.Facts[n-1].SizeGiB * (int(at) - last)
		}
		v.Facts, last = append(v.Facts, kept(at, state, gib)), int(at)
	}
	put(metering.VolumePresent, size)
	for range random.IntN(6) {
		at += random.Float64() * 9_000
		size += random.IntN(20)
		put(metering.VolumePresent, size)
	}
	if ended = random.IntN(2) == 0; !ended {
		want += size * (99_600 - last) // the last slice that has passed
		return v, want, false
	}
	at += random.Float64() * 9_000
	put(metering.VolumeDeleting, size)
	at += random.Float64() * 9_000
	put([]metering.VolumeState{metering.VolumeDeleted, metering.VolumeLost}[random.IntN(2)], 0)
	return v, want, true
}

// A name keeps a volume's records apart from each other's, too.
func TestRecordsOfVolumesDifferByVolume(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for n := range 3 {
		v := stored(kept(0, metering.VolumePresent, 1))
		v.ID = fmt.Sprint("vol_", n)
		seen[string(v.Meter(time.Time{}, after(600), 1).Records[0].Digest())] = true
	}
	require.Len(t, seen, 3)
}
