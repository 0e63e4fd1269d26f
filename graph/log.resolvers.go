package graph

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/memberlog"
)

func (r *memberResolver) Logs(ctx context.Context, obj *db.Member, process *string, after *string, tail *int, since *time.Time) (*memberlog.Page, error) {
	if err := read.Of(ctx).CountLogs(); err != nil {
		return nil, err
	}
	return r.Resolver.MemberLogs.Page(ctx, memberlog.Input{MemberID: obj.ID, Process: read.Value(process), After: read.Value(after),
		Tail: tail, Since: since})
}

func (r *subscriptionResolver) MemberLogs(ctx context.Context, memberID ids.ID, process *string, after *string, tail *int, since *time.Time) (<-chan *memberlog.Line, error) {
	return r.Resolver.Logs.Watch(ctx, memberlog.Input{MemberID: memberID, Process: read.Value(process), After: read.Value(after),
		Tail: tail, Since: since}, live.EndWith(ctx))
}
