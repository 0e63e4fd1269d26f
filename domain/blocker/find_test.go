package blocker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// change is facts that differ from others in one way, and whether a rule finds something in them.
type change struct {
	name  string
	apply func(f *Facts)
	found bool
}

// judged runs a rule on the facts with each change alone.
func judged(t *testing.T, rule func(*Facts) []finding, base func() *Facts, changes ...change) {
	t.Helper()
	for _, c := range changes {
		f := base()
		c.apply(f)
		require.Equal(t, c.found, len(rule(f)) > 0, c.name)
	}
}

// only is the single finding of a rule.
func only(t *testing.T, found []finding) finding {
	t.Helper()
	require.Len(t, found, 1)
	return found[0]
}

func pointer[T any](value T) *T { return &value }

// idle are facts of an operation that no worker has taken and that is due since so long.
func idle(due time.Duration) *Facts {
	f := working(lifecycle.MemberDrain)
	f.Operation.Due = ago(due)
	return f
}

func TestAnOperationIsQueuedOnceItWasDueForTwoSeconds(t *testing.T) {
	t.Parallel()
	judged(t, queued, func() *Facts { return idle(2 * time.Second) },
		change{"as it is", func(*Facts) {}, true},
		change{"not yet", func(f *Facts) { f.Operation.Due = ago(2*time.Second - 1) }, false},
		change{"not due", func(f *Facts) { f.Operation.Due = now.Add(time.Second) }, false},
		change{"a worker has it", func(f *Facts) { f.Operation.Claimed = true }, false},
		change{"no worker lives", func(f *Facts) { f.Workers.Alive = false }, false})
	for backlog, text := range map[int]string{0: "1", 1: "1", 2: "2", 500: "500"} {
		f := idle(time.Minute)
		f.Backlog = backlog
		require.Equal(t, finding{since: ago(time.Minute), words: []string{"backlog", text}}, only(t, queued(f)))
	}
}

func TestAnOperationThatWaitsForABusyAdapterNamesItAndNotItsOwnBacklog(t *testing.T) {
	t.Parallel()
	crowded := func() *Facts {
		f := idle(2 * time.Second)
		f.AdapterName, f.Adapter, f.Backlog = "slow", &Adapter{Name: "slow", Busy: true}, 500
		return f
	}
	judged(t, adapterBusy, crowded,
		change{"as it is", func(*Facts) {}, true},
		change{"not yet", func(f *Facts) { f.Operation.Due = ago(2*time.Second - 1) }, false},
		change{"a worker has it", func(f *Facts) { f.Operation.Claimed = true }, false},
		change{"no worker lives", func(f *Facts) { f.Workers.Alive = false }, false},
		change{"no worker knows it", func(f *Facts) { f.Operation.Unknown = true }, false},
		change{"the adapter answers", func(f *Facts) { f.Adapter.Busy = false }, false},
		change{"it is not registered", func(f *Facts) { f.Adapter = nil }, false})
	require.Equal(t, finding{subject: "slow", since: ago(2 * time.Second), words: []string{"adapter", "slow"}},
		only(t, adapterBusy(crowded())))
	require.Empty(t, queued(crowded()))
}

func TestWithoutWorkersItIsSinceTheLastSignOfLife(t *testing.T) {
	t.Parallel()
	created, due := ago(time.Hour), ago(time.Minute)
	for name, c := range map[string]struct {
		due   time.Time
		heard *time.Time
		want  time.Time
	}{
		"never due":                {now.Add(time.Second), nil, created},
		"due before it was made":   {ago(2 * time.Hour), nil, created},
		"due":                      {due, nil, due},
		"heard before it was made": {now.Add(time.Second), pointer(ago(2 * time.Hour)), created},
		"heard since":              {due, pointer(ago(time.Second)), ago(time.Second)},
	} {
		f := working(lifecycle.MemberDrain)
		f.Operation.Due, f.Workers = c.due, Pulse{Heard: c.heard}
		require.Equal(t, finding{since: c.want}, only(t, noWorker(f)), name)
		f.Workers.Alive = true
		require.Empty(t, noWorker(f), name)
	}
}

