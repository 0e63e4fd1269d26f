package rollout

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A project that is in at a percentage is in at every higher one; no project is in at 0, and all are at 100. The choice
// never changes: the test pins three.
func TestChosenIsStableAndGrows(t *testing.T) {
	t.Parallel()
	for i := range 500 {
		project := ids.ID(fmt.Sprintf("prj_%026d", i))
		in := false
		for percent := 0; percent <= 100; percent++ {
			now := Chosen(project, "man_a", percent)
			require.False(t, in && !now, "%s left at %d %%", project, percent)
			in = now
		}
		assert.True(t, in)
		assert.False(t, Chosen(project, "man_a", 0))
	}
	assert.Equal(t, 13, first("prj_01", "man_01"))
	assert.Equal(t, 30, first("prj_02", "man_01"))
	assert.Equal(t, 58, first("prj_01", "man_02"))
}

// first is the lowest percentage that takes a project in.
func first(project, manifest ids.ID) int {
	for percent := range 101 {
		if Chosen(project, manifest, percent) {
			return percent
		}
	}
	return -1
}

// Of 20,000 projects each percentage takes in its part, within five standard deviations, and two versions choose
// without regard to each other.
func TestChosenIsEven(t *testing.T) {
	t.Parallel()
	const projects = 20_000
	for _, percent := range []int{1, 5, 20, 50, 90} {
		one, both := 0, 0
		for range projects {
			project := ids.New(ids.Project)
			if Chosen(project, "man_a", percent) {
				one++
				if Chosen(project, "man_b", percent) {
					both++
				}
			}
		}
		share := float64(percent) / 100
		near(t, one, projects, share)
		near(t, both, projects, share*share)
	}
}

func near(t *testing.T, got, of int, share float64) {
	t.Helper()
	mean := float64(of) * share
	assert.Less(t, (float64(got)-mean)*(float64(got)-mean), 25*mean*(1-share)+1, "%d of %d at %.2f", got, of, share)
}

// run simulates seeded launches of two arms, and returns after how many of the canary's it was halted; 0 if it was not.
func run(seed uint64, active, canary, share float64, launches int) int {
	random := rand.New(rand.NewPCG(7, seed))
	test, ended := New(share < 1), 0
	for range launches {
		o := Outcome{Canary: random.Float64() < share}
		chance := active
		if o.Canary {
			chance = canary
			ended++
		}
		o.Failed = random.Float64() < chance
		test.Add(o)
		if test.Verdict() == lifecycle.CanaryWorse {
			return ended
		}
	}
	return 0
}

// The bound: of 1,000 seeded runs of 600 launches in which both versions are the same at most 1 % are halted.
func TestSameVersionsAreNotHalted(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.9} {
		for _, share := range []float64{0.05, 0.2, 0.5, 0.8} {
			t.Run(fmt.Sprintf("rate %v share %v", rate, share), func(t *testing.T) {
				t.Parallel()
				halted := 0
				for seed := range uint64(1_000) {
					if run(seed, rate, rate, share, 600) > 0 {
						halted++
					}
				}
				assert.LessOrEqual(t, halted, 10)
			})
		}
	}
}

// What the package says it finds: in 9 of 10 of 1,000 seeded runs within so many launches of the canary.
func TestWorseVersionsAreHaltedInTime(t *testing.T) {
	t.Parallel()
	for _, want := range []struct {
		active, canary, share float64
		within                int
	}{
		{0.2, 0.6, 0.5, 75}, {0.2, 0.6, 0.2, 45},
		{0.1, 0.3, 0.5, 200}, {0.1, 0.3, 0.2, 120},
		{0.05, 0.15, 0.5, 440}, {0.05, 0.15, 0.2, 270},
		{0.02, 0.9, 0.5, 15}, {0.02, 0.9, 0.2, 15},
	} {
		t.Run(fmt.Sprintf("%v beside %v, share %v", want.canary, want.active, want.share), func(t *testing.T) {
			t.Parallel()
			var after []int
			for seed := range uint64(1_000) {
				if n := run(seed, want.active, want.canary, want.share, 4_000); n > 0 {
					after = append(after, n)
				}
			}
			slices.Sort(after)
			require.GreaterOrEqual(t, len(after), 900)
			assert.LessOrEqual(t, after[899], want.within)
		})
	}
}

// A failure rate that changes over time changes for both arms, and halts no canary; nor does a share that grows.
func TestTimesThatChangeHaltNobody(t *testing.T) {
	t.Parallel()
	halted := 0
	for seed := range uint64(1_000) {
		random := rand.New(rand.NewPCG(11, seed))
		test := New(true)
		for i := range 600 {
			chance, share := 0.02, 0.1
			if i%200 > 150 {
				chance = 0.6
			}
			if i > 300 {
				share = 0.5
			}
			test.Add(Outcome{Canary: random.Float64() < share, Failed: random.Float64() < chance})
		}
		if test.Verdict() == lifecycle.CanaryWorse {
			halted++
		}
	}
	assert.LessOrEqual(t, halted, 10)
}

// Nobody launches the active version any more: a canary that fails every time is halted all the same, one that runs is
// not, and neither is one that fails no more often than the active version did.
func TestACanaryThatFailsIsHaltedThoughNothingEndsBesideIt(t *testing.T) {
	t.Parallel()
	halted := func(before string, launches int, failed func(int) bool) int {
		test := New(true)
		for _, one := range before {
			test.Add(Outcome{Failed: one == 'a'})
		}
		for i := range launches {
			test.Add(Outcome{Canary: true, Failed: failed(i)})
			if test.Verdict() == lifecycle.CanaryWorse {
				return i + 1
			}
		}
		return 0
	}
	always, never := func(int) bool { return true }, func(int) bool { return false }
	good := strings.Repeat("A", 18)
	assert.Equal(t, 12, halted(good, 12, always))
	assert.Zero(t, halted(good, 600, never))
	assert.Zero(t, halted(good, 600, func(i int) bool { return i%5 == 0 }))
	assert.Zero(t, halted(strings.Repeat("a", 18), 600, always), "the active version failed every time")
	assert.Zero(t, halted(strings.Repeat("Aa", 9), 600, func(i int) bool { return i%2 == 0 }))
}

