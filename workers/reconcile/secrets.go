package reconcile

import (
	"context"
	"fmt"
	"time"
)

// Bounds of looking at runtime secrets. A value that can be delivered no more is wiped at most a minute after it ended,
// or, when thousands end at once, a minute later for each thousand; one that was spent or revoked is wiped where that
// happens, and this look only makes sure.
const (
	secretsEvery = time.Minute
	maxWiped     = 1_000
)

// wipeSQL takes the values of secrets that have ended, and those before a rotation whose overlap has ended.
const wipeSQL = `UPDATE runtime_secret SET
		sealed = CASE WHEN expires_at <= now() OR revoked_at IS NOT NULL OR (delivery = 'ONCE' AND deliveries > 0) THEN NULL
		ELSE sealed END,
		previous = NULL, previous_until = NULL
	WHERE id IN (SELECT id FROM runtime_secret WHERE sealed IS NOT NULL
		AND (expires_at <= now() OR revoked_at IS NOT NULL OR (delivery = 'ONCE' AND deliveries > 0)
		OR previous_until <= now())
		ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)`

// forgetSQL deletes secrets that ended 90 days ago: of the oldest rows, those created 91 days ago, as none lives
// longer than a day.
const forgetSQL = `DELETE FROM runtime_secret WHERE id IN (SELECT id FROM (SELECT id, created_at FROM runtime_secret
	ORDER BY id LIMIT $1) oldest
	WHERE created_at < now() - interval '91 days')`

// secrets wipes the values that no one may read any more and deletes the rows that ended long ago.
func (r *Reconciler) secrets(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	for _, sql := range []string{wipeSQL, forgetSQL} {
		tag, err := r.DB.Worker().Exec(ctx, sql, maxWiped)
		if err != nil {
			return fmt.Errorf("wipe secrets: %w", err)
		}
		r.Stats.Forgotten.Add(tag.RowsAffected())
	}
	return nil
}
