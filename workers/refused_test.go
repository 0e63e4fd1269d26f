package workers_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ending"
)

// refuses makes the database refuse rows for good.
func (l *lab) refuses(name, on, when string) {
	l.Helper()
	l.owner(fmt.Sprintf(`CREATE FUNCTION refuse_%s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION
		'never: %s'; END $$;
		CREATE TRIGGER refuse_%s %s FOR EACH ROW WHEN (%s) EXECUTE FUNCTION
		refuse_%s()`, name, name, name, on, when, name))
}

// takes lets the database take again what it refused.
func (l *lab) takes(name string) {
	l.Helper()
	l.owner(`DROP FUNCTION refuse_` + name + `() CASCADE`)
}

// newRefusing is a lab whose operations end bare after three refusals.
func newRefusing(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.pace.Refusals = 3
	return l
}

func (l *lab) refusesState(states ...lifecycle.OperationState) {
	l.Helper()
	l.refuses("state", "BEFORE UPDATE ON operation", `NEW.state <> OLD.state AND NEW.state IN (`+quoted(states...)+`)`)
}

// barelyEnded requires that the operation ended with its end alone, and says why.
func (c *cluster) barelyEnded(as lifecycle.OperationState, why ...string) {
	c.Helper()
	op := c.end()
	require.Equal(c.TB, []any{as, ending.Refused, "platform"}, []any{op.State, op.ErrorCode, op.ErrorOwner},
		op.ErrorMessage)
	for _, word := range why {
		require.Contains(c.TB, op.ErrorMessage, word)
	}
	c.closed()
	c.none(`SELECT id FROM node_task WHERE ended_at IS NULL AND NOT cancel_requested
		AND operation_id = '` + string(c.op) +
		`'`)
}

func TestAnAdditionThatCannotBeTurnedBackEndsWithItsOrphansListed(t *testing.T) {
	t.Parallel()
	l := newRefusing(t)
	l.work()
	c := l.cluster("turned")
	c.refusesState(lifecycle.OperationCompensating)
	c.ask(asked{kind: lifecycle.MembersAdd})
	c.says(adapter.StateFailed, "", "")
	c.barelyEnded(lifecycle.OperationFailed, "COMPENSATING", "3 tries", "P0001", "ADAPTER_FAILED", "it broke")
	require.Equal(t, "FAILED UNVERIFIED END_REFUSED | ACTIVE ACTIVE FAILED | 2 of 3 | theirs ready bound free ready "+
		"bound | generation 1 1.0.0 | orphans 1", c.world())
	orphan := c.own.Orphan.Query().OnlyX(t.Context())
	require.Equal(t, []any{c.newcomer, c.op}, []any{*orphan.MemberID, *orphan.OperationID})
	require.Contains(t, orphan.Message, "could not record it as COMPENSATING")
	c.once(c.launched, string(lifecycle.EventMemberFailed), string(lifecycle.EventOrphanFound), "apps.operation.failed")
}

// The compensation would have canceled the adapter's work; it does not run.
func TestAnAdapterThatWorksOnWhatEndsBareIsAskedToStop(t *testing.T) {
	t.Parallel()
	l := newRefusing(t)
	l.work()
	c := l.cluster("working")
	c.refusesState(lifecycle.OperationCompensating)
	c.ask(asked{kind: lifecycle.MembersAdd, deadline: 2 * time.Second})
	c.barelyEnded(lifecycle.OperationFailed, "COMPENSATING", "DEADLINE_EXCEEDED")
	c.until("the adapter is asked to stop", func() bool {
		c.script.mu.Lock()
		defer c.script.mu.Unlock()
		return slices.Contains(c.script.cancels, string(c.op))
	})
}

// Whatever the state in which the database takes no operation, each kind ends by itself, in the state that is left.
func TestEveryKindEndsThoughAStateIsRefusedForGood(t *testing.T) {
	t.Parallel()
	for refused, as := range map[lifecycle.OperationState]lifecycle.OperationState{
		lifecycle.OperationFailed:       lifecycle.OperationCanceled,
		lifecycle.OperationCompensating: lifecycle.OperationFailed} {
		for _, r := range rules {
			t.Run(string(r.kind)+" never "+string(refused), func(t *testing.T) {
				t.Parallel()
				l := newRefusing(t)
				l.work()
				c := l.cluster("refused")
				c.refusesState(refused)
				c.ask(asked{kind: r.kind})
				c.says(adapter.StateFailed, "", "")
				op := c.end()
				// is never turned back
				if refused == lifecycle.OperationCompensating && r.kind == lifecycle.InstanceDecommission {
					require.Equal(t, "ADAPTER_FAILED", op.ErrorCode)
					return
				}
				c.barelyEnded(as, string(refused), "ADAPTER_FAILED")
			})
		}
	}
}

