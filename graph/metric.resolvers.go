package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/membermetric"
)

func (r *memberResolver) Metrics(ctx context.Context, obj *db.Member, rangeArg lifecycle.MetricsRange, step *int) (*membermetric.Metrics, error) {
	if err := read.Of(ctx).CountMetrics(); err != nil {
		return nil, err
	}
	return r.Resolver.MemberMetrics.Series(ctx, obj.ID, rangeArg, step)
}

func (r *queryResolver) MemberUsage(ctx context.Context, projectID ids.ID, instanceID *ids.ID) ([]*membermetric.Usage, error) {
	found, _, err := r.Resolver.MemberMetrics.Now(ctx, projectID, instanceID)
	return found, err
}
