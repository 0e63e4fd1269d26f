package authz

import (
	"slices"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// risks are the risks of app actions, the least first.
var risks = []lifecycle.ActionRisk{lifecycle.RiskRead, lifecycle.RiskWrite, lifecycle.RiskDestructive}

// RequireRisk refuses an app action that is riskier than the actor's limit: FORBIDDEN with ACCOUNT_LIMIT. A risk that
// this build does not know is the highest.
func (a *Actor) RequireRisk(risk lifecycle.ActionRisk) error {
	most := a.Limits.MaxRisk
	if most == "" {
		return nil
	}
	at := slices.Index(risks, risk)
	if at >= 0 && at <= slices.Index(risks, most) {
		return nil
	}
	return fault.New(fault.Forbidden, "the service account may not ask for actions of risk %s: its limit is %s", risk, most).
		With(fault.Reason{Code: fault.AccountLimit, Message: "limits.maxRisk"})
}
