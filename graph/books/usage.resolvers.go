package books

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/usage"
)

func (r Writes) ReportUsage(ctx context.Context, input usage.ReportInput) (*usage.Report, error) {
	return r.usage.Report(ctx, input)
}

func (r Reads) UsageRecords(ctx context.Context, filter usage.Filter, first *int,
	after *string) (*model.UsageRecordConnection, error) {
	return read.ListOf[model.UsageRecordConnection](ctx, filter, first, after, r.usage.Records)
}

func (r Reads) UsageSums(ctx context.Context, filter usage.Filter, hourly bool) ([]*usage.Sum, error) {
	return r.usage.Sums(ctx, filter, hourly)
}

func (r Reads) UsageSources(ctx context.Context, projectID ids.ID, instanceID *ids.ID) ([]*usage.Source, error) {
	return r.usage.Sources(ctx, projectID, instanceID)
}

func (r Reads) UsageQuarantine(ctx context.Context, projectID *ids.ID, instanceID *ids.ID, first *int,
	after *string) (*model.QuarantinedUsageConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.QuarantinedUsageConnection](r.usage.Quarantine(ctx, projectID, instanceID, args))
}
