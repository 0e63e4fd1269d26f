package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/chaos/adapter"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// court is a small database in which every rule holds.
type court struct {
	*platformtest.Kit
	t        *testing.T
	op       *db.Operation
	instance *db.Instance
	member   string
	node     string
	project  string
}

func newCourt(t *testing.T) *court {
	k := platformtest.New(t)
	project := k.Project(k.Tenant())
	_, manifest := k.Launchable(project, "apps")
	node, _ := k.Node(4)
	instance := k.Instance(project, manifest, lifecycle.InstanceRunning, k.Allocation(project, node))
	op := k.Operation(instance, lifecycle.MemberDrain, lifecycle.OperationSucceeded)
	c := &court{Kit: k, t: t, op: op, instance: instance, node: string(node.ID), project: string(project.ID)}
	require.NoError(t, k.Admin.QueryRow(t.Context(), `SELECT id FROM member WHERE instance_id = $1`,
		instance.ID).Scan(&c.member))
	c.must(k.Admin.Exec, `UPDATE operation SET outcome = 'NORMAL', evidence = '{}', targets
		= jsonb_build_array('MEM'::text) WHERE id = 'OP'`)
	c.must(k.Admin.Exec, `INSERT INTO app_instance_event (id, tenant_id, project_id, instance_id, seq, type, app_slug,
		permission_family, operation_id, correlation_id, occurred_at)
		SELECT 'evt_1', tenant_id, project_id, id, 1, 'apps.operation.succeeded', app_slug, permission_family, 'OP', 'c',
		now() FROM instance WHERE id = 'INS'`)
	c.must(k.Admin.Exec, `INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, permission_key,
		action, allowed, correlation_id, created_at)
		SELECT 'aud_1', tenant_id, project_id, requester_kind, requester_id, 'k', 'drainMember', true, correlation_id, now()
		FROM operation WHERE id = 'OP'`)
	return c
}

// must runs a statement about the court's own rows, which it names OP, INS, MEM, NODE and PROJECT.
func (c *court) must(exec func(context.Context, string, ...any) (pgconn.CommandTag, error), statement string) {
	c.t.Helper()
	for name, id := range map[string]string{"'OP'": string(c.op.ID), "'INS'": string(c.instance.ID), "'MEM'": c.member,
		"'NODE'": c.node, "'PROJECT'": c.project} {
		statement = strings.ReplaceAll(statement, name, "'"+id+"'")
	}
	_, err := exec(c.t.Context(), statement)
	require.NoError(c.t, err)
}

// broken does one thing that must not be, in a transaction that is rolled back, and looks.
func (c *court) broken(look func(on querier), statements ...string) {
	c.t.Helper()
	transaction, err := c.Admin.Begin(c.t.Context())
	require.NoError(c.t, err)
	defer func() { require.NoError(c.t, transaction.Rollback(context.Background())) }()
	// The database's triggers and foreign keys, which would not let this come to be, are off.
	c.must(transaction.Exec, `SET LOCAL session_replication_role = replica`)
	for _, statement := range statements {
		c.must(transaction.Exec, statement)
	}
	look(transaction)
}

const (
	aTask = `INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, operation_id, kind,
		spec, spec_digest, state, timeout_seconds, idempotency_key,
		created_at, started_at, ended_at) SELECT 'tsk_1', tenant_id, project_id, instance_id, 'MEM', 'NODE', %s, '%s', '{}',
		'', '%s', 60, 'k', now(), now(), %s FROM operation WHERE id = 'OP'`
	anOrphan = `INSERT INTO orphan (id, tenant_id, project_id, kind, instance_id, operation_id, member_id, owner,
		message,
		next_try_at, created_at)
		SELECT 'orp_1', tenant_id, project_id, 'NODE_RESIDUE', instance_id, id, 'MEM', %s, 'left', now(), now()
		FROM operation WHERE id = 'OP'`
	anEvent = `INSERT INTO app_instance_event (id, tenant_id, project_id, instance_id, seq, xid, type, app_slug,
		permission_family, operation_id, correlation_id, occurred_at, generation)
		SELECT 'evt_2', tenant_id, project_id, instance_id, %d, %d, '%s', app_slug, permission_family, %s, 'c', now(),
		generation FROM app_instance_event WHERE id = 'evt_1'`
)

