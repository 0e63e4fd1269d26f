package chaos

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/rig/chaos/adapter"
)

// maxFindings bounds what one rule reports.
const maxFindings = 10

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// judge looks at what is left and answers everything that is wrong.
func (s *Suite) judge(ctx context.Context, watched []*watcher) ([]string, error) {
	conn, err := pgx.Connect(ctx, s.stack.AdminDSN())
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	entries, err := adapter.ReadLedger(s.ledger)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	accepted, wrong := keys(s.accepted), report("during the run", s.found)
	s.mu.Unlock()
	for _, look := range []func() ([]string, error){
		func() ([]string, error) { return judgeRules(ctx, conn, rules) },
		func() ([]string, error) { return judgeRules(ctx, conn, bookRules) },
		func() ([]string, error) { return judgeAccepted(ctx, conn, accepted) },
		func() ([]string, error) { return judgeLedger(ctx, conn, entries) },
		func() ([]string, error) { return s.judgeFollowers(ctx, conn) },
		func() ([]string, error) {
			events, err := table(ctx, conn, s.stack.Demo.ProjectID, s.first)
			return compare(ctx, watched, events), err
		},
	} {
		found, err := look()
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, found...)
	}
	return wrong, s.explain(ctx, conn, wrong)
}

func keys(of map[string]string) []string {
	out := make([]string, 0, len(of))
	for key := range of {
		out = append(out, key)
	}
	return out
}

// judgeRules asks each rule.
func judgeRules(ctx context.Context, on querier, of []rule) ([]string, error) {
	var wrong []string
	for _, one := range of {
		found, err := list(ctx, on, one.query)
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", one.name, err)
		}
		wrong = append(wrong, report(one.name, found)...)
	}
	return wrong, nil
}

// judgeAccepted finds what was accepted and is not in the table: an answer that a crash took back.
func judgeAccepted(ctx context.Context, on querier, accepted []string) ([]string, error) {
	found, err := list(ctx, on,
		`SELECT id FROM unnest($1::text[]) AS told (id) WHERE NOT EXISTS (SELECT FROM operation
			WHERE operation.id = told.id)`, accepted)
	if err != nil {
		return nil, fmt.Errorf("find accepted operations: %w", err)
	}
	return report("what was accepted is in the table", found), nil
}

// judgeFollowers compares what the followers of an operation received with how it ended.
func (s *Suite) judgeFollowers(ctx context.Context, on querier) ([]string, error) {
	found, err := on.Query(ctx, `SELECT id, state FROM operation`)
	if err != nil {
		return nil, fmt.Errorf("read the operations: %w", err)
	}
	states := make(map[string]string)
	var id, state string
	if _, err := pgx.ForEachRow(found, []any{&id, &state}, func() error {
		states[id] = state
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read the operations: %w", err)
	}
	s.mu.Lock()
	followed := slices.Clone(s.followed)
	s.mu.Unlock()
	bounded, cancel := context.WithTimeout(ctx, lastEvent)
	defer cancel()
	var wrong []string
	for _, one := range followed {
		one.await(bounded)
		if told := one.wrong(states[one.operation]); told != "" {
			wrong = append(wrong, told)
		}
	}
	return report("followers of an operation receive its true state", wrong), nil
}

// list is a query of one column of text.
func list(ctx context.Context, on querier, query string, args ...any) ([]string, error) {
	found, err := on.Query(ctx, query, args...)
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