func TestAnOperationThatNoLivingWorkerCanDoSaysItsKindAndSinceWhenItWaits(t *testing.T) {
	t.Parallel()
	unknown := func() *Facts {
		f := idle(time.Minute)
		f.Operation.Unknown = true
		return f
	}
	judged(t, planUnknown, unknown,
		change{"as it is", func(*Facts) {}, true},
		change{"no worker lives, which NO_WORKER says", func(f *Facts) { f.Workers.Alive = false }, false},
		change{"a worker has it", func(f *Facts) { f.Operation.Claimed = true }, false},
		change{"a worker can do it", func(f *Facts) { f.Operation.Unknown = false }, false})
	want := finding{since: ago(time.Minute), words: []string{"kind", "member drain"}}
	require.Equal(t, want, only(t, planUnknown(unknown())))
	later := unknown()
	later.Operation.Due = now.Add(time.Second)
	require.Equal(t, ago(time.Hour), only(t, planUnknown(later)).since, "not due yet: since it was requested")
}

func TestALostWorkersOperationIsTakenOverFifteenSecondsAfterItsLastHeartbeat(t *testing.T) {
	t.Parallel()
	lost := func() *Facts {
		f := working(lifecycle.MemberDrain)
		f.Operation.Claimed, f.Operation.Holder = true, Pulse{Heard: pointer(ago(time.Minute))}
		return f
	}
	judged(t, workerLost, lost,
		change{"as it is", func(*Facts) {}, true},
		change{"not claimed", func(f *Facts) { f.Operation.Claimed = false }, false},
		change{"it lives", func(f *Facts) { f.Operation.Holder.Alive = true }, false},
		change{"no worker lives", func(f *Facts) { f.Workers.Alive = false }, false})
	require.Equal(t, finding{since: ago(time.Minute), next: pointer(ago(45 * time.Second))},
		only(t, workerLost(lost())))
	never := lost()
	never.Operation.Holder.Heard, never.Operation.Step.Started = nil, ago(time.Hour)
	require.Equal(t, ago(time.Hour), only(t, workerLost(never)).since)
}

func TestItBeganWithItsStepItselfOrItsInstance(t *testing.T) {
	t.Parallel()
	f := working(lifecycle.MemberDrain)
	require.Equal(t, ago(time.Minute), f.began())
	f.Operation.Step = nil
	require.Equal(t, ago(time.Hour), f.began())
	f.Operation, f.Instance.Created = nil, ago(2*time.Hour)
	require.Equal(t, ago(2*time.Hour), f.began())
	f.Instance = nil
	require.Equal(t, now, f.began())
}

func TestItIsLookedAtAgainWhenItIsDueUnlessSomebodyHasIt(t *testing.T) {
	t.Parallel()
	f := working(lifecycle.MemberDrain)
	require.Equal(t, now.Add(time.Second), *f.next())
	f.Operation.Due = now
	require.Nil(t, f.next(), "it is due")
	f.Operation.Due, f.Operation.Claimed = now.Add(time.Second), true
	require.Nil(t, f.next())
	f.Operation = nil
	require.Nil(t, f.next())
}

