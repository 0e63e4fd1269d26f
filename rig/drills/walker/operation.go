package walker

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/runbook"
)

// pageOf is how many rows are read of one list: a person reads no more either.
const pageOf = 100

// report reads the triage of the operation, the instance or the request.
func (w *Walker) report(ctx context.Context, about *Subject, into runbook.Facts) error {
	if about.ID == "" {
		return nil
	}
	answer, err := gql.ShowTriage(ctx, w.Person, about.ID)
	if err != nil {
		return err
	}
	found := answer.Triage
	into.Add("code", found.Code)
	into.Add("message", found.Message)
	into.Add("asked", found.Asked)
	for _, one := range found.Evidence {
		if one.Kind == gql.TriageEvidenceKindTask || one.Kind == gql.TriageEvidenceKindStep {
			into.Add("detail", one.What+" "+one.State+": "+one.Message)
		}
	}
	if found.OperationId == nil {
		return nil
	}
	shown, err := gql.GetOperation(ctx, w.Person, *found.OperationId)
	if err != nil {
		return err
	}
	operation := shown.Operation
	into.Add("state", string(operation.State))
	for _, step := range operation.Steps {
		switch step.State {
		case gql.StepStateRunning, gql.StepStateFailed, gql.StepStateUndoing:
			into.Add("step", step.Name)
		default:
		}
		into.Add("detail", string(step.Evidence))
	}
	return nil
}

// answer measures a small read.
func (w *Walker) answer(ctx context.Context, about *Subject, into runbook.Facts) error {
	begun := time.Now()
	_, err := gql.ListApps(ctx, w.Person, "", 1, "")
	into.Add("answer.seconds", number(time.Since(begun).Seconds()))
	return err
}

// instanceOf is the instance that a walk is about; empty for none.
func (w *Walker) instanceOf(ctx context.Context, about *Subject) string {
	if about.ID == "" {
		return ""
	}
	answer, err := gql.ShowTriage(ctx, w.Person, about.ID)
	if err != nil || answer.Triage.InstanceId == nil {
		return ""
	}
	return *answer.Triage.InstanceId
}

// instance reads what is wrong with the instance and with its members.
func (w *Walker) instance(ctx context.Context, about *Subject, into runbook.Facts) error {
	id := w.instanceOf(ctx, about)
	if id == "" {
		return nil
	}
	answer, err := gql.GetInstance(ctx, w.Person, id)
	if err != nil {
		return err
	}
	if answer.Instance.System {
		into.Add("app.system", "yes")
	}
	for _, one := range answer.Instance.Blockers {
		into.Add("blocker", one.Code)
	}
	for _, edge := range answer.Instance.Members.Edges {
		if edge.Node.Status == gql.MemberStatusRemoved {
			continue // why it was lost is history
		}
		if edge.Node.Failure != nil {
			into.Add("member.failure", string(*edge.Node.Failure))
		}
		into.Add("detail.adapter", string(edge.Node.AdapterDetail))
	}
	return nil
}

// nodes reads how the nodes are, and what their agents' checks found.
func (w *Walker) nodes(ctx context.Context, _ *Subject, into runbook.Facts) error {
	listed, err := gql.ListNodes(ctx, w.Operator, pageOf, "")
	if err != nil {
		return err
	}
	for _, edge := range listed.Nodes.Edges {
		into.Add("node.status", string(edge.Node.Status))
	}
	fleet, err := gql.ReadFleet(ctx, w.Operator)
	if err != nil {
		return err
	}
	for _, node := range fleet.Fleet.Troubled {
		if node.Cordoned {
			into.Add("node.condition", "CORDONED")
		}
		for _, one := range node.Conditions {
			into.Add("node.condition", one.Name+" "+string(one.State))
		}
	}
	return nil
}

// adapters reads why adapters could not be reached.
func (w *Walker) adapters(ctx context.Context, _ *Subject, into runbook.Facts) error {
	listed, err := gql.ListAdapters(ctx, w.Operator, pageOf, "")
	if err != nil {
		return err
	}
	for _, edge := range listed.Adapters.Edges {
		into.Add("adapter.error", edge.Node.LastError)
	}
	return nil
}

// audit reads the refusals of the last hour, also those that belong to no project.
func (w *Walker) audit(ctx context.Context, _ *Subject, into runbook.Facts) error {
	from, denied := time.Now().Add(-time.Hour), false
	if w.Since.After(from) {
		from = w.Since
	}
	listed, err := gql.SearchAudit(ctx, w.Operator, gql.AuditFilterInput{Allowed: &denied, From: &from}, pageOf, "")
	if err != nil {
		return err
	}
	for _, edge := range listed.SearchAudit.Edges {
		into.Add("audit.refusals", edge.Node.Code)
	}
	return nil
}
