package reconcile

import (
	"context"
	"fmt"
)

// overs delete what has ended, each in its own bounded statement, by functions that see the tables which
// the workers may not: one-time secrets and sessions that ended a day ago (1,000 of each kind),
// idempotency keys older than 30 days (5,000), keys of service accounts that ended 30 days ago and
// credentials of nodes that ended a day ago (1,000 of each).
var overs = []struct{ what, sql string }{
	{"secrets", `SELECT platform.forget_secrets()`},
	{"idempotency keys", `SELECT platform.forget_keys()`},
	{"credentials", `SELECT platform.forget_credentials()`}, {"openings", `SELECT platform.forget_openings()`},
}

// clean deletes what no one can use any more.
func (r *Reconciler) clean(ctx context.Context) error {
	for _, over := range overs {
		if err := r.forget(ctx, over.what, over.sql); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) forget(ctx context.Context, what, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	var gone int64
	if err := r.DB.Worker().QueryRow(ctx, sql).Scan(&gone); err != nil {
		return fmt.Errorf("delete expired %s: %w", what, err)
	}
	if gone > 0 {
		r.Stats.Forgotten.Add(gone)
		r.Log.Info("deleted what has expired", "what", what, "rows", gone)
	}
	return nil
}
