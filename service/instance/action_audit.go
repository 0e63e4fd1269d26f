package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// How long one entry of the audit counts for all reads of the same action of the same instance by the same caller: a
// person who watches a queue reads it every few seconds. A failed read is written more often, so that the correlation
// id of a failure under investigation is likely to be there.
const (
	readsNotedFor    = 10 * time.Minute
	failuresNotedFor = time.Minute
)

// note writes the attempt to the audit, before the app is called.
func (p *preparedAction) note(ctx context.Context, t *tx.Tx, in ActionInput) error {
	return p.entry(ctx, t, in, "", readsNotedFor)
}

// noteFailure writes to the audit how an action ended that the app could not carry out, and returns the failure. The
// attempt was allowed, so its entry is one too, with the fault's code: triage finds by it why the caller got an error.
func (s *Service) noteFailure(ctx context.Context, p *preparedAction, in ActionInput, failure error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		return p.entry(ctx, t, in, fault.From(failure).Code, failuresNotedFor)
	})
	if err != nil {
		return errors.Join(failure, err) // the caller gets the failure, the log both
	}
	return failure
}

// entry writes an entry of the audit; of reads without a reason, one for each window of time, code and caller.
func (p *preparedAction) entry(
	ctx context.Context, t *tx.Tx, in ActionInput, code fault.Code, window time.Duration,
) error {
	if p.spec.Risk == "read" && in.Reason == "" {
		value := fmt.Sprintf("%s.%s.%s%d", in.InstanceID, in.Action, code, t.Now.Unix()/int64(window.Seconds()))
		noted, err := idem.Claim(ctx, t, idem.Key{Verb: "noteRead", TenantID: p.where.TenantID,
			ProjectID: p.where.ProjectID, Value: value}, new(struct{}))
		if err != nil || noted {
			return err
		}
	}
	return audit.Write(ctx, t, audit.Entry{
		Action: "invokeAction " + in.Action, Key: p.key, Object: p.where, ObjectID: in.InstanceID, Reason: in.Reason,
		After: map[string]any{"action": in.Action, "risk": p.spec.Risk}, Code: code,
	})
}
