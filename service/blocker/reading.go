package blocker

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/tx"
)

// scope is which operations and instances a reading is about, as queries over $1, the requested ids.
type scope struct{ operations, instances string }

// The scopes. Operations bring along those that they wait behind.
var (
	ofOperations = scope{
		operations: `SELECT o.id FROM operation o WHERE o.id = ANY ($1) AND o.ended_at IS NULL
			UNION SELECT b.id FROM operation a JOIN allocation l ON l.id = a.allocation_id
			JOIN operation b ON b.instance_id = l.instance_id AND b.ended_at IS NULL
			WHERE a.id = ANY ($1) AND a.ended_at IS NULL`,
		instances: `SELECT i.instance_id FROM operation i WHERE i.id IN ({operations}) AND i.instance_id IS NOT NULL`,
	}
	ofInstances = scope{
		operations: `SELECT o.id FROM operation o WHERE o.instance_id = ANY ($1) AND o.ended_at IS NULL`,
		instances:  `SELECT unnest($1::text[])`,
	}
)

// Bounds of a reading, over all that it is about.
const (
	maxMembers     = "5000"
	maxAllocations = "5000"
	maxOpenTasks   = "5000"
	maxEndedTasks  = "64" // an operation
	maxOrphans     = "1000"
	maxBacklog     = "10000"
	maxEvents      = "200" // of an instance, looked through for the last change of its health
)

// reading is everything that the rules look at, of a batch.
type reading struct {
	scope  scope
	wanted []ids.ID

	now         time.Time
	workers     blocker.Pulse
	backlog     map[ids.ID]int // by tenant
	found       []*openOperation
	instances   map[ids.ID]*instanceRow
	adapters    map[string]*blocker.Adapter
	members     map[ids.ID][]blocker.Member // by instance
	allocations []allocationRow
	open        map[ids.ID][]taskRow // by instance
	ended       map[ids.ID][]taskRow // by operation
	orphans     map[ids.ID][]blocker.Orphan
}

func newReading(of scope, wanted []ids.ID) *reading {
	return &reading{scope: of, wanted: wanted}
}

// sql fills a query's holes: which operations and which instances.
func (r *reading) sql(text string) string {
	text = strings.ReplaceAll(text, "{instances}", r.scope.instances)
	return strings.ReplaceAll(text, "{operations}", r.scope.operations)
}

// queries are the whole batch's, one round trip.
func (r *reading) queries() []tx.Query {
	return []tx.Query{
		r.pulse(), r.backlogs(), each(r.sql(operationsSQL), []any{r.wanted}, r.reset, r.addOperation),
		each(r.sql(instancesSQL), []any{r.wanted, r.scope == ofInstances}, func() {
			r.instances = map[ids.ID]*instanceRow{}
		},
			r.addInstance),
		each(r.sql(adaptersSQL), []any{r.wanted}, func() { r.adapters = map[string]*blocker.Adapter{} }, r.addAdapter),
		each(r.sql(membersSQL), []any{r.wanted}, func() { r.members = map[ids.ID][]blocker.Member{} }, r.addMember),
		each(r.sql(allocationsSQL), []any{r.wanted}, func() { r.allocations = nil }, r.addAllocation),
		each(r.sql(openTasksSQL), []any{r.wanted}, func() { r.open = map[ids.ID][]taskRow{} }, r.addOpenTask),
		each(r.sql(endedTasksSQL), []any{r.wanted}, func() { r.ended = map[ids.ID][]taskRow{} }, r.addEndedTask),
		each(r.sql(orphansSQL), []any{r.wanted}, func() { r.orphans = map[ids.ID][]blocker.Orphan{} }, r.addOrphan),
	}
}

func (r *reading) reset() { r.found = nil }

// each is a query whose rows are added one by one; reset comes first, since a read may start over.
func each(sql string, args []any, reset func(), add func(rows pgx.Rows) error) tx.Query {
	return tx.Query{SQL: sql, Args: args, Scan: func(rows pgx.Rows) error {
		reset()
		for rows.Next() {
			if err := add(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	}}
}

func (r *reading) pulse() tx.Query {
	return each(`SELECT now(), alive, heard FROM platform.workers_heard()`, nil, func() {}, func(rows pgx.Rows) error {
		return rows.Scan(&r.now, &r.workers.Alive, &r.workers.Heard)
	})
}

// backlogsSQL counts the due operations of the tenants whose requested operations are due themselves.
const backlogsSQL = `SELECT b.tenant_id, count(*) FROM (SELECT q.tenant_id FROM operation q
	WHERE q.ended_at IS NULL AND q.claimed_by IS NULL AND q.next_run_at <= now() AND q.tenant_id IN (
		SELECT w.tenant_id FROM operation w WHERE w.id IN ({operations}) AND w.claimed_by IS NULL AND w.next_run_at <= now())
	ORDER BY q.next_run_at, q.id LIMIT ` + maxBacklog + `) b GROUP BY b.tenant_id`

func (r *reading) backlogs() tx.Query {
	return each(r.sql(backlogsSQL), []any{r.wanted}, func() { r.backlog = map[ids.ID]int{} },
		func(rows pgx.Rows) error {
			var tenant ids.ID
			var count int
			err := rows.Scan(&tenant, &count)
			r.backlog[tenant] = count
			return err
		})
}

const adaptersSQL = `SELECT a.name, a.last_error, a.last_seen_at, a.created_at, a.narrow_calls,
	platform.adapter_busy(a.name) FROM adapter a WHERE a.name IN (
	SELECT n.adapter_name FROM operation n WHERE n.id IN ({operations})
	UNION SELECT t.runtime_backend FROM instance t WHERE t.id IN ({instances}))`

func (r *reading) addAdapter(rows pgx.Rows) error {
	a := &blocker.Adapter{}
	if err := rows.Scan(&a.Name, &a.Problem, &a.Seen, &a.Registered, &a.Narrow, &a.Busy); err != nil {
		return err
	}
	a.DialRefused, a.Unauthenticated = dialRefused(a.Problem), unauthenticated(a.Problem)
	r.adapters[a.Name] = a
	return nil
}

// dialRefused reports whether by a reason of adapterclient nothing was dialled: for the dial policy, or for want of
// TLS.
func dialRefused(reason string) bool {
	return strings.Contains(reason, "dial policy does not allow") || strings.Contains(reason, adapterclient.NotCalled)
}

// unauthenticated reports whether a reason of adapterclient is a refusal of the platform's signature.
func unauthenticated(reason string) bool {
	return strings.Contains(reason, "answers UNAUTHENTICATED") || strings.Contains(reason, "answers HTTP 401")
}

const orphansSQL = `SELECT p.instance_id, p.id, p.kind, p.owner, p.message, p.last_error, p.created_at, p.next_try_at
	FROM orphan p
	WHERE p.instance_id IN ({instances}) AND p.resolved_at IS NULL ORDER BY p.instance_id, p.id LIMIT ` + maxOrphans

func (r *reading) addOrphan(rows pgx.Rows) error {
	var of ids.ID
	var o blocker.Orphan
	if err := rows.Scan(&of, &o.ID, &o.Kind, &o.Owner, &o.Message, &o.LastError, &o.Created, &o.Next); err != nil {
		return err
	}
	r.orphans[of] = append(r.orphans[of], o)
	return nil
}