// The active version's launches end for a while, and then no more; a canary that is the same is not halted.
func TestSameVersionsAreNotHaltedWhenOneIsLaunchedNoMore(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 0.05, 0.2, 0.5, 0.9} {
		halted := 0
		for seed := range uint64(1_000) {
			random := rand.New(rand.NewPCG(13, seed))
			test := New(true)
			for i := range 400 {
				test.Add(Outcome{Canary: i >= 40 || random.Float64() < 0.5, Failed: random.Float64() < rate})
			}
			if test.Verdict() == lifecycle.CanaryWorse {
				halted++
			}
		}
		assert.LessOrEqual(t, halted, 10, "rate %v", rate)
	}
}

// With nothing beside it a canary may fail one launch in five, and not nine in ten.
func TestAloneIsHeldAgainstTolerance(t *testing.T) {
	t.Parallel()
	halted := 0
	for seed := range uint64(1_000) {
		if run(seed, 0, Tolerance, 1, 600) > 0 {
			halted++
		}
	}
	assert.LessOrEqual(t, halted, 10)

	var after []int
	for seed := range uint64(1_000) {
		after = append(after, run(seed, 0, 0.9, 1, 600))
	}
	slices.Sort(after)
	assert.Equal(t, lonely, after[0], "not before it has ended %d launches, and at all", lonely)
	assert.LessOrEqual(t, after[900], 15)
}

// With nothing beside it a canary is judged after 30 launches, because those of an active version need time to end.
func TestAloneIsJudgedAfterThirtyLaunches(t *testing.T) {
	t.Parallel()
	test := New(true)
	for range unmatched {
		assert.Equal(t, lifecycle.CanaryTooEarly, test.Verdict(), "the active version's launches may still end")
		test.Add(Outcome{Canary: true, Failed: true})
	}
	assert.Equal(t, lifecycle.CanaryWorse, test.Verdict())

	test = New(false)
	for range enough {
		assert.Equal(t, lifecycle.CanaryTooEarly, test.Verdict())
		test.Add(Outcome{Canary: true})
	}
	assert.Equal(t, lifecycle.CanaryNoWorse, test.Verdict())
}

// The verdicts' rules: too early before 30 launches of each arm, no worse after them, and worse for good.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	test := New(true)
	assert.InDelta(t, 1, test.Evidence(), 1e-9)
	for range enough - 1 {
		test.Add(Outcome{Canary: true})
		test.Add(Outcome{})
		assert.Equal(t, lifecycle.CanaryTooEarly, test.Verdict())
	}
	test.Add(Outcome{Canary: true})
	assert.Equal(t, lifecycle.CanaryTooEarly, test.Verdict())
	test.Add(Outcome{})
	assert.Equal(t, lifecycle.CanaryNoWorse, test.Verdict())

	for n := 1; test.Verdict() != lifecycle.CanaryWorse; n++ {
		require.LessOrEqual(t, n, enough, "as many failures as successes before them are enough")
		test.Add(Outcome{Canary: true, Failed: true})
		test.Add(Outcome{})
	}
	assert.GreaterOrEqual(t, test.Evidence(), Threshold)
	for range 5_000 {
		test.Add(Outcome{Canary: true})
		test.Add(Outcome{Failed: true})
	}
	assert.Less(t, test.Evidence(), 1.0)
	assert.Equal(t, lifecycle.CanaryWorse, test.Verdict())
	for range 5_000 {
		test.Add(Outcome{Canary: true, Failed: true})
		test.Add(Outcome{})
	}
	assert.LessOrEqual(t, test.Evidence(), mostShown)
}

// A few runs as they are, launch by launch: C and A are launches that came to run, c and a failed ones.
func TestRunsGolden(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, runs := range []string{
		"AAcAAcAAcAAcAAcAAc",
		"ACACACACACACACACACAC",
		"aCAcaCAcaCAcaCAc",
		"AAAAcAAAACAAAAcAAAAcAAAAcAAAAcAAAAc",
		"cccccccc",
		"CCCcCCCC",
		// Six launches of the canary wait for others beside them, and further ones stand alone; the more and
		// the better the active version's launches were, the less they may fail.
		strings.Repeat("A", 18) + strings.Repeat("c", 16),
		"AaAaAA" + strings.Repeat("c", 24),
		// With one launch beside them twelve wait. The next of the active version's closes the block.
		"A" + strings.Repeat("c", 14) + "AC",
		// Launches from before the first of the active version's that ended are compared with it once it is there.
		"ccccccccAACAAC",
	} {
		fmt.Fprintf(&out, "%s\n", runs)
		test := New(strings.ContainsAny(runs, "Aa"))
		for i, one := range runs {
			test.Add(Outcome{Canary: one == 'C' || one == 'c', Failed: one == 'c' || one == 'a'})
			fmt.Fprintf(&out, "  %2d %c %10.3f %s\n", i+1, one, test.Evidence(), test.Verdict())
		}
	}
	name := filepath.Join("testdata", "runs.golden")
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(out.String()), 0o600))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, string(want), out.String())
}
