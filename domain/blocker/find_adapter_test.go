package blocker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// alone are facts of an instance without an open operation.
func alone() *Facts {
	f := working(lifecycle.MemberDrain)
	f.Operation = nil
	f.Instance.Created, f.Instance.Health = ago(time.Hour), lifecycle.HealthHealthy
	return f
}

// troubled are facts of an operation whose adapter failed at its last try, as the step notes.
func troubled(code fault.Code, owner string) func() *Facts {
	return func() *Facts {
		f := working(lifecycle.MemberDrain)
		f.Operation.Failures = 1
		step := f.Operation.Step
		step.Troubled, step.WaitCode, step.WaitOwner, step.Message = true, code, owner, "adapter it answers 500"
		return f
	}
}

func TestAnOperationIsOnItsAdapterWhenItCannotGoOnWithoutIt(t *testing.T) {
	t.Parallel()
	on := func(state lifecycle.OperationState, step string) func(*Facts) {
		return func(f *Facts) { f.Operation.State, f.Operation.Step.Name = state, step }
	}
	sending := func(claimed bool, dispatches int, step string) func(*Facts) {
		return func(f *Facts) {
			f.Operation.Claimed, f.Operation.Dispatches, f.Operation.Step.Name = claimed, dispatches, step
		}
	}
	const running, back = lifecycle.OperationRunning, lifecycle.OperationCompensating
	rule := func(f *Facts) []finding {
		if f.onAdapter() {
			return one(now)
		}
		return nil
	}
	judged(t, rule, func() *Facts { return working(lifecycle.MemberDrain) },
		change{"await", on(running, "await"), true},
		change{"dispatch", on(running, "dispatch"), true},
		change{"verify", on(running, "verify"), false},
		change{"no adapter takes part", func(f *Facts) { f.AdapterName = "" }, false},
		change{"no operation", func(f *Facts) { f.Operation = nil }, false},
		change{"no step yet", func(f *Facts) { f.Operation.Step = nil }, false},
		change{"taken back by the adapter", on(back, "withdraw"), true},
		change{"taken back by the platform", on(back, "undo"), false},
		change{"taken back, before the first step", func(f *Facts) {
			f.Operation.State, f.Operation.Step = back, nil
		}, false},
		change{"to be stopped", on(lifecycle.OperationCanceling, "verify"), true},
		change{"being sent", sending(true, 1, "prepare"), true},
		change{"being prepared", sending(true, 0, "prepare"), false},
		change{"prepared by nobody", sending(false, 1, "prepare"), false},
		change{"another step", sending(true, 1, "verify"), false},
		change{"a step that waits for it", func(f *Facts) {
			f.Operation.Step.Name, f.Operation.Step.WaitCode = "verify", fault.AdapterUnavailable
		}, true})
}

func TestAnAdapterMattersToAnOperationOnItAndToAnInstanceAtRest(t *testing.T) {
	t.Parallel()
	quiet := func(f *Facts) { f.Adapter.Seen = pointer(ago(time.Minute)) }
	judged(t, feedSilent, alone,
		change{"a minute", quiet, true},
		change{"less", func(f *Facts) { f.Adapter.Seen = pointer(ago(time.Minute - 1)) }, false},
		change{"never", func(f *Facts) { f.Adapter.Seen = nil }, false},
		change{"a problem is known", func(f *Facts) { quiet(f); f.Adapter.Problem = "x" }, false},
		change{"not registered", func(f *Facts) { f.Adapter = nil }, false},
		change{"no instance", func(f *Facts) { quiet(f); f.Instance = nil }, false},
		change{"no name", func(f *Facts) { quiet(f); f.AdapterName = "" }, false})
	judged(t, feedSilent, func() *Facts { return working(lifecycle.MemberDrain) },
		change{"on it", quiet, true},
		change{"not on it", func(f *Facts) { quiet(f); f.Operation.Step.Name = "verify" }, false})
}

func TestAnAdapterThatIsNotRegisteredIsToldWhereItIsNeeded(t *testing.T) {
	t.Parallel()
	gone := func(f *Facts) { f.Adapter = nil }
	judged(t, notRegistered, alone, change{"gone", gone, true}, change{"there", func(*Facts) {}, false},
		change{"none takes part", func(f *Facts) { f.Adapter, f.AdapterName = nil, "" }, false})
	elsewhere := func() *Facts {
		f := troubled("", OwnerPlatform)()
		f.Adapter, f.Operation.Step.Name = nil, "verify"
		return f
	}
	judged(t, notRegistered, elsewhere,
		change{"a step that fails first meets it", func(*Facts) {}, true},
		change{"which does not fail", func(f *Facts) { f.Operation.Failures = 0 }, false},
		change{"whose last try went well", func(f *Facts) { f.Operation.Step.Troubled = false }, false},
		change{"of no adapter", func(f *Facts) { f.AdapterName = "" }, false},
		change{"taken back", func(f *Facts) { f.Operation.State = lifecycle.OperationCompensating }, false})
}

func TestAnAdaptersTroubleIsSinceItsLastGoodAnswer(t *testing.T) {
	t.Parallel()
	seen, registered := ago(10*time.Minute), ago(2*time.Hour)
	for name, c := range map[string]struct {
		base  func() *Facts
		apply func(f *Facts)
		want  time.Time
	}{
		"its feed knows": {alone, func(f *Facts) { f.Adapter.Problem, f.Adapter.Seen = "x", &seen }, seen},
		"never seen":     {alone, func(f *Facts) { f.Adapter.Problem, f.Adapter.Seen = "x", nil }, registered},
		"never seen, on a step": {troubled("", ""), func(f *Facts) {
			f.Adapter.Problem, f.Adapter.Seen = "x", nil
		}, ago(time.Minute)},
		"nothing is known to be bad": {alone, func(*Facts) {}, ago(time.Hour)},
		"not registered":             {alone, func(f *Facts) { f.Adapter = nil }, ago(time.Hour)},
	} {
		f := c.base()
		f.Adapter.Registered = registered
		c.apply(f)
		require.Equal(t, c.want, f.adapterSince(), name)
	}
}

