package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/secret"
)

func (r *mutationResolver) IssueRuntimeSecret(ctx context.Context, input secret.IssueInput) (*secret.View, error) {
	return r.Secrets.Issue(ctx, input)
}

func (r *mutationResolver) RedeemRuntimeSecret(ctx context.Context, secretID ids.ID) (*secret.Redeemed, error) {
	return r.Secrets.Redeem(ctx, secretID)
}

func (r *mutationResolver) RotateRuntimeSecret(ctx context.Context, secretID ids.ID, overlapSeconds int, reason *string) (*secret.View, error) {
	return r.Secrets.Rotate(ctx, secret.RotateInput{SecretID: secretID, OverlapSeconds: overlapSeconds,
		Reason: read.Value(reason)})
}

func (r *mutationResolver) RevokeRuntimeSecret(ctx context.Context, secretID ids.ID, reason *string) (*secret.View, error) {
	return r.Secrets.Revoke(ctx, secretID, read.Value(reason))
}

func (r *queryResolver) RuntimeSecrets(ctx context.Context, instanceID ids.ID, ended bool, first *int, after *string) (*model.RuntimeSecretConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.RuntimeSecretConnection](r.Secrets.List(ctx,
		secret.Filter{InstanceID: instanceID, Ended: ended}, args))
}
