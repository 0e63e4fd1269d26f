package workers_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// stumbles makes the database refuse, once for every step, the transaction that records the step's end: what the step
// did outside has happened, and no one knows.
func (c *cluster) stumbles() {
	c.Helper()
	owner, err := pgx.Connect(c.Context(), c.pg.OwnerDSN())
	require.NoError(c.TB, err)
	defer func() { _ = owner.Close(context.Background()) }()
	for _, step := range []string{"prepare", "dispatch", "await", "verify", "drained", "residue", "finish", "withdraw",
		"undo_members"} {
		_, err = owner.Exec(c.Context(), `CREATE SEQUENCE stumble_`+step+`; GRANT USAGE ON SEQUENCE stumble_`+step+
			` TO PUBLIC`)
		require.NoError(c.TB, err)
	}
	_, err = owner.Exec(c.Context(), `CREATE FUNCTION stumble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('stumble_' || NEW.name) = 1 THEN RAISE EXCEPTION 'stumbled at %', NEW.name; END IF;
			RETURN NEW; END $$;
		CREATE TRIGGER stumble BEFORE UPDATE ON operation_step FOR EACH ROW
			WHEN (NEW.state = 'SUCCEEDED' AND OLD.state <> 'SUCCEEDED') EXECUTE FUNCTION stumble()`)
	require.NoError(c.TB, err)
}

// stumbled requires that each step's end was refused once.
func (c *cluster) stumbled() {
	c.Helper()
	owner, err := pgx.Connect(c.Context(), c.pg.OwnerDSN())
	require.NoError(c.TB, err)
	defer func() { _ = owner.Close(context.Background()) }()
	for _, step := range c.steps(c.op) {
		var calls int
		require.NoError(c.TB, owner.QueryRow(c.Context(), `SELECT last_value FROM stumble_`+step.Name).Scan(&calls))
		if step.State == lifecycle.StepSucceeded {
			require.GreaterOrEqual(c.TB, calls, 2, step.Name)
		}
	}
}

func TestEveryKindSurvivesAFailureAfterEachOfItsSteps(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *cluster, r rule) {
		c.stumbles()
		c.ask(asked{kind: r.kind})
		c.says(adapter.StateSucceeded, r.second, r.newcomer)
		op := c.end()
		require.Equal(t, r.good, c.world(), op.ErrorMessage)
		c.stumbled()
		c.once(c.launched, r.events...)
		c.script.oneEffect(string(c.op))
	})
}

func TestEveryKindIsTakenBackThoughEachStepOfThatFailsOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *cluster, r rule) {
		c.stumbles()
		c.ask(asked{kind: r.kind})
		c.says(adapter.StateFailed, "", "")
		op := c.end()
		require.Equal(t, r.failed, c.world(), op.ErrorMessage)
		c.stumbled()
		c.once(c.launched, "apps.operation.failed")
	})
}

// The worker that has committed a dispatch is dropped before it receives the answer: the next one sends the same
// dispatch, with the same attempt.
func TestEveryKindIsTakenOverBetweenItsCommitAndTheCall(t *testing.T) {
	t.Parallel()
	for _, r := range rules {
		t.Run(string(r.kind), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			drop := l.work()
			c := l.cluster("taken")
			entered, leave := make(chan struct{}, 8), make(chan struct{})
			defer close(leave)
			c.script.with(func() {
				first := true
				c.script.onPut = func(adapter.Dispatch) (int, any) {
					if !first {
						return 0, nil
					}
					first = false
					c.script.mu.Unlock()
					entered <- struct{}{}
					<-leave
					c.script.mu.Lock()
					return http.StatusInternalServerError, adapter.ErrorBody{Code: "LATE", Message: "never heard"}
				}
			})
			c.ask(asked{kind: r.kind})
			<-entered
			drop()
			require.Equal(t, 1, c.operation().DispatchAttempt, "it was committed before the call")
			l.work()
			c.says(adapter.StateSucceeded, r.second, r.newcomer)
			op := c.end()
			require.Equal(t, r.good, c.world(), op.ErrorMessage)
			require.Equal(t, 1, op.DispatchAttempt)
			c.script.oneEffect(string(c.op))
		})
	}
}

func TestEveryKindDoesItsWorkOnceThoughTheAdaptersReplyIsLost(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *cluster, r rule) {
		lost := false
		c.script.with(func() {
			c.script.onPut = func(d adapter.Dispatch) (int, any) {
				if lost {
					return 0, nil
				}
				lost = true
				c.script.puts = append(c.script.puts, d)
				c.script.sayLocked(adapter.Status{OperationID: d.OperationID, Attempt: d.Attempt,
					State: adapter.StateRunning})
				return http.StatusBadGateway, adapter.ErrorBody{Code: "LOST", Message: "the reply is lost"}
			}
		})
		c.ask(asked{kind: r.kind})
		c.until("it is sent again", func() bool { return len(c.script.dispatched(string(c.op))) > 1 })
		c.says(adapter.StateSucceeded, r.second, r.newcomer)
		op := c.end()
		require.Equal(t, r.good, c.world(), op.ErrorMessage)
		c.script.oneEffect(string(c.op))
	})
}
