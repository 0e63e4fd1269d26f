package workers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// endings are the states whose transactions end an operation or turn it back.
var endings = []lifecycle.OperationState{lifecycle.OperationSucceeded, lifecycle.OperationFailed,
	lifecycle.OperationCanceled, lifecycle.OperationCompensating}

// owner runs statements as the owner of the tables.
func (l *lab) owner(sql string) {
	l.Helper()
	owner, err := pgx.Connect(l.Context(), l.pg.OwnerDSN())
	require.NoError(l.TB, err)
	defer func() { _ = owner.Close(context.Background()) }()
	_, err = owner.Exec(l.Context(), sql)
	require.NoError(l.TB, err)
}

// trips makes the database refuse, the first times for each move, the transactions that end an operation or turn it
// back.
func (l *lab) trips(times int) {
	l.Helper()
	for _, move := range endingMoves() {
		l.owner(`CREATE SEQUENCE ` + move.sequence())
	}
	l.owner(fmt.Sprintf(`GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO PUBLIC;
		CREATE FUNCTION trip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('trip_' || lower(OLD.state) || '_' || lower(NEW.state)) <= %d THEN RAISE EXCEPTION 'tripped at %%',
			NEW.state; END IF;
			RETURN NEW; END $$;
		CREATE TRIGGER trip BEFORE UPDATE ON operation FOR EACH ROW
			WHEN (NEW.state <> OLD.state AND NEW.state IN (%s)) EXECUTE FUNCTION trip()`, times, quoted(endings...)))
}

func quoted(states ...lifecycle.OperationState) string {
	var out []string
	for _, state := range states {
		out = append(out, "'"+string(state)+"'")
	}
	return strings.Join(out, ", ")
}

// transition is a move of an operation whose transaction ends it or turns it back.
type transition struct{ from, to lifecycle.OperationState }

func (m transition) sequence() string {
	return strings.ToLower("trip_" + string(m.from) + "_" + string(m.to))
}

// endingMoves are all of them, by the table of states.
func endingMoves() (all []transition) {
	for _, move := range lifecycle.Transitions() {
		if move.Machine == "operation" && slices.Contains(endings, lifecycle.OperationState(move.To)) {
			all = append(all, transition{lifecycle.OperationState(move.From), lifecycle.OperationState(move.To)})
		}
	}
	return all
}

// tripped is how often a move was tried.
func (l *lab) tripped(m transition) (times int) {
	l.Helper()
	require.NoError(l.TB, l.pool().QueryRow(l.Context(),
		`SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM `+m.sequence()).Scan(&times))
	return times
}

// closed requires that no step of the operation is open after its end.
func (c *cluster) closed() {
	c.Helper()
	for _, step := range c.steps(c.op) {
		require.NotContains(c.TB, []lifecycle.StepState{lifecycle.StepPending, lifecycle.StepRunning,
			lifecycle.StepUndoing},
			step.State, step.Name)
	}
}

func TestEveryKindFailsThoughEachTransactionOfItsEndFailsTwice(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *cluster, r rule) {
		c.trips(2)
		c.ask(asked{kind: r.kind})
		c.says(adapter.StateFailed, "", "")
		op := c.end()
		require.Equal(t, r.failed, c.world(), op.ErrorMessage)
		c.closed()
		c.once(c.launched, "apps.operation.failed")
	})
}

func TestEveryKindSucceedsThoughTheTransactionOfItsEndFailsTwice(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *cluster, r rule) {
		c.trips(2)
		c.ask(asked{kind: r.kind})
		c.says(adapter.StateSucceeded, r.second, r.newcomer)
		op := c.end()
		require.Equal(t, r.good, c.world(), op.ErrorMessage)
		c.closed()
		c.once(c.launched, r.events...)
	})
}

func TestEveryKindIsCanceledThoughEachTransactionOfItsEndFailsTwice(t *testing.T) {
	t.Parallel()
	eachOf(t, cancelable, func(t *testing.T, c *cluster, r rule) {
		c.trips(2)
		c.ask(asked{kind: r.kind})
		c.script.dispatched(string(c.op))
		c.cancel()
		op := c.end()
		require.Equal(t, r.canceled, c.world(), op.ErrorMessage)
		c.closed()
	})
}

// A launch has nothing that is taken back: its steps were once stored as skipped by the claim's release after the
// transaction of its end had failed, and the next claim found every step over and called it running.
func TestACanceledLaunchIsNotCalledRunningAfterTheTransactionOfItsEndFailed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("mistake")
	l.trips(2)
	l.work()
	it := l.launch(l.world("mistake", s.url), time.Minute)
	s.dispatched(string(it.create))
	l.stop(it)
	op := l.ended(it.create)
	require.Equal(t, []any{lifecycle.OperationCanceled, "CANCELED"}, []any{op.State, op.ErrorCode})
	require.Equal(t, lifecycle.InstanceFailed, l.own.Instance.GetX(t.Context(), it.instance).Status)
	l.once(it, "apps.instance.failed", "apps.operation.canceled")
}

// What the platform can never record as a success does not stay open for ever: it fails at its deadline and says why.
func TestAnEndThatTheDatabaseRefusesForGoodFailsAtTheDeadline(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("poison")
	l.refuses("success", "BEFORE UPDATE ON operation", `NEW.state = 'SUCCEEDED'`)
	l.work()
	it := l.launch(l.world("poison", s.url), 8*time.Second)
	s.succeed(string(it.create), s.dispatched(string(it.create))[0].Attempt)
	op := l.ended(it.create)
	require.Equal(t, []any{lifecycle.OperationFailed, "INTERNAL", "platform"},
		[]any{op.State, op.ErrorCode, op.ErrorOwner})
	require.Contains(t, op.ErrorMessage, "could not record")
	require.Equal(t, lifecycle.InstanceFailed, l.own.Instance.GetX(t.Context(), it.instance).Status)
}
