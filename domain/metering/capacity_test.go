package metering_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/metering"
)

// noon is when the histories of the tests begin.
var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// after is so many seconds after noon.
func after(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// state is a fact of an allocation's state.
func state(at float64, status, instance string) metering.Fact {
	return metering.Fact{At: after(at), Kind: metering.StateFact, Status: status, NodeID: "nod_1", InstanceID: instance,
		SKU: "h100", Region: "eu"}
}

// lines are records in short.
func lines(records []metering.Record) []string {
	out := make([]string, len(records))
	for i, r := range records {
		out[i] = fmt.Sprintf("%s %g-%g %s %s%s", r.Meter, r.From.Sub(noon).Seconds(), r.To.Sub(noon).Seconds(),
			r.Quantity, r.BorneBy, r.BorneReason)
	}
	return out
}

// slice is a GPU slice with the facts.
func slice(proved float64, facts ...metering.Fact) *metering.Allocation {
	return &metering.Allocation{ID: "alc_1", GPUs: 2, Facts: facts, Proof: metering.Proof{At: after(proved)}}
}

func TestCapacityRunsFromTheFirstProofOfReadinessToTheRelease(t *testing.T) {
	t.Parallel()
	a := slice(200.5, state(2, "REQUESTED", ""), state(10.4, "READY", ""), state(130.9, "RELEASING", ""),
		state(150.2, "RELEASED", ""))
	got := a.Meter(time.Time{}, after(201), 100)
	require.Equal(t, []string{"gpu_seconds 10-60 100 TENANT", "gpu_seconds 60-120 120 TENANT",
		"gpu_seconds 120-130 20 TENANT",
		"gpu_seconds 130-150 40 TENANT"}, lines(got.Records))
	require.True(t, got.Ended)
	require.Equal(t, after(150), got.To)
	require.Equal(t, "2026-11-23T12:00:10Z", got.Records[0].UsageID, "the id is the fact's")
	a.Proof.Gaps = []metering.Gap{{From: after(-3600), To: after(40.7), Rebooted: true}}
	require.Equal(t, after(40), a.Meter(time.Time{}, after(201), 100).Records[0].From,
		"the node's agent had not proved anything before")
	a.GPUs = 1
	require.Equal(t, "gpu_seconds 40-60 20 TENANT", lines(a.Meter(time.Time{}, after(201), 100).Records)[0])
	a.GPUs = 0
	require.Equal(t, "node_seconds 40-60 20 TENANT", lines(a.Meter(time.Time{}, after(201), 100).Records)[0])
}

func TestNothingIsRecordedBeforeItIsProved(t *testing.T) {
	t.Parallel()
	a := slice(95, state(10, "READY", ""))
	require.Equal(t, []string{"gpu_seconds 10-60 100 TENANT"}, lines(a.Meter(time.Time{}, after(300), 100).Records))
	a.Proof.At = after(5)
	require.Empty(t, a.Meter(time.Time{}, after(300), 100).Records)
	a.Proof.At = time.Time{}
	require.Equal(t, metering.Metered{}, a.Meter(time.Time{}, after(300), 100))
}

// A silence is charged to no one until the node is back, or until it is written off.
func TestSilenceIsResolvedByProofOrWrittenOff(t *testing.T) {
	t.Parallel()
	a := slice(30, state(0, "READY", ""))
	require.Empty(t, a.Meter(time.Time{}, after(1000), 100).Records)

	a.Proof = metering.Proof{At: after(121), Gaps: []metering.Gap{{From: after(30), To: after(100)}}}
	require.Equal(t, []string{"gpu_seconds 0-30 60 TENANT", "gpu_seconds 30-60 60 TENANT",
		"gpu_seconds 60-100 80 TENANT", "gpu_seconds 100-120 40 TENANT"}, lines(a.Meter(time.Time{}, after(122),
		100).Records), "the same boot answers for it")

	a.Proof.Gaps[0].Rebooted = true
	require.Equal(t, []string{"gpu_seconds 0-30 60 TENANT", "gpu_seconds 30-60 60 PLATFORMNODE_REBOOTED",
		"gpu_seconds 60-100 80 PLATFORMNODE_REBOOTED", "gpu_seconds 100-120 40 TENANT"},
		lines(a.Meter(time.Time{}, after(122), 100).Records))

	open := slice(30, state(0, "READY", ""))
	written := open.Meter(time.Time{}, after(30+3600+200), 5)
	require.Equal(t, []string{"gpu_seconds 0-30 60 TENANT", "gpu_seconds 30-60 60 PLATFORMNODE_SILENT"},
		lines(written.Records[:2]))
	open.Proof = metering.Proof{At: after(9001), Gaps: []metering.Gap{{From: after(30), To: after(9000)}}}
	require.Equal(t, written.Records, open.Meter(time.Time{}, after(9001), 5).Records,
		"what was written off stays the platform's")
	require.Equal(t, "node", written.Records[1].BorneOwner)
}

// An agent answers for an hour of silence and no more: what it did before cannot be known for longer.
func TestASilenceOfAnHourIsTheLongestThatItsAgentAnswersFor(t *testing.T) {
	t.Parallel()
	a := slice(3_700, state(0, "READY", ""))
	a.Proof.Gaps = []metering.Gap{{From: after(30), To: after(3_630)}}
	require.Equal(t, "gpu_seconds 30-60 60 TENANT", lines(a.Meter(time.Time{}, after(3_700), 100).Records)[1])
	a.Proof.Gaps[0].To = after(3_630).Add(time.Nanosecond)
	require.Equal(t, "gpu_seconds 30-60 60 PLATFORMNODE_SILENT",
		lines(a.Meter(time.Time{}, after(3_700), 100).Records)[1])
}

// A silence that goes on is written off two minutes later: the heartbeat that ends it within the hour may be under way.
func TestAnOpenSilenceIsWrittenOffOnceNoHeartbeatCanBeUnderWay(t *testing.T) {
	t.Parallel()
	a := slice(30, state(0, "READY", ""))
	last := after(30).Add(time.Hour + 2*time.Minute)
	require.Empty(t, a.Meter(time.Time{}, last, 100).Records)
	require.Equal(t, []string{"gpu_seconds 0-30 60 TENANT", "gpu_seconds 30-60 60 PLATFORMNODE_SILENT"},
		lines(a.Meter(time.Time{}, last.Add(time.Nanosecond), 1).Records))
}

func TestWhatFailsIsThePlatforms(t *testing.T) {
	t.Parallel()
	a := slice(300, state(0, "READY", "ins_1"))
	a.Maker = &metering.Maker{}
	require.Empty(t, a.Meter(time.Time{}, after(300), 100).Records, "its operation has not ended")
	a.Maker = &metering.Maker{EndedAt: after(50), Failed: true}
	a.Facts = append(a.Facts,
		metering.Fact{At: after(90), Kind: metering.OrphanFact, OrphanID: "orp_1", OrphanKind: "NODE_RESIDUE",
			Owner: "adapter"},
		metering.Fact{At: after(130), Kind: metering.OrphanGoneFact, OrphanID: "orp_1"},
		metering.Fact{At: after(200), Kind: metering.MemberInFact, MemberID: "mem_1", ComponentKey: "worker"},
		state(240, "FAILED", "ins_1"), state(250, "RELEASING", ""), state(250, "RELEASED", ""))
	got := a.Meter(time.Time{}, after(300), 100).Records
	require.Equal(t, []string{"gpu_seconds 0-50 100 PLATFORMFAILED_ADD", "gpu_seconds 50-60 20 PLATFORMFAILED_ADD",
		"gpu_seconds 60-90 60 PLATFORMFAILED_ADD", "gpu_seconds 90-120 60 PLATFORMRESIDUE",
		"gpu_seconds 120-130 20 PLATFORMRESIDUE",
		"gpu_seconds 130-180 100 PLATFORMFAILED_ADD", "gpu_seconds 180-200 40 PLATFORMFAILED_ADD",
		"gpu_seconds 200-240 80 TENANT",
		"gpu_seconds 240-250 20 PLATFORMNODE_LOST"}, lines(got))
	require.Equal(t, "adapter", got[3].BorneOwner)
	require.Equal(t, "mem_1", got[7].MemberID)
	require.Equal(t, "ins_1", got[7].InstanceID)
}

// resident is a fact of a member.
func resident(at float64, kind metering.FactKind, member string) metering.Fact {
	return metering.Fact{At: after(at), Kind: kind, MemberID: member, ComponentKey: "worker"}
}

func TestARecordNamesTheMemberThatHasTheAllocationToItself(t *testing.T) {
	t.Parallel()
	a := slice(60, state(0, "READY", "ins_1"), resident(10, metering.MemberInFact, "mem_1"),
		resident(20, metering.MemberInFact, "mem_2"), resident(30, metering.MemberOutFact, "mem_1"),
		resident(40, metering.MemberOutFact, "mem_2"))
	var members []string
	for _, r := range a.Meter(time.Time{}, after(60), 100).Records {
		members = append(members, r.MemberID)
	}
	require.Equal(t, []string{"", "mem_1", "", "mem_2", ""}, members, "no record is of two")
}

// What an operation could not give back is borne until it is resolved, or until a member lives there again.
func TestAnOrphanIsThePlatformsUntilItIsResolvedOrInUse(t *testing.T) {
	t.Parallel()
	orphan := func(at float64, kind metering.FactKind, id, of, owner string) metering.Fact {
		return metering.Fact{At: after(at), Kind: kind, OrphanID: id, OrphanKind: of, Owner: owner}
	}
	a := slice(60, state(0, "READY", "ins_1"),
		orphan(5, metering.OrphanFact, "orp_1", "ALLOCATION", "provider"),
		orphan(10, metering.OrphanFact, "orp_2", "NODE_RESIDUE", "adapter"),
		orphan(20, metering.OrphanGoneFact, "orp_1", "ALLOCATION", "provider"),
		resident(30, metering.MemberInFact, "mem_1"), resident(40, metering.MemberOutFact, "mem_1"),
		orphan(50, metering.OrphanGoneFact, "orp_2", "NODE_RESIDUE", "adapter"))
	var borne []string
	for _, r := range a.Meter(time.Time{}, after(60), 100).Records {
		borne = append(borne, strings.TrimSpace(string(r.BorneBy)+" "+r.BorneReason+" "+r.BorneOwner))
	}
	require.Equal(t, []string{"TENANT", "PLATFORM ORPHAN provider", "PLATFORM ORPHAN provider",
		"PLATFORM RESIDUE adapter", "TENANT", "PLATFORM RESIDUE adapter", "TENANT"}, borne,
		"the first of two is the reason")
}

// history is a random allocation as it is once all has come out.
func history(random *rand.Rand) *metering.Allocation {
	a := slice(0, state(random.Float64()*100, "READY", ""))
	at := a.Facts[0].At
	for range random.IntN(12) {
		at = at.Add(time.Duration(random.Float64() * 200 * float64(time.Second)))
		fact := metering.Fact{At: at, MemberID: strconv.Itoa(random.IntN(3)), OrphanID: strconv.Itoa(random.IntN(2))}
		fact.Kind = []metering.FactKind{metering.MemberInFact, metering.MemberOutFact, metering.OrphanFact,
			metering.OrphanGoneFact}[random.IntN(4)]
		a.Facts = append(a.Facts, fact)
	}
	if random.IntN(2) == 0 {
		at = at.Add(time.Duration(random.IntN(300)) * time.Second)
		a.Facts = append(a.Facts, metering.Fact{At: at, Kind: metering.StateFact, Status: "RELEASED"})
	}
	if random.IntN(3) == 0 {
		a.Maker = &metering.Maker{EndedAt: a.Facts[0].At.Add(time.Duration(random.IntN(300)) * time.Second),
			Failed: random.IntN(2) == 0}
	}
	end := at.Add(time.Duration(random.IntN(9000)) * time.Second)
	for beat := noon; beat.Before(end); {
		step := time.Duration(5+random.Float64()) * time.Second
		if random.IntN(40) == 0 {
			step = time.Duration(random.IntN(7000)+16) * time.Second
			a.Proof.Gaps = append(a.Proof.Gaps, metering.Gap{From: beat, To: beat.Add(step),
				Rebooted: random.IntN(2) == 0})
		}
		beat = beat.Add(step)
		a.Proof.At = beat
	}
	return a
}

// known is what could be known of a history at a time.
func known(whole *metering.Allocation, now time.Time) *metering.Allocation {
	a := *whole
	later := func(at time.Time) bool { return at.After(now) }
	a.Facts = slices.DeleteFunc(slices.Clone(whole.Facts), func(f metering.Fact) bool { return later(f.At) })
	a.Proof.Gaps = slices.DeleteFunc(slices.Clone(whole.Proof.Gaps), func(g metering.Gap) bool { return later(g.To) })
	a.Proof.At = noon
	for beat := whole.Proof.At; ; beat = beat.Add(-5 * time.Second) { // beats are 5 s apart where there is no gap
		covered := slices.IndexFunc(whole.Proof.Gaps, func(g metering.Gap) bool {
			return g.From.Before(beat) &&
				beat.Before(g.To)
		})
		if covered >= 0 {
			beat = whole.Proof.Gaps[covered].From
		}
		if !later(beat) || beat.Before(noon) {
			a.Proof.At = beat
			break
		}
	}
	for _, gap := range a.Proof.Gaps {
		if gap.To.After(a.Proof.At) {
			a.Proof.At = gap.To
		}
	}
	if a.Maker != nil && later(a.Maker.EndedAt) {
		a.Maker = &metering.Maker{}
	}
	return &a
}

// Whoever meters, in whatever steps, with whatever pauses, writes the same records, and no second twice.
func TestTheRecordsDependOnWhatIsProvedAndNotOnWhoLooksWhen(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 1))
		whole := history(random)
		last := whole.Proof.At.Add(3 * time.Hour)
		at := whole.Meter(time.Time{}, last, 1<<20).Records
		for range 3 {
			var stepped []metering.Record
			var to time.Time
			for now := noon; now.Before(last); now = now.Add(time.Duration(1+random.IntN(4000)) * time.Second) {
				got := known(whole, now).Meter(to, now, 1+random.IntN(50))
				stepped, to = append(stepped, got.Records...), got.To
				if got.Ended {
					break
				}
			}
			for more := true; more; {
				got := whole.Meter(to, last, 30)
				more = len(got.Records) > 0
				stepped, to = append(stepped, got.Records...), got.To
			}
			require.Equal(t, lines(at), lines(stepped), "seed %d", seed)
			require.Equal(t, at, stepped, "seed %d", seed)
		}
		for i := 1; i < len(at); i++ {
			require.Equal(t, at[i-1].To, at[i].From, "seed %d: each second once", seed)
		}
	}
}
