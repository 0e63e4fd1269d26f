package endpoint

import (
	"context"

	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// ConnectAction is the name of a connection in the audit.
const ConnectAction = "connectEndpoint"

// Note writes into the audit that the caller was connected to an endpoint, and how. It checks the endpoint's permission
// key again, and the policy for it (POLICY_DENIED).
func (s *Service) Note(ctx context.Context, to *Target, how string) error {
	return s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		where := object(to.Instance)
		if err := audit.Require(t, ConnectAction, to.Key, where, to.Instance.ID); err != nil {
			return err
		}
		if err := allowed(ctx, t, ConnectAction, to); err != nil {
			return err
		}
		return audit.Write(ctx, t, audit.Entry{Action: ConnectAction, Key: to.Key, Object: where,
			ObjectID: to.Instance.ID,
			After:    map[string]any{"endpoint": to.Endpoint.Name, "member": to.MemberID, "by": how}})
	})
}
