package rollout

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

func TestNoWorseIsSaidOnlyBelowTheEvidenceThatItBeganWith(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 5)) //#nosec G404 -- launches of a test
	above := 0
	for range 200 {
		test := New(true)
		for n := 1; n <= 80 && test.Verdict() != lifecycle.CanaryWorse; n++ {
			test.Add(Outcome{Canary: true, Failed: random.IntN(10) < 3})
			test.Add(Outcome{Failed: random.IntN(10) < 3})
			if n < enough || test.Verdict() == lifecycle.CanaryWorse {
				continue
			}
			want := lifecycle.CanaryTooEarly
			if test.Evidence() < 1 {
				want = lifecycle.CanaryNoWorse
			} else if test.Evidence() < 2 {
				above++
			}
			require.Equal(t, want, test.Verdict(), "launch %d, evidence %f", n, test.Evidence())
		}
	}
	require.NotZero(t, above, "no evidence came to lie between 1 and 2")
}
