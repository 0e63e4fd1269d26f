package rollout

import (
	"math"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// The test's constants.
const (
	// Threshold is the evidence that halts a canary. One that is not worse reaches it with a chance of at most
	// 1 in Threshold.
	Threshold = 100.0
	// Tolerance is the failure rate that a canary may have with nothing beside it.
	Tolerance = 0.2

	perArm    = 2    // launches of each arm that close a block
	lonely    = 8    // launches before a canary of an app without an active version can be halted
	unmatched = 30   // launches before one can be halted while none of the active version's has ended
	beyond    = 6    // launches of the canary that wait for one of the active version; further ones stand alone
	enough    = 30   // launches of each arm before "no worse" is said
	doubt     = 200  // 1 in so many: the chance that the active version's launches mislead about what is borne
	highest   = 0.99 // the highest chance to fail that is looked for
	halvings  = 30   // of the range in which it is looked for
	mostShown = 1e12 // what evidence is cut off at
)

// Outcome is how a launch went.
type Outcome struct {
	// Canary says that it was the canary's, else it was the active version's.
	Canary bool
	// Failed says that it failed, else it came to run.
	Failed bool
}

// arm counts launches and the failed ones among them.
type arm struct{ launches, failed int }

func (a *arm) add(failed bool) {
	a.launches++
	if failed {
		a.failed++
	}
}

// bet is a pair of chances to fail that the test puts a part of its stake on, and the logarithm of what that
// part has grown to. Bets on launches that count alone have no fixed chances.
type bet struct{ active, canary, grown float64 }

// bets share a stake of 1 evenly.
type bets struct {
	of    []bet
	stake float64 // what it has grown to
}

func newBets(of ...bet) bets {
	b := bets{of: of}
	b.settle()
	return b
}

// settle adds up what the stake has grown to; call it after each change of a bet.
func (b *bets) settle() {
	b.stake = 0
	for _, one := range b.of {
		b.stake += math.Exp(min(one.grown, mostGrown)) / float64(len(b.of))
	}
}

// mostGrown is the logarithm of mostShown.
var mostGrown = math.Log(mostShown)

// Test is the sequential test of one canary. The zero value is not usable: use New.
type Test struct {
	canary, active arm // all launches
	blockCanary    arm // those of the open block
	blockActive    arm
	beside         bets // against the active version
	tolerated      bets // against Tolerance, read while none of the active version's launches has ended
	alone          bets // of launches that stand alone, against what is borne
	least          int  // launches of the canary before it can be halted while the active version has none
	worse          bool
}

// New begins a test, of a canary beside an active version or of one that has none beside it.
func New(active bool) *Test {
	t := &Test{least: lonely}
	if active {
		t.least = unmatched
	}
	var beside, tolerated []bet
	for _, base := range []float64{0.01, 0.03, 0.1, 0.3} {
		for _, odds := range []float64{3.5, 12} {
			beside = append(beside, bet{active: base, canary: odds * base / (1 - base + odds*base)})
		}
	}
	for _, rate := range []float64{0.4, 0.6, 0.9} {
		tolerated = append(tolerated, bet{active: Tolerance, canary: rate})
	}
	t.beside, t.tolerated, t.alone = newBets(beside...), newBets(tolerated...), newBets(make([]bet, len(shares))...)
	return t
}

// shares are the places, between what is borne and 1, of the bets on launches that count alone. Half of the stake bets
// nothing, so that many good ones take no more than half of the evidence away.
var shares = []float64{0, 0, 0, 0.25, 0.5, 0.875}

// Add takes in the next launch that ended.
func (t *Test) Add(o Outcome) {
	all, block := &t.active, &t.blockActive
	stands := o.Canary && t.active.launches > 0 &&
		t.blockCanary.launches >= beyond*(1+t.blockActive.launches) // whatever its outcome
	if o.Canary {
		all, block = &t.canary, &t.blockCanary
		t.tolerate(o.Failed)
	}
	all.add(o.Failed)
	if stands {
		t.standAlone(o.Failed)
	} else {
		block.add(o.Failed)
	}
	if t.blockActive.launches >= perArm && t.blockCanary.launches >= perArm {
		t.close()
	}
	if t.Evidence() >= Threshold && (t.active.launches > 0 || t.canary.launches >= t.least) {
		t.worse = true
	}
}

// tolerate takes in a launch of the canary as one that nothing stands beside.
func (t *Test) tolerate(failed bool) {
	for i := range t.tolerated.of {
		one := &t.tolerated.of[i]
		one.grown += gain(arm{1, failures(failed)}, one.canary, one.active)
	}
	t.tolerated.settle()
}

// standAlone takes in a launch of the canary to which no launch of the active version can be compared: while that
// version is not launched, the canary is compared with what is borne.
func (t *Test) standAlone(failed bool) {
	base := t.borne()
	for i, share := range shares {
		t.alone.of[i].grown += gain(arm{1, failures(failed)}, base+share*(1-base), base)
	}
	t.alone.settle()
}

// borne returns the chance to fail that a launch which counts alone may have: Tolerance, or the highest that the active
// version's launches so far allow for, if that is more. It is below the active version's own with a chance of at most 1
// in doubt, for all launches together (a mixture over all chances, and Ville's inequality again).
func (t *Test) borne() float64 {
	failed, ran := float64(t.active.failed), float64(t.active.launches-t.active.failed)
	a, _ := math.Lgamma(failed + 1)
	b, _ := math.Lgamma(ran + 1)
	both, _ := math.Lgamma(failed + ran + 2)
	least := a + b - both - math.Log(doubt)
	low, high := max(Tolerance, failed/(failed+ran)), highest
	for range halvings {
		chance := (low + high) / 2
		if failed*math.Log(chance)+ran*math.Log(1-chance) > least {
			low = chance
		} else {
			high = chance
		}
	}
	return low
}

// close takes the open block into the bets.
func (t *Test) close() {
	a, c := float64(t.blockActive.launches), float64(t.blockCanary.launches)
	for i := range t.beside.of {
		one := &t.beside.of[i]
		pooled := (a*one.active + c*one.canary) / (a + c)
		one.grown += gain(t.blockActive, one.active, pooled) + gain(t.blockCanary, one.canary, pooled)
	}
	t.beside.settle()
	t.blockActive, t.blockCanary = arm{}, arm{}
}

// gain is the logarithm of how much likelier the launches are at one chance to fail than at another.
func gain(of arm, chance, than float64) float64 {
	return float64(of.failed)*math.Log(chance/than) + float64(of.launches-of.failed)*math.Log((1-chance)/(1-than))
}

func failures(failed bool) int {
	if failed {
		return 1
	}
	return 0
}

// Evidence is what the stake of 1 has grown to, cut off at 10^12: how much the launches so far speak for a worse
// canary. It may fall again.
func (t *Test) Evidence() float64 {
	if t.active.launches == 0 {
		return min(t.tolerated.stake, mostShown)
	}
	return min(t.beside.stake*t.alone.stake, mostShown)
}

// Verdict is WORSE from the launch on at which the evidence first reached Threshold. It is NO_WORSE once 30
// launches of each arm have ended, of the canary alone when it has nothing beside it, while the evidence is below
// what the test began with, 1; and TOO_EARLY otherwise.
func (t *Test) Verdict() lifecycle.CanaryVerdict {
	switch {
	case t.worse:
		return lifecycle.CanaryWorse
	case t.canary.launches >= enough && (t.active.launches >= enough || t.active.launches == 0) && t.Evidence() < 1:
		return lifecycle.CanaryNoWorse
	}
	return lifecycle.CanaryTooEarly
}