func TestEachRuleNamesWhatBreaksIt(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	wrong, err := judgeRules(t.Context(), c.Admin, rules)
	require.NoError(t, err)
	require.Empty(t, wrong, "nothing is broken yet")
	breaks := map[string][]string{
		"every accepted operation has ended": {`UPDATE operation SET ended_at = NULL, state = 'RUNNING'
			WHERE id = 'OP'`},
		"every operation ended once on its timeline": {fmt.Sprintf(anEvent, 2, 1<<40, "apps.operation.succeeded",
			"operation_id")},
		"its timeline says how it ended": {`UPDATE app_instance_event SET type = 'apps.operation.failed'`},
		"timelines have no gap": {fmt.Sprintf(anEvent, 3, 1<<40, "apps.instance.healthy",
			"NULL")},
		"a project's feed keeps the order of each timeline": {fmt.Sprintf(anEvent, 2, 1,
			"apps.instance.healthy", "NULL")},
		"no step of an ended operation is open": {`INSERT INTO operation_step (id, tenant_id, project_id, operation_id,
			name,
			ordinal, state)
			SELECT 'stp_1', tenant_id, project_id, id, 'dispatch', 0, 'RUNNING' FROM operation WHERE id = 'OP'`},
		"no task outlives its operation": {fmt.Sprintf(aTask, "id", "RUN", "RUNNING", "NULL")},
		"no worker has a claim":          {`UPDATE operation SET claimed_by = 'wrk_1' WHERE id = 'OP'`},
		"an unproved removal is listed": {`UPDATE member SET status = 'REMOVED' WHERE id = 'MEM'`,
			fmt.Sprintf(aTask, "NULL", "RUN", "SUCCEEDED", "now()")},
		"what ended without proof is listed": {`UPDATE operation SET outcome = 'UNVERIFIED'
			WHERE id = 'OP'`},
		"what ended by force states it":                    {`UPDATE operation SET force = true WHERE id = 'OP'`},
		"nothing is left behind once every node is online": {fmt.Sprintf(anOrphan, "'node'")},
		"every orphan has an owner and a message":          {fmt.Sprintf(anOrphan, "''")},
		"a stopped instance has no member":                 {`UPDATE instance SET status = 'STOPPED' WHERE id = 'INS'`},
		"no allocation of a released instance is bound": {`UPDATE instance SET released_at = now()
			WHERE id = 'INS'`},
		"success has evidence":                        {`UPDATE operation SET evidence = NULL WHERE id = 'OP'`},
		"a failure has its reason":                    {`UPDATE operation SET state = 'FAILED' WHERE id = 'OP'`},
		"a cancel was requested or superseded":        {`UPDATE operation SET state = 'CANCELED' WHERE id = 'OP'`},
		"only what ended badly is retried":            {`UPDATE operation SET retry_of = id WHERE id = 'OP'`},
		"every accepted change is in the audit, once": {`DELETE FROM audit_entry`},
		"every cancel is in the audit": {`UPDATE operation SET cancel_requested_at = now()
			WHERE id = 'OP'`},
	}
	require.Len(t, breaks, len(rules), "a rule without its breach")
	for _, one := range rules {
		c.broken(func(on querier) {
			found, err := judgeRules(t.Context(), on, []rule{one})
			require.NoError(t, err, one.name)
			require.Len(t, found, 1, one.name)
			require.True(t, strings.HasPrefix(found[0], one.name+": "), found[0])
		}, breaks[one.name]...)
	}
}

func TestAnAuditThatSaysSomethingTwiceIsNamed(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	c.broken(func(on querier) {
		found, err := judgeRules(t.Context(), on, rules)
		require.NoError(t, err)
		require.Equal(t, []string{"every accepted change is in the audit, once: " + string(c.op.ID) +
			" MEMBER_DRAIN has 2"},
			found)
	}, `INSERT INTO audit_entry SELECT (jsonb_populate_record(a, '{"id":"aud_2"}')).* FROM audit_entry a`)
}

func TestTheLedgerIsHeldAgainstTheTables(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	id, taker, at := string(c.op.ID), c.Operation(c.instance, lifecycle.MemberRemove, lifecycle.OperationSucceeded),
		c.op.EndedAt.Add(-time.Second)
	line := func(operation string, at time.Time) string {
		return fmt.Sprintf("%s member.drain %d .", operation, at.UnixMilli())
	}
	judged := func(on querier, lines ...string) []string {
		found, err := judgeLedger(t.Context(), on, []adapter.Entry{{Operation: string(taker.ID), Member: c.member,
			Lines: lines}})
		require.NoError(t, err)
		return found
	}
	require.Empty(t, judged(c.Admin, line(id, at)))
	require.Empty(t, judged(c.Admin, line(id, at), "op_x member.dr"), "a full disk took a part of a line")
	only := func(found []string, prefix string) {
		t.Helper()
		require.Len(t, found, 1)
		require.True(t, strings.HasPrefix(found[0], prefix), found[0])
	}
	only(judged(c.Admin), "the adapter's ledger is empty")
	only(judged(c.Admin, line(id, at), "more words than it has ."), "the ledger can be read")
	only(judged(c.Admin, line(id, at), line(id, at.Add(time.Millisecond))), "nothing was done twice")
	only(judged(c.Admin, line(id, at), line(string(ids.New(ids.Operation)), at)), "only what was accepted was done")
	only(judged(c.Admin, line(id, at.Add(time.Hour))), "nothing was done after its operation's end")
	only(judged(c.Admin, line(string(taker.ID), at)), "what succeeded was done")
	c.broken(func(on querier) { only(judged(on, line(id, at)), "an operation that was never sent did nothing") },
		`UPDATE operation SET dispatch_attempt = 0 WHERE id = 'OP'`)
	c.broken(func(on querier) {
		only(judged(on, line(id, at)), "what a member had done was collected when it was removed")
	}, fmt.Sprintf(aTask, "NULL", "RUN", "SUCCEEDED", "now()"), `UPDATE node_task SET operation_id = 'op_other'`,
		`UPDATE member SET status = 'REMOVED' WHERE id = 'MEM'`,
		`UPDATE operation SET kind = 'MEMBER_REPLACE' WHERE id = 'OP'`)
}

