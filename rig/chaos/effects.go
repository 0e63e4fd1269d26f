package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/rig/chaos/adapter"
)

// effectsSQL puts what the ledger says beside what the tables say. $1 to $5 are its effects, column by
// column: the member, the operation that took the member away and wrote the entry, the operation that
// had the effect, its kind, and the time.
const effectsSQL = `WITH effect AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[],
	$5::timestamptz[]) AS e (member, taken, operation, kind, at)),
	target AS (SELECT o.id AS operation, t.member FROM operation o, jsonb_array_elements_text(o.targets) AS t (member)) `

// effectRules are what must hold between the ledger and the tables. The ledger's clock is that of the same machine, and
// the tables say when a transaction began: a difference of a second is allowed. An operation that removed a member and
// then failed may have collected what the next one does not find any more. A task that began before a cancel or a
// failure may go on afterwards, as long as its row states so; none may begin after. Whether it began before is read
// from the table too: after the end's commit no begin is accepted. That end's transaction may have begun up to 30 s
// earlier, which is the longest that one lasts.
var effectRules = []rule{
	{"nothing was done twice", `SELECT member || ' ' || operation || ' ' || kind || ' ' || count(DISTINCT at)
		FROM effect
		GROUP BY member, operation, kind HAVING count(DISTINCT at) > 1`},
	{"only what was accepted was done",
		`SELECT member || ' ' || operation FROM effect WHERE NOT EXISTS (SELECT FROM operation o
			WHERE o.id = effect.operation)`},
	{"an operation that was never sent did nothing",
		`SELECT member || ' ' || o.id || ' ' || o.state FROM effect JOIN operation o ON o.id = effect.operation
			WHERE o.dispatch_attempt = 0`},
	{"nothing was done after its operation's end", `SELECT member || ' ' || o.id || ' ' || o.kind || ' ' || o.state ||
		' '
		|| (at - o.ended_at)::text
		FROM effect JOIN operation o ON o.id = effect.operation WHERE at > o.ended_at + interval '1 second'
			AND NOT (o.state <> 'SUCCEEDED' AND EXISTS (SELECT FROM node_task t WHERE t.operation_id = o.id
			AND t.member_id = effect.member
				AND t.cancel_requested AND t.started_at <= least(at, o.ended_at + interval '30 seconds')
				AND t.ended_at > o.ended_at))`},
	{"what succeeded was done", `SELECT gone.member || ' lacks ' || o.id || ' ' || o.kind
		FROM (SELECT DISTINCT member, taken FROM effect) AS gone
		JOIN target ON target.member = gone.member JOIN operation o ON o.id = target.operation AND o.state = 'SUCCEEDED'
			AND o.kind IN ('MEMBER_DRAIN', 'MEMBER_CORDON', 'MEMBER_UNCORDON', 'MEMBER_LABEL', 'MEMBERS_ADD', 'MEMBER_RECOVER')
		WHERE o.ended_at < (SELECT created_at FROM operation WHERE id = gone.taken)
			AND NOT EXISTS (SELECT FROM effect e WHERE e.member = gone.member AND e.operation = o.id)`},
	{"what a member had done was collected when it was removed", `SELECT m.id || ' by ' || o.id FROM operation o
		JOIN target ON target.operation = o.id
		JOIN member m ON m.id = target.member
		WHERE o.kind IN ('MEMBER_REMOVE', 'MEMBER_REPLACE') AND o.state = 'SUCCEEDED' AND o.outcome = 'NORMAL'
		AND m.status = 'REMOVED'
			AND EXISTS (SELECT FROM node_task t WHERE t.member_id = m.id AND t.kind = 'RUN' AND t.state = 'SUCCEEDED'
			AND t.operation_id <> o.id)
			AND NOT EXISTS (SELECT FROM effect JOIN operation t ON t.id = effect.taken WHERE effect.member = m.id
			AND (t.id = o.id OR t.state <> 'SUCCEEDED'))`},
}

// judgeLedger holds the adapter's ledger against the tables. An empty ledger shows nothing, and is
// reported.
func judgeLedger(ctx context.Context, on querier, entries []adapter.Entry) ([]string, error) {
	var columns [4][]string
	var times []time.Time
	var wrong []string
	for _, entry := range entries {
		for _, line := range entry.Lines {
			effect, err := adapter.ParseEffect(line)
			if errors.Is(err, adapter.ErrTorn) {
				continue
			}
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("the ledger can be read: %s: %v", entry.Member, err))
				continue
			}
			for i, value := range []string{entry.Member, entry.Operation, effect.Operation, effect.Kind} {
				columns[i] = append(columns[i], value)
			}
			times = append(times, effect.At)
		}
	}
	if len(times) == 0 {
		return append(wrong, "the adapter's ledger is empty: it proves nothing"), nil
	}
	for _, one := range effectRules {
		found, err := list(ctx, on, effectsSQL+one.query, columns[0], columns[1], columns[2], columns[3], times)
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", one.name, err)
		}
		wrong = append(wrong, report(one.name, found)...)
	}
	return wrong, nil
}
