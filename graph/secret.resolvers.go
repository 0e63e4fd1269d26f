package graph

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/secret"
)

func (r *mutationResolver) IssueRuntimeSecret(ctx context.Context, input model.IssueRuntimeSecretInput) (*secret.View, error) {
	panic(fmt.Errorf("not implemented: IssueRuntimeSecret - issueRuntimeSecret"))
}

func (r *mutationResolver) RedeemRuntimeSecret(ctx context.Context, secretID ids.ID) (*secret.Redeemed, error) {
	panic(fmt.Errorf("not implemented: RedeemRuntimeSecret - redeemRuntimeSecret"))
}

func (r *mutationResolver) RotateRuntimeSecret(ctx context.Context, secretID ids.ID, overlapSeconds int, reason *string) (*secret.View, error) {
	panic(fmt.Errorf("not implemented: RotateRuntimeSecret - rotateRuntimeSecret"))
}

func (r *mutationResolver) RevokeRuntimeSecret(ctx context.Context, secretID ids.ID, reason *string) (*secret.View, error) {
	panic(fmt.Errorf("not implemented: RevokeRuntimeSecret - revokeRuntimeSecret"))
}

func (r *queryResolver) RuntimeSecrets(ctx context.Context, instanceID ids.ID, ended bool, first *int, after *string) (*model.RuntimeSecretConnection, error) {
	panic(fmt.Errorf("not implemented: RuntimeSecrets - runtimeSecrets"))
}