func TestWhatTheAdapterFailsAtIsToldByItsKind(t *testing.T) {
	t.Parallel()
	nothing, elsewhere := func(*Facts) {}, func(f *Facts) {
		f.Operation.Step.Name,
			f.Operation.Step.WaitCode = "verify", ""
	}
	missing := func(f *Facts) { f.Adapter = nil }
	fine := func(f *Facts) { f.Operation.Failures = 0 }
	judged(t, dialRefused, troubled(fault.DialRefused, OwnerPlatform),
		change{"the step says so", nothing, true}, change{"it does not fail", fine, false}, change{"not registered",
			missing, false},
		change{"another reason", func(f *Facts) { f.Operation.Step.WaitCode = fault.AdapterInvalid }, false},
		change{"the feed says so", func(f *Facts) { fine(f); f.Adapter.DialRefused = true }, true},
		change{"the adapter is not needed", func(f *Facts) { elsewhere(f); f.Adapter.DialRefused = true }, false})
	unauthenticated := func(f *Facts) { f.Operation.Step.Unauthenticated = true }
	judged(t, refusesPlatform, troubled(fault.AdapterInvalid, OwnerAdapter),
		change{"the step says so", unauthenticated, true}, change{"it does not", nothing,
			false}, change{"not registered", missing, false},
		change{"it does not fail", func(f *Facts) { unauthenticated(f); fine(f) }, false},
		change{"the feed says so", func(f *Facts) { fine(f); f.Adapter.Unauthenticated = true }, true},
		change{"the adapter is not needed", func(f *Facts) { elsewhere(f); f.Adapter.Unauthenticated = true }, false})
	judged(t, adapterInvalid, troubled(fault.AdapterInvalid, OwnerAdapter),
		change{"outside of the contract", nothing, true}, change{"it does not fail", fine,
			false}, change{"not registered", missing, false},
		change{"its signature is refused", unauthenticated, false}, change{"not on the adapter", elsewhere, false},
		change{"another reason", func(f *Facts) { f.Operation.Step.WaitCode = fault.AdapterUnavailable }, false})
	require.Equal(t, []string{"adapter", "it", "reason", "adapter it answers 500"},
		only(t, adapterInvalid(troubled(fault.AdapterInvalid, OwnerAdapter)())).words)
}

func TestAnAdapterIsUnavailableByItsStepOrByItsFeed(t *testing.T) {
	t.Parallel()
	step := troubled(fault.AdapterUnavailable, OwnerAdapter)
	judged(t, adapterUnavailable, step,
		change{"the step says so", func(*Facts) {}, true},
		change{"not registered", func(f *Facts) { f.Adapter = nil }, false},
		change{"it is the platform's", func(f *Facts) { f.Operation.Step.WaitOwner = OwnerPlatform }, false},
		change{"it is invalid", func(f *Facts) { f.Operation.Step.WaitCode = fault.AdapterInvalid }, false},
		change{"it may not be dialled", func(f *Facts) { f.Operation.Step.WaitCode = fault.DialRefused }, false},
		change{"it does not fail", func(f *Facts) { f.Operation.Failures = 0 }, false},
		change{"not needed", func(f *Facts) { f.Operation.Step.Name, f.Operation.Step.WaitCode = "verify", "" }, false})
	feed := func() *Facts {
		f := alone()
		f.Adapter.Problem = "adapter it cannot be reached"
		return f
	}
	judged(t, adapterUnavailable, feed,
		change{"the feed says so", func(*Facts) {}, true},
		change{"nothing is wrong", func(f *Facts) { f.Adapter.Problem = "" }, false},
		change{"it may not be dialled", func(f *Facts) { f.Adapter.DialRefused = true }, false},
		change{"it refuses the platform", func(f *Facts) { f.Adapter.Unauthenticated = true }, false},
		change{"no instance needs it", func(f *Facts) { f.Instance = nil }, false})
	require.Equal(t, "adapter it cannot be reached", only(t, adapterUnavailable(feed())).words[3])
	both := step()
	both.Adapter.Problem = "adapter it cannot be reached"
	require.Equal(t, "adapter it answers 500", only(t, adapterUnavailable(both)).words[3], "the step met it last")
}

func TestAnAdapterThatWorksSaysWhatItSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ state, message, want string }{
		{"running", "", ""}, {"", "", "; it has not reported yet"}, {"running", "half done", ": half done"}, {"",
			"half done", ": half done"},
	} {
		f := working(lifecycle.MemberDrain)
		f.Operation.AdapterState, f.Operation.AdapterMessage = c.state, c.message
		require.Equal(t, c.want, only(t, adapterWorking(f)).words[3])
	}
	judged(t, adapterWorking, func() *Facts { return working(lifecycle.MemberDrain) },
		change{"to be stopped", func(f *Facts) { f.Operation.State = lifecycle.OperationCanceling }, false},
		change{"taken back", func(f *Facts) {
			f.Operation.State, f.Operation.Step.Name = lifecycle.OperationCompensating, withdrawStep
		}, false},
		change{"not on it", func(f *Facts) { f.Operation.Step.Name = "verify" }, false})
}
