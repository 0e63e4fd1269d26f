package walker

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/runbook"
)

const (
	// silence is for how long a source of usage may be behind.
	silence = time.Hour
	// unbooked is for how long usage may wait for its run.
	unbooked = 5 * time.Minute
)

// usage reads what is recorded, what was refused, and who bears it.
func (w *Walker) usage(ctx context.Context, about *Subject, into runbook.Facts) error {
	if about.ProjectID == "" {
		return nil
	}
	sources, err := gql.ListUsageSources(ctx, w.Operator, about.ProjectID)
	if err != nil {
		return err
	}
	for _, one := range sources.UsageSources {
		if one.RecordedTo != nil && time.Since(*one.RecordedTo) > silence {
			into.Add("usage.basis", string(one.Basis))
		}
		into.Add("usage.error", one.LastError)
	}
	refused, err := gql.ListQuarantinedUsage(ctx, w.Operator, about.ProjectID, pageOf, "")
	if err != nil {
		return err
	}
	for _, edge := range refused.UsageQuarantine.Edges {
		if edge.Node.CreatedAt.After(w.Since) { // older ones stay in the list when their adapter is mended
			into.Add("usage.quarantined", edge.Node.Code)
		}
	}
	sums, err := gql.SumUsage(ctx, w.Operator, gql.UsageFilter{ProjectId: about.ProjectID}, false)
	if err != nil {
		return err
	}
	for _, one := range sums.UsageSums {
		reason := ""
		if one.BorneReason != nil {
			reason = string(*one.BorneReason)
		}
		into.Add("borne", string(one.BorneBy)+" "+reason)
	}
	return nil
}

// books reads the statement, the runs, and whether the doubted run is what its usage and prices say.
func (w *Walker) books(ctx context.Context, about *Subject, into runbook.Facts) error {
	if about.TenantID == "" {
		return nil
	}
	var period *string
	if about.PeriodID != "" {
		period = &about.PeriodID
	}
	shown, err := gql.GetStatement(ctx, w.Operator, &about.TenantID, nil, period)
	if err != nil {
		return err
	}
	for _, line := range shown.Statement.Lines {
		if line.Amount == nil {
			into.Add("line.unpriced", line.Meter)
		}
		if line.Correction {
			into.Add("line.month", line.From.Format("2006-01"))
		}
	}
	runs, err := gql.ListBillingRuns(ctx, w.Operator, about.TenantID, 1, "")
	if err != nil {
		return err
	}
	if len(runs.BillingRuns.Edges) == 0 || time.Since(runs.BillingRuns.Edges[0].Node.CreatedAt) > unbooked {
		into.Add("run.none", w.recorded(ctx, about))
	}
	if about.RunID == "" {
		return nil
	}
	verified, err := gql.VerifyBillingRun(ctx, w.Operator, about.RunID)
	if err != nil {
		return err
	}
	into.Add("verify.differs", verified.VerifyBillingRun.Differs)
	return nil
}

// recorded is "yes" where the project has usage.
func (w *Walker) recorded(ctx context.Context, about *Subject) string {
	listed, err := gql.ListUsage(ctx, w.Operator, gql.UsageFilter{ProjectId: about.ProjectID}, 1, "")
	if err != nil || len(listed.UsageRecords.Edges) == 0 {
		return ""
	}
	return "yes"
}
