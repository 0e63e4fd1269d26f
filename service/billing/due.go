package billing

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// MaxTenants is how many tenants Tenants lists at once.
const MaxTenants = 200

// Tenants lists the tenants with projects for which Advance or Expire is due: no account, no present month, or expired
// credit that is not booked. In order of id, at most MaxTenants after one; not the platform's own, which has no bill.
func Tenants(ctx context.Context, t *tx.Tx, after ids.ID) ([]ids.ID, error) {
	return many(ctx, t, pgx.RowTo[ids.ID], `SELECT t.id FROM (SELECT DISTINCT tenant_id AS id FROM project
		WHERE tenant_id > $1) t
		WHERE t.id IS DISTINCT FROM (SELECT platform.own_tenant()) AND (NOT EXISTS (SELECT FROM billing_account a WHERE a.tenant_id = t.id)
			OR NOT EXISTS (SELECT FROM billing_period p WHERE p.tenant_id = t.id AND p.ends_at > $2)
			OR EXISTS (SELECT FROM credit_grant g WHERE g.tenant_id = t.id
			AND `+expiredSQL+` AND EXISTS (SELECT FROM ledger_entry e
				WHERE e.grant_id = g.id AND e.account = 'CREDIT' HAVING sum(e.amount) <> 0)))
		ORDER BY t.id LIMIT $3`, after, t.Now, MaxTenants)
}

// Due is a period that has something to do.
type Due struct {
	Period ids.ID
	// New is true when usage or prices were written for it; otherwise only its time has come.
	New bool

	at   mark      // up to which commits the look has seen
	when time.Time // when the look was
}

// Look is a search for what is due since the last look that was done.
type Look struct {
	Due []Due

	at   mark
	when time.Time
}

// ErrBusy says that another process has a period in hand.
var ErrBusy = errors.New("another process is working on the period")

const (
	// freshSQL reads usage that was not committed before the last look, or reaches beyond it, by the periods in which
	// it begins and ends. A look at a month of all usage goes through every record, so that the months of each are
	// found among the periods' own bounds, and not by the calendar.
	freshSQL = `SELECT tenant_id, min(from_at) AS starts, max(to_at) AS ends FROM usage_record
		WHERE basis <> 'SHOWBACK' AND from_at <= $4 AND (recorded_generation > $1
			OR recorded_generation = $1 AND recorded_xid::text::bigint >= $2::text::bigint OR to_at >= $3)
		GROUP BY tenant_id, width_bucket(from_at, (` + boundsSQL + `)), width_bucket(to_at, (` + boundsSQL + `))`
	boundsSQL = `SELECT array_agg(starts_at ORDER BY starts_at) FROM (SELECT DISTINCT starts_at FROM billing_period) b`
	dueSQL    = `SELECT p.id, bool_or(new) FROM (
			SELECT p.id, true AS new FROM (` + freshSQL + `) u JOIN billing_period p ON p.tenant_id = u.tenant_id AND u.starts < p.ends_at AND u.ends >= p.starts_at
			UNION ALL SELECT p.id, true FROM price_version v JOIN billing_period p ON p.currency = v.currency AND (v.tenant_id IS NULL OR v.tenant_id = p.tenant_id)
					AND v.valid_from < p.ends_at AND (v.valid_to IS NULL OR v.valid_to > p.starts_at)
				WHERE v.valid_from <= $4 AND EXISTS (SELECT FROM billing_run r WHERE r.period_id = p.id)
					AND (NOT platform.before_mark(v.recorded_generation, v.recorded_xid, $1, $2::text::xid8)
						OR v.superseded_xid IS NOT NULL AND NOT platform.before_mark(v.superseded_generation, v.superseded_xid, $1, $2::text::xid8))
			UNION ALL SELECT id, false FROM billing_period WHERE closed_at IS NULL AND ends_at <= $4
				AND (status = 'OPEN' OR status = 'CLOSING' AND ends_at + grace_seconds * interval '1 second' <= $4)
		) d JOIN billing_period p ON p.id = d.id GROUP BY p.id ORDER BY p.starts_at, p.id`
)

// Begin lists the periods of which something may be new since the last look that was done: usage or prices were
// written, or their time has come. What nothing was written for is not rated again.
func Begin(ctx context.Context, t *tx.Tx) (*Look, error) {
	look := &Look{when: t.Now}
	var err error
	if look.at, err = newMark(ctx, t); err != nil {
		return nil, err
	}
	since, until := mark{generation: -1, watermark: "0"}, time.Time{}
	err = t.QueryRow(ctx, `SELECT generation, watermark::text, looked_at FROM billing_look`).Scan(&since.generation,
		&since.watermark, &until)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("read the last poll: %w", err)
	}
	look.Due, err = many(ctx, t, func(row pgx.CollectableRow) (Due, error) {
		due := Due{at: look.at, when: look.when}
		err := row.Scan(&due.Period, &due.New)
		return due, err
	}, dueSQL, since.generation, since.watermark, until, t.Now)
	return look, err
}

// Done notes that everything that the look listed is brought up to date, so that the next one begins where it did. It
// is called only when nothing failed and no other process had any of it in hand.
func (l *Look) Done(ctx context.Context, t *tx.Tx) error {
	_, err := t.Exec(ctx, `INSERT INTO billing_look AS l (generation, watermark, looked_at)
		VALUES ($1, $2::text::xid8, $3)
		ON CONFLICT (one) DO UPDATE SET generation = $1, watermark = $2::text::xid8, looked_at = $3
		WHERE platform.before_mark(l.generation, l.watermark, $1,
		$2::text::xid8)`, l.at.generation, l.at.watermark, l.when)
	if err != nil {
		return fmt.Errorf("store the poll: %w", err)
	}
	return nil
}

// covers reports whether a run has seen what the look has listed of its period.
func (d *Due) covers(before *Run, p *Period) bool {
	return before != nil && !before.mark().before(d.at) && !before.EventTo.Before(earlier(d.when, p.EndsAt))
}

// before reports whether the mark lies before another.
func (m mark) before(other mark) bool {
	if m.generation != other.generation {
		return m.generation < other.generation
	}
	mine, _ := strconv.ParseUint(m.watermark, 10, 64) // the database writes it
	theirs, _ := strconv.ParseUint(other.watermark, 10, 64)
	return mine < theirs
}

func (r *Run) mark() mark { return mark{r.Generation, r.Watermark} }

// beyond reports whether usage of the period was written that a mark does not count.
func beyond(ctx context.Context, t *tx.Tx, p *Period, at mark) (yes bool, err error) {
	err = t.QueryRow(ctx, `SELECT EXISTS (SELECT FROM usage_record WHERE tenant_id = $1 AND basis <> 'SHOWBACK'
		AND from_at < $2 AND to_at >= $3
		AND (recorded_generation > $4 OR recorded_generation = $4
		AND recorded_xid::text::bigint >= $5::text::bigint))`, p.TenantID, p.EndsAt,
		p.StartsAt, at.generation, at.watermark).Scan(&yes)
	return yes, err
}
