package graph

import (
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/policy"
)

func overlayInput(input model.SetPolicyInput) policy.SetInput {
	return policy.SetInput{
		TenantID: input.TenantID, ProjectID: input.ProjectID, Document: input.Document, ExpectedRevision: input.ExpectedRevision, Reason: input.Reason,
	}
}
