package reconcile

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// The pace of sealing the audit: at most one look in a second while there is a hint, and one without now
// and then. A look seals a thousand entries in a transaction, and at most so many times.
const (
	sealEvery = 30 * time.Second
	sealRest  = time.Second
	sealMost  = 20
)

// seal keeps the audit's hash chain up with what is committed, until ctx ends. It lags behind rather than
// to delay other transactions.
func (r *Reconciler) seal(ctx context.Context) error {
	if r.Keys == nil {
		return nil // nothing could be signed
	}
	sealer := &audit.Sealer{DB: r.DB, Keys: r.Keys}
	var hint <-chan struct{}
	if r.Hub != nil {
		word := r.Hub.Wait(audit.Topic)
		defer word.Close()
		hint = word.C
	}
	next := time.NewTimer(sealEvery)
	defer next.Stop()
	for {
		pause := sealEvery
		if r.sealAll(ctx, sealer) {
			pause = sealRest
		}
		next.Reset(pause)
		select {
		case <-ctx.Done():
			return nil
		case <-hint:
			next.Reset(sealRest) // what comes meanwhile is sealed with it
			select {
			case <-ctx.Done():
				return nil
			case <-next.C:
			}
		case <-next.C:
		}
	}
}

// sealAll seals what waits, and reports whether more does already.
func (r *Reconciler) sealAll(ctx context.Context, sealer *audit.Sealer) bool {
	for range sealMost {
		bounded, cancel := context.WithTimeout(ctx, jobTimeout)
		out, err := sealer.Seal(bounded)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				r.Log.Warn("the audit could not be sealed; it is tried again", "error", err)
			}
			return false
		}
		r.Stats.Sealed.Add(int64(out.Entries))
		r.Stats.SealLag.Store(int64(out.Lag / time.Second))
		if !out.Full {
			return out.Held
		}
	}
	return true
}
