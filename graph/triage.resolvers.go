package graph

import (
	"context"

	"github.com/gpuaas/app-platform/service/triage"
)

func (r *queryResolver) Triage(ctx context.Context, id string) (*triage.Report, error) {
	return r.Resolver.Triages.Report(ctx, id)
}

func (r *queryResolver) SupportBundle(ctx context.Context, id string) (*triage.Bundle, error) {
	return r.Resolver.Triages.Bundle(ctx, id)
}