func TestWorkIsCountedAndNamedByItsFirst(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) *time.Time { return pointer(ago(d)) }
	for name, c := range map[string]struct {
		works   []Work
		since   time.Duration
		subject string
		words   []string
	}{
		"one": {[]Work{{ID: "1"}}, time.Minute, "1", []string{"count", "1 piece of work", "work", "1"}},
		"two": {[]Work{{ID: "1", Name: "train"}, {ID: "2", Name: "other", MemberID: "mem_2"}}, time.Minute, "1",
			[]string{"count", "2 pieces of work", "work", "1 (train)"}},
		"with its reason": {[]Work{{ID: "1", Name: "train", Message: "a budget keeps it"}}, time.Minute, "1",
			[]string{"count", "1 piece of work", "work", "1 (train): a budget keeps it"}},
		"on a member": {[]Work{{ID: "1", MemberID: "mem_1"}, {ID: "2"}}, time.Minute, "mem_1",
			[]string{"count", "2 pieces of work", "work", "1"}},
		"begun after the step": {[]Work{{ID: "1", Since: at(30 * time.Second)}, {ID: "2", Since: at(20 * time.Second)}},
			30 * time.Second, "1", []string{"count", "2 pieces of work", "work", "1"}},
		"the second is older": {[]Work{{ID: "1", Since: at(30 * time.Second)}, {ID: "2", Since: at(40 * time.Second)}},
			40 * time.Second, "1", []string{"count", "2 pieces of work", "work", "1"}},
		"the first is not dated": {[]Work{{ID: "1"}, {ID: "2", Since: at(2 * time.Minute)}, {ID: "3", Since: at(1)}},
			2 * time.Minute, "1", []string{"count", "3 pieces of work", "work", "1"}},
	} {
		f := working(lifecycle.MemberDrain)
		f.Operation.Works = c.works
		want := finding{subject: c.subject, since: ago(c.since), next: f.next(), words: c.words}
		require.Equal(t, want, only(t, workRunning(f)), name)
	}
	require.Empty(t, workRunning(working(lifecycle.MemberDrain)))
}

func TestADeadlineIsNearInItsLastMinute(t *testing.T) {
	t.Parallel()
	near := func(left time.Duration) func() *Facts {
		return func() *Facts {
			f := working(lifecycle.MemberDrain)
			f.Operation.Deadline = now.Add(left)
			return f
		}
	}
	nothing := func(*Facts) {}
	judged(t, deadlineNear, near(time.Minute), change{"a minute", nothing, true},
		change{"force", func(f *Facts) { f.Operation.ForcedAt = &now }, false})
	judged(t, deadlineNear, near(time.Minute+1), change{"more", nothing, false})
	judged(t, deadlineNear, near(1), change{"a moment", nothing, true})
	judged(t, deadlineNear, near(0), change{"now", nothing, false})
	judged(t, deadlinePassed, near(0), change{"now", nothing, true},
		change{"force", func(f *Facts) { f.Operation.ForcedAt = &now }, false},
		change{"taken back", func(f *Facts) { f.Operation.State = lifecycle.OperationCompensating }, false})
	judged(t, deadlinePassed, near(1), change{"a moment", nothing, false})
}

func TestForceGivesTheAdapterTwoMinutes(t *testing.T) {
	t.Parallel()
	forced := func() *Facts {
		f := working(lifecycle.MemberRemove)
		f.Operation.ForcedAt = pointer(ago(2 * time.Minute))
		return f
	}
	judged(t, forceGrace, forced,
		change{"its last moment", func(*Facts) {}, true},
		change{"over", func(f *Facts) { f.Operation.ForcedAt = pointer(ago(2*time.Minute + 1)) }, false},
		change{"no force", func(f *Facts) { f.Operation.ForcedAt = nil }, false},
		change{"not its turn", func(f *Facts) { f.Operation.Step.Name = "verify" }, false})
}

func TestThePlatformsOwnTroubleIsWhatFailsForIt(t *testing.T) {
	t.Parallel()
	failing := func() *Facts {
		f := working(lifecycle.MemberDrain)
		f.Operation.Failures = 1
		f.Operation.Step.Troubled, f.Operation.Step.WaitOwner, f.Operation.Step.Message = true,
			OwnerPlatform, "it broke"
		return f
	}
	judged(t, platformTrouble, failing,
		change{"as it is", func(*Facts) {}, true},
		change{"no failure", func(f *Facts) { f.Operation.Failures = 0 }, false},
		change{"not the last try", func(f *Facts) { f.Operation.Step.Troubled = false }, false},
		change{"the adapter's", func(f *Facts) { f.Operation.Step.WaitOwner = OwnerAdapter }, false},
		change{"the dial policy's", func(f *Facts) { f.Operation.Step.WaitCode = fault.DialRefused }, false},
		change{"before its first step", func(f *Facts) { f.Operation.Step = nil }, false})
	words := []string{"step", "await", "failures", "1", "reason", "it broke"}
	require.Equal(t, words, only(t, platformTrouble(failing())).words)
}