func TestWhatWasLetBeginBeforeItsEndMayGoOn(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	taker := c.Operation(c.instance, lifecycle.MemberRemove, lifecycle.OperationSucceeded)
	late := fmt.Sprintf("%s member.drain %d .", c.op.ID, c.op.EndedAt.Add(3*time.Second).UnixMilli())
	for started, lawful := range map[string]bool{"o.ended_at + interval '2 s'": true, "NULL": false,
		"o.ended_at + interval '3.5 s'": false} {
		c.broken(func(on querier) {
			found, err := judgeLedger(t.Context(), on, []adapter.Entry{{Operation: string(taker.ID), Member: c.member,
				Lines: []string{late}}})
			require.NoError(t, err)
			require.Equal(t, lawful, len(found) == 0, "%s: %v", started, found)
		}, fmt.Sprintf(aTask, "id", "RUN", "SUCCEEDED", "now()"), `UPDATE operation SET state = 'CANCELED'
			WHERE id = 'OP'`,
			`UPDATE node_task k SET cancel_requested = true, ended_at = o.ended_at + interval '4 s',
				started_at = `+started+
				` FROM operation o WHERE o.id = k.operation_id`)
	}
}

func TestASubscriberThatWasToldOtherwiseIsNamed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	events := map[string][]string{"ins_1": {"a", "b", "c"}, "": {"b", "c"}}
	require.Empty(t, compare(ctx, []*watcher{{instance: "ins_1", seen: []string{"a", "b", "c"}},
		{seen: []string{"b", "c"}}}, events))
	for name, w := range map[string]*watcher{
		"a gap": {seen: []string{"a", "c"}}, "a duplicate": {seen: []string{"a", "b", "b", "c"}},
		"another order":      {seen: []string{"a", "c", "b"}},
		"an end too early":   {seen: []string{"a", "b"}},
		"a feed that failed": {seen: []string{"a"}, failed: errors.New("closed")},
	} {
		w.name, w.instance = name, "ins_1"
		found := compare(ctx, []*watcher{w}, events)
		require.Len(t, found, 1, name)
		require.Contains(t, found[0], name)
	}
}

func TestAFollowerThatWasToldOtherwiseIsNamed(t *testing.T) {
	t.Parallel()
	running, done := gql.OperationStateRunning, gql.OperationStateSucceeded
	require.Empty(t, (&follower{states: []gql.OperationState{running, done}, percent: []int{5, 100},
		ended: true}).wrong("SUCCEEDED"))
	for what, f := range map[string]*follower{
		"went back": {states: []gql.OperationState{running, running, done}, percent: []int{5, 0, 100},
			ended: true},
		"after it":        {states: []gql.OperationState{done, running}, percent: []int{100, 100}, ended: true},
		"is SUCCEED":      {states: []gql.OperationState{running}, percent: []int{5}, ended: true},
		"ended fals":      {states: []gql.OperationState{done}, percent: []int{100}},
		"was reported []": {ended: true},
	} {
		require.Contains(t, f.wrong("SUCCEEDED"), what)
	}
}

func TestAnAcceptedOperationThatIsNotInTheTableIsNamed(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	found, err := judgeAccepted(t.Context(), c.Admin, []string{string(c.op.ID), "op_lost"})
	require.NoError(t, err)
	require.Equal(t, []string{"what was accepted is in the table: op_lost"}, found)
}

func TestTheTableIsReadInTheOrdersOfItsFeeds(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	c.broken(func(on querier) {
		events, err := table(t.Context(), on, c.project, "evt_1")
		require.NoError(t, err)
		require.Equal(t, map[string][]string{string(c.instance.ID): {"evt_1", "evt_2"}, "": {"evt_2"}}, events)
	}, fmt.Sprintf(anEvent, 2, 1<<40, "apps.instance.healthy", "NULL"))
}
