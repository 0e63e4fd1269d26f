package reconcile

import (
	"context"
	"fmt"
)

// clean forgets what is over: one-time secrets, which are rows with a hash that nobody can use any
// more, and idempotency keys older than any repeat of their call.
func (r *Reconciler) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	var forgotten int
	if err := r.DB.Worker().QueryRow(ctx, `SELECT platform.forget_secrets()`).Scan(&forgotten); err != nil {
		return fmt.Errorf("forget secrets that are over: %w", err)
	}
	var keys int
	if err := r.DB.Worker().QueryRow(ctx, `SELECT platform.forget_keys()`).Scan(&keys); err != nil {
		return fmt.Errorf("forget idempotency keys that are over: %w", err)
	}
	if forgotten+keys > 0 {
		r.Log.Info("forgot what is over", "secrets", forgotten, "idempotency_keys", keys)
	}
	return nil
}