func TestAnEndThatIsRefusedSaysHowOftenAndWhy(t *testing.T) {
	t.Parallel()
	f := working(lifecycle.MemberDrain)
	require.Empty(t, endRefused(f))
	f.Operation.Refusal = &Refusal{State: lifecycle.OperationCompensating, Why: "the database refuses it with P0001",
		Times: 3,
		Since: ago(time.Minute)}
	found := only(t, endRefused(f))
	require.Equal(t, ago(time.Minute), found.since)
	require.Equal(t, []string{"state", "compensating", "times", "3", "reason", "the database refuses it with P0001"},
		found.words)
}

func TestAStepBelongsToWhomItWaitsFor(t *testing.T) {
	t.Parallel()
	for waits, owner := range map[string]string{
		OwnerAdapter: OwnerAdapter, OwnerUser: OwnerUser, OwnerNode: OwnerNode, OwnerPlatform: OwnerPlatform,
		"": OwnerPlatform, "somebody": OwnerPlatform,
	} {
		f := working(lifecycle.MemberDrain)
		f.Operation.Step.Name, f.Operation.Step.WaitOwner = "verify", waits
		require.Equal(t, owner, only(t, stepRunning(f)).owner, waits)
	}
}

func TestACancelIsUnansweredSinceItWasAskedFor(t *testing.T) {
	t.Parallel()
	f := working(lifecycle.MemberDrain)
	require.Empty(t, cancelUnanswered(f))
	f.Operation.State = lifecycle.OperationCanceling
	require.Equal(t, ago(time.Minute), only(t, cancelUnanswered(f)).since)
	f.Operation.CancelAskedAt = pointer(ago(time.Second))
	require.Equal(t, ago(time.Second), only(t, cancelUnanswered(f)).since)
}

func TestWhatIsWrongAheadIsToldBeforeWhatWaitsForIt(t *testing.T) {
	t.Parallel()
	f := idle(time.Minute)
	f.Behind = &Behind{ID: "op_2", Kind: lifecycle.MembersAdd, Instance: "ins_2", Since: ago(time.Minute)}
	f.Behind.Blockers = []*Blocker{
		{Code: "NODE_OFFLINE", Subject: "nod_9"}, {Code: "ADAPTER_WORKING", Subject: "it"}, {Code: "STEP_RUNNING"},
	}
	found := Of(f)
	require.Equal(t, []string{"QUEUED", "NODE_OFFLINE", codeBehind, "ADAPTER_WORKING"}, codes(found))
	require.Equal(t, "nod_9", found[1].Subject)
	require.Equal(t, "op_2", found[2].Subject)
	require.Equal(t, ago(time.Minute), found[2].Since)
}

func TestTheKeyOfARuleIsTheFamilysTheKindsOrItsOwn(t *testing.T) {
	t.Parallel()
	f := working(lifecycle.MemberRemove)
	require.Equal(t, "scheduler.member.replace", f.key("<family>.member.replace"))
	require.Equal(t, "adapter.register", f.key("adapter.register"))
	require.Equal(t, "scheduler.member.remove", f.key(keyForce))
	f.Operation.ForcedAt = &now
	require.Empty(t, f.key(keyForce), "force is chosen already")
	f.Family = ""
	require.Empty(t, f.key("<family>.member.replace"))
	require.Empty(t, f.key(keyForce))
	require.Equal(t, "adapter.register", f.key("adapter.register"), "a key of no family needs none")
	f.Operation, f.Family = nil, "apps"
	require.Empty(t, f.key(keyCancel))
	require.Equal(t, "apps.member.replace", f.key(keyForce))
}
