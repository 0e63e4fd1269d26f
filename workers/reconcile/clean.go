package reconcile

import (
	"context"
	"fmt"
)

// clean forgets one-time secrets that are over: login codes and enrolments are rows with a hash, and
// nobody can use them any more.
func (r *Reconciler) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	var forgotten int
	if err := r.DB.Worker().QueryRow(ctx, `SELECT platform.forget_secrets()`).Scan(&forgotten); err != nil {
		return fmt.Errorf("forget secrets that are over: %w", err)
	}
	if forgotten > 0 {
		r.Log.Info("forgot one-time secrets that are over", "rows", forgotten)
	}
	return nil
}
