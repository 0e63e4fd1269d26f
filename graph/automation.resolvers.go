package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/service/automation"
	"github.com/gpuaas/app-platform/service/instance"
)

func (r *mutationResolver) SetOperatorAccount(ctx context.Context, input automation.ChooseInput) (*instance.View, error) {
	row, err := r.Automation.Choose(ctx, input)
	if err != nil {
		return nil, err
	}
	return &instance.View{Instance: row}, nil
}

func (r *mutationResolver) IssueOperatorToken(ctx context.Context, instanceID ids.ID) (*automation.Token, error) {
	return r.Automation.IssueToken(ctx, instanceID)
}
