// Package membermetric reads what members use: their series from the agents of their nodes, and the newest sample of
// each from the database, where heartbeats bring it.
package membermetric

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/nodemetrics"
)

// patience bounds how long a node may take for a series.
const patience = 10 * time.Second

// Service holds the reads.
type Service struct {
	// DB is the database.
	DB *tx.DB
	// Open opens a stream of a member's series to the agent of a node, on a tenant's account. It fails with
	// NODE_UNREACHABLE where no agent is connected. It is set before the first read; nil reaches none.
	Open func(ctx context.Context, tenant, node, member ids.ID) (io.ReadWriteCloser, error)
}

// Value is a number over a step of a series.
type Value struct{ Average, Max float64 }

// Point is what was measured in a step of a series that ends at a time; every value is nil in a gap.
type Point struct {
	At      time.Time
	Samples int

	CPU, MemoryBytes, NetReceivedPerSecond, NetSentPerSecond, DiskReadPerSecond, DiskWrittenPerSecond, GPU,
	GPUMemoryBytes *Value
}

// Metrics is a member's series, with a point for each step of its range.
type Metrics struct {
	StepSeconds int
	Points      []*Point
}

// spans are how long the ranges are, in seconds.
var spans = map[lifecycle.MetricsRange]int64{
	lifecycle.MetricsQuarter: 15 * 60, lifecycle.MetricsHour: nodemetrics.FineSpan,
	lifecycle.MetricsDay: 24 * 60 * 60, lifecycle.MetricsWeek: nodemetrics.CoarseSpan,
}

// place is where a member's series is.
type place struct {
	node   ids.ID
	object authz.Object
	family string
	now    time.Time
}

const placeSQL = `SELECT m.tenant_id, m.project_id, m.instance_id, coalesce(m.node_id, ''), i.permission_family, now()
	FROM member m JOIN instance i ON i.id = m.instance_id WHERE m.id = $1`

func scanPlace(row pgx.CollectableRow) (*place, error) {
	p := &place{}
	return p, row.Scan(&p.object.TenantID, &p.object.ProjectID, &p.object.InstanceID, &p.node, &p.family, &p.now)
}

// Series reads what a member used. It requires <family>.node.read. A step of nil is the shortest one of the range.
// Faults: NOT_FOUND, FORBIDDEN, INVALID_ARGUMENT at range and step, NODE_UNREACHABLE, FAILED_PRECONDITION for a member
// that was never measured.
func (s *Service) Series(ctx context.Context, memberID ids.ID, wanted lifecycle.MetricsRange, step *int) (*Metrics,
	error) {
	span, finest, err := steps(wanted, step)
	if err != nil {
		return nil, err
	}
	at := finest
	if step != nil {
		at = int64(*step)
	}
	var found *place
	actor, err := s.DB.Read(ctx, tx.Row(&found, scanPlace, placeSQL, memberID))
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.NoSuch()
	}
	key, err := authz.FamilyKey(found.family, "node.read")
	if err != nil {
		return nil, fmt.Errorf("metrics of member %s: %w", memberID, err)
	}
	if err := authz.RequireOn(actor, key, found.object); err != nil {
		return nil, err
	}
	points, err := s.read(ctx, found, nodemetrics.Query{Member: string(memberID), Range: span})
	if err != nil {
		return nil, err
	}
	if at != finest {
		points = nodemetrics.Resample(points, at)
	}
	return &Metrics{StepSeconds: int(at), Points: regular(points, found.now.Unix(), span, at)}, nil
}

// steps returns the length of a range and its shortest step, in seconds.
func steps(wanted lifecycle.MetricsRange, step *int) (span, finest int64, err error) {
	span, ok := spans[wanted]
	if !ok {
		return 0, 0, fault.New(fault.InvalidArgument, "range must be QUARTER_HOUR, HOUR, DAY or WEEK").At("range")
	}
	finest = nodemetrics.FineStep
	if span > nodemetrics.FineSpan {
		finest = nodemetrics.CoarseStep
	}
	if step != nil && (int64(*step) < finest || int64(*step) > span || int64(*step)%finest != 0) {
		return 0, 0, fault.New(fault.InvalidArgument, "step must be a multiple of %d for this range, and at most %d",
			finest, span).At("step")
	}
	return span, finest, nil
}

// read reads from a node.
func (s *Service) read(ctx context.Context, at *place, query nodemetrics.Query) ([]nodemetrics.Point, error) {
	if at.node == "" {
		return nil, fault.New(fault.FailedPrecondition, "the member is on no node: it has no measurements")
	}
	if s.Open == nil {
		return nil, fault.New(fault.NodeUnreachable, "the node's agent is not connected: try again when it is")
	}
	ctx, stop := context.WithTimeoutCause(ctx, patience,
		fault.New(fault.NodeUnreachable, "the node did not answer within %s", patience))
	defer stop()
	stream, err := s.Open(ctx, at.object.TenantID, at.node, ids.ID(query.Member))
	if _, known := fault.As(err); err != nil && !known {
		return nil, fault.New(fault.NodeUnreachable, "the connection to the node's agent broke off: try again").
			Because(err)
	}
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	points, err := nodemetrics.Read(stream, query)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return points, faultOf(err)
}

// faultOf translates what a node answered.
func faultOf(err error) error {
	var told *nodemetrics.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &told):
		return fault.New(fault.NodeUnreachable, "the connection to the node's agent broke off: try again").Because(err)
	case told.Code == nodemetrics.MemberUnknown:
		return fault.New(fault.FailedPrecondition,
			"the node has no series of this member: it was not measured yet, or ended more than a week ago")
	case told.Code == nodemetrics.Unmeasured:
		return fault.New(fault.FailedPrecondition,
			"the node runs members as plain processes, which it does not measure")
	}
	return fault.New(fault.Internal, "the node could not read the series").Because(err)
}

// regular returns a point for each step of a range, the last one that of the newest point, or of now.
func regular(points []nodemetrics.Point, now, span, step int64) []*Point {
	last := nodemetrics.End(now, step)
	if len(points) > 0 && points[len(points)-1].At > last-step { // the clock of the node need not be the platform's
		last = points[len(points)-1].At
	}
	out := make([]*Point, 0, span/step)
	for end := last - (span/step-1)*step; end <= last; end += step {
		for len(points) > 0 && points[0].At < end {
			points = points[1:]
		}
		if len(points) > 0 && points[0].At == end {
			out = append(out, point(points[0]))
			continue
		}
		out = append(out, &Point{At: time.Unix(end, 0).UTC()})
	}
	return out
}

func point(p nodemetrics.Point) *Point {
	average, most := nodemetrics.Of(p.Average), nodemetrics.Of(p.Max)
	value := func(m nodemetrics.Measure) *Value {
		if average[m] != average[m] || most[m] != most[m] { // NaN: not known
			return nil
		}
		return &Value{average[m], most[m]}
	}
	return &Point{
		At: time.Unix(p.At, 0).UTC(), Samples: p.Samples, CPU: value(nodemetrics.CPU),
		MemoryBytes:          value(nodemetrics.Memory),
		NetReceivedPerSecond: value(nodemetrics.NetReceived), NetSentPerSecond: value(nodemetrics.NetSent),
		DiskReadPerSecond: value(nodemetrics.DiskRead), DiskWrittenPerSecond: value(nodemetrics.DiskWritten),
		GPU: value(nodemetrics.GPU), GPUMemoryBytes: value(nodemetrics.GPUMemory),
	}
}
