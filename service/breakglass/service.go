// Package breakglass holds the verbs that set the rules aside: each requires break_glass.use on the platform and a
// reason, and is flagged in the audit, in the instance's timeline, in the log and in a metric. No other verb sets a
// rule aside.
package breakglass

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Bounds of the reason and the incident, in characters.
const (
	leastReason  = 20
	mostReason   = 1_000
	mostIncident = 100
)

// Service holds the verbs.
type Service struct {
	DB *tx.DB
	// Log gets a warning for each use.
	Log *slog.Logger
	// Used counts the uses that came about in this process.
	Used atomic.Int64
}

// why checks the reason and the incident of a use.
func why(input *check.Input, reason, incident string) {
	input.Text("input.reason", strings.TrimSpace(reason), leastReason, mostReason)
	input.Text("input.incident", incident, 0, mostIncident)
}

// allowed requires the key, on the platform and nowhere else.
func allowed(t *tx.Tx, action string, object ids.ID) error {
	return audit.Require(t, action, authz.BreakGlassUse, authz.Object{}, object)
}

// flag counts and logs a use that succeeded.
func (s *Service) flag(ctx context.Context, action string, actor *authz.Actor, object ids.ID, reason, incident string) {
	s.Used.Add(1)
	s.Log.Warn("break-glass was used", "action", action, "actor", actor.ID, "actor_name", actor.Name, "object", object,
		"reason", reason, "incident", incident, "correlation_id", authz.Request(ctx).CorrelationID)
}

// byWhom names who did it and why, for people.
func byWhom(actor *authz.Actor, reason string) string {
	return "by break-glass of " + actor.Name + ": " + reason
}