func TestEveryKindThatIsCanceledEndsThoughThatIsRefusedForGood(t *testing.T) {
	t.Parallel()
	for _, r := range rules {
		if !cancelable(r) {
			continue
		}
		t.Run(string(r.kind), func(t *testing.T) {
			t.Parallel()
			l := newRefusing(t)
			l.work()
			c := l.cluster("refused")
			c.refusesState(lifecycle.OperationCanceled)
			c.ask(asked{kind: r.kind})
			c.script.dispatched(string(c.op))
			c.cancel()
			c.barelyEnded(lifecycle.OperationFailed, "CANCELED", "canceled by Ada")
		})
	}
}

// What a kind writes beside its end may be refused too, also at the commit; each such part is left out alone.
func TestAnEndLeavesOutTheRowsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]struct{ on, when string }{
		"members":  {"BEFORE UPDATE ON member", `NEW.status = 'FAILED'`},
		"instance": {"BEFORE UPDATE ON instance", `NEW.status = 'FAILED'`},
		"steps":    {"BEFORE UPDATE ON operation_step", `NEW.state IN ('SKIPPED', 'FAILED')`},
		"events":   {"BEFORE INSERT ON app_instance_event", `NEW.type = 'apps.operation.failed'`},
	} {
		for _, late := range []bool{false, true} {
			title := name
			if late {
				title += " at the commit"
			}
			t.Run(title, func(t *testing.T) {
				t.Parallel()
				l := newRefusing(t)
				l.work()
				if late {
					l.owner(fmt.Sprintf(`CREATE FUNCTION refuse_late() RETURNS trigger LANGUAGE plpgsql
						AS $$ BEGIN RAISE EXCEPTION
						'late'; END $$;
						CREATE CONSTRAINT TRIGGER refuse_late AFTER %s DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (%s)
						EXECUTE FUNCTION refuse_late()`, refused.on[len("BEFORE "):], refused.when))
				} else {
					l.refuses("row", refused.on, refused.when)
				}
				s := l.script("parts")
				it := l.launch(l.world("parts", s.url), time.Minute)
				s.dispatched(string(it.create))
				s.say(failedStatus(string(it.create)))
				op := l.ended(it.create)
				require.Equal(t, []any{lifecycle.OperationFailed, ending.Refused}, []any{op.State, op.ErrorCode},
					op.ErrorMessage)
				require.Contains(t, op.ErrorMessage, "P0001")
				failed := l.own.Member.Query().Where(dbmember.StatusEQ(lifecycle.MemberFailed)).CountX(t.Context())
				require.Equal(t, map[bool]int{true: 0, false: 2}[name == "members"], failed)
				require.Equal(t, name != "instance", l.own.Instance.GetX(t.Context(),
					it.instance).Status == lifecycle.InstanceFailed)
				require.Equal(t, 2, l.own.Orphan.Query().CountX(t.Context()), "what its members may have left")
				if name != "events" {
					l.once(it, "apps.operation.failed")
				}
			})
		}
	}
}

func TestAnEndOfWhichNoStateIsTakenIsCountedAndEndsOnceItIs(t *testing.T) {
	t.Parallel()
	l := newRefusing(t)
	l.work()
	c := l.cluster("never")
	c.refusesState(endings...)
	c.ask(asked{kind: lifecycle.MemberCordon})
	c.says(adapter.StateFailed, "", "")
	var refusal struct {
		State, Why string
		Times      int
		Since      time.Time
	}
	c.until("its refusals are counted beyond the last", func() bool {
		raw := c.operation().EndRefusal
		return len(raw) > 0 && json.Unmarshal(raw, &refusal) == nil && refusal.Times > 3
	})
	require.Equal(t, "COMPENSATING", refusal.State)
	require.Contains(t, refusal.Why, "P0001")
	require.WithinDuration(t, time.Now(), refusal.Since, patience)
	require.Equal(t, lifecycle.OperationRunning, c.operation().State)
	c.takes("state")
	op := c.end()
	require.Equal(t, lifecycle.OperationFailed, op.State)
}

// The adapter has finished, and the success cannot be recorded: a cancel that is requested then gets an answer.
func TestACancelDuringTheFinishingStepIsAnswered(t *testing.T) {
	t.Parallel()
	l := newRefusing(t)
	l.work()
	c := l.cluster("finishing")
	c.refusesState(lifecycle.OperationSucceeded)
	c.ask(asked{kind: lifecycle.MemberCordon})
	c.says(adapter.StateSucceeded, "", "")
	c.until("its end is refused", func() bool { return len(c.operation().EndRefusal) > 0 })
	c.cancel()
	c.until("it is too late", func() bool {
		op := c.operation()
		return op.State == lifecycle.OperationRunning && op.CancelMessage == "too late: the adapter had finished it"
	})
	c.takes("state")
	require.Equal(t, lifecycle.OperationSucceeded, c.end().State)
}
