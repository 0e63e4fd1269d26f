package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/internal/chaos/adapter"
)

// maxFindings bounds what one rule reports.
const maxFindings = 10

// rule is something that must hold when all is over: a query that finds what breaks it.
type rule struct{ name, query string }

// rules are asked of the database itself, as its superuser.
var rules = []rule{
	{"every accepted operation has ended", `SELECT id || ' ' || kind || ' ' || state FROM operation WHERE ended_at IS NULL`},
	{"every operation ended once on its timeline", `SELECT o.id || ' ' || o.kind || ' ' || o.state || ' ' || count(e.id) FROM operation o
		LEFT JOIN app_instance_event e ON e.operation_id = o.id
			AND e.type IN ('apps.operation.succeeded', 'apps.operation.failed', 'apps.operation.canceled')
		WHERE o.instance_id IS NOT NULL GROUP BY o.id HAVING count(e.id) <> 1`},
	{"its timeline says how it ended", `SELECT o.id || ' ' || o.state || ' ' || e.type FROM operation o JOIN app_instance_event e ON e.operation_id = o.id
		AND e.type IN ('apps.operation.succeeded', 'apps.operation.failed', 'apps.operation.canceled')
		WHERE e.type <> 'apps.operation.' || lower(o.state)`},
	{"timelines have no gap", `SELECT instance_id || ' ' || count(*) || ' of ' || max(seq) FROM app_instance_event
		GROUP BY instance_id HAVING count(*) <> max(seq) OR min(seq) <> 1`},
	{"no step of an ended operation is open", `SELECT s.operation_id || ' ' || s.name || ' ' || s.state FROM operation_step s
		JOIN operation o ON o.id = s.operation_id WHERE o.ended_at IS NOT NULL AND s.state IN ('PENDING', 'RUNNING', 'UNDOING')`},
	{"nothing is held by a worker", `SELECT id || ' by ' || claimed_by FROM operation WHERE claimed_by IS NOT NULL`},
	{"what was not proved gone is listed", `SELECT m.id || ' on ' || coalesce(m.node_id, '-') FROM member m
		WHERE m.status = 'REMOVED' AND m.node_id IS NOT NULL
		AND EXISTS (SELECT FROM node_task t WHERE t.member_id = m.id AND t.kind <> 'RESIDUE' AND t.started_at IS NOT NULL)
		AND NOT EXISTS (SELECT FROM node_task t WHERE t.member_id = m.id AND t.kind = 'RESIDUE' AND t.state = 'SUCCEEDED')
		AND NOT EXISTS (SELECT FROM orphan o WHERE o.member_id = m.id)`},
	{"no allocation of a released instance is bound", `SELECT a.id || ' by ' || i.id FROM allocation a JOIN instance i ON i.id = a.instance_id
		WHERE i.released_at IS NOT NULL AND NOT EXISTS (SELECT FROM orphan o WHERE o.allocation_id = a.id AND o.resolved_at IS NULL)`},
	{"success was earned", `SELECT id || ' ' || kind FROM operation WHERE state = 'SUCCEEDED' AND (evidence IS NULL OR outcome IS NULL)`},
}

// judge looks at what is left and answers everything that is wrong.
func (s *Suite) judge(ctx context.Context, watched []*watcher) ([]string, error) {
	conn, err := pgx.Connect(ctx, s.stack.AdminDSN())
	if err != nil {
		return nil, fmt.Errorf("look into the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var wrong []string
	for _, one := range rules {
		found, err := strangers(ctx, conn, one.query)
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", one.name, err)
		}
		wrong = append(wrong, report(one.name, found)...)
	}
	for _, look := range []func(context.Context, *pgx.Conn) ([]string, error){s.judgeAudit, s.judgeLedger} {
		found, err := look(ctx, conn)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, found...)
	}
	found, err := s.judgeWatchers(ctx, conn, watched)
	return append(wrong, found...), err
}

func strangers(ctx context.Context, conn *pgx.Conn, query string, args ...any) ([]string, error) {
	found, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowTo[string])
}

// report prefixes findings with their rule, at most maxFindings of them.
func report(name string, found []string) []string {
	var out []string
	for i, one := range found {
		if i == maxFindings {
			return append(out, fmt.Sprintf("%s: and %d more", name, len(found)-maxFindings))
		}
		out = append(out, name+": "+one)
	}
	return out
}

// judgeAudit finds accepted operations without their one entry in the audit.
func (s *Suite) judgeAudit(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	s.mu.Lock()
	operations := make([]string, 0, len(s.accepted))
	for id := range s.accepted {
		operations = append(operations, id)
	}
	s.mu.Unlock()
	found, err := strangers(ctx, conn, `SELECT o.id || ' ' || o.kind || ' has ' || count(a.id) FROM operation o
		LEFT JOIN audit_entry a ON a.correlation_id = o.correlation_id AND a.allowed AND a.project_id = o.project_id
		WHERE o.id = ANY ($1) GROUP BY o.id HAVING count(a.id) < 1`, operations)
	if err != nil {
		return nil, fmt.Errorf("look at the audit: %w", err)
	}
	return report("every accepted change is in the audit", found), nil
}

// judgeLedger finds what was done twice, and successes that did nothing.
func (s *Suite) judgeLedger(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	entries, err := adapter.ReadLedger(s.ledger)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return []string{"the adapter's ledger is empty: nothing is shown"}, nil
	}
	var twice, missing []string
	for _, entry := range entries {
		sorted := slices.Sorted(slices.Values(entry.Lines))
		if len(slices.Compact(slices.Clone(sorted))) != len(sorted) {
			twice = append(twice, entry.Member+": "+strings.Join(entry.Lines, ", "))
		}
		lost, err := strangers(ctx, conn, `SELECT $1 || ' lacks ' || o.id || ' ' || o.kind FROM operation o
			WHERE o.state = 'SUCCEEDED' AND o.targets ? $1 AND o.kind IN ('MEMBER_DRAIN', 'MEMBER_CORDON', 'MEMBER_UNCORDON', 'MEMBER_LABEL', 'MEMBERS_ADD')
			AND o.ended_at < (SELECT created_at FROM operation WHERE id = $2) AND NOT EXISTS (SELECT FROM unnest($3::text[]) line WHERE line LIKE o.id || ' %')`,
			entry.Member, entry.Operation, entry.Lines)
		if err != nil {
			return nil, fmt.Errorf("look at the ledger: %w", err)
		}
		missing = append(missing, lost...)
	}
	return append(report("nothing was done twice", twice), report("what succeeded was done", missing)...), nil
}

// judgeWatchers compares what every subscriber was told with the table, once the last event has come.
func (s *Suite) judgeWatchers(ctx context.Context, conn *pgx.Conn, watched []*watcher) ([]string, error) {
	events, err := s.table(ctx, conn)
	if err != nil {
		return nil, err
	}
	var wrong []string
	for _, w := range watched {
		want := events[w.instance]
		if !w.await(ctx, want) {
			w.mu.Lock()
			wrong = append(wrong, fmt.Sprintf("%s: %d events told of %d, first difference at %d, %v", w.name, len(w.seen), len(want), difference(w.seen, want), w.failed))
			w.mu.Unlock()
		}
	}
	return report("every subscriber saw the table", wrong), nil
}

// await waits a little for events that are on their way.
func (w *watcher) await(ctx context.Context, want []string) bool {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		w.mu.Lock()
		same, over := slices.Equal(w.seen, want), len(w.seen) > len(want) || w.failed != nil
		w.mu.Unlock()
		if same || over {
			return same
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

func difference(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
