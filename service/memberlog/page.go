package memberlog

import (
	"context"
	"errors"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/sdk/nodelogs"
)

// errFull ends a page.
var errFull = errors.New("the page is full")

// Page reads a part of a member's logs: the last lines, or those after a cursor. It requires <family>.member.logs.
// Faults: NOT_FOUND, FORBIDDEN, INVALID_ARGUMENT at process and tail, CURSOR_INVALID at after, FAILED_PRECONDITION for
// a member without logs, NODE_UNREACHABLE.
func (s *Service) Page(ctx context.Context, in Input) (*Page, error) {
	query, err := in.query()
	if err != nil {
		return nil, err
	}
	at, err := s.admit(ctx, in, false)
	if err != nil {
		return nil, err
	}
	query.Limit = MaxPage
	page := &Page{Lines: []*Line{}, Source: lifecycle.LogOfNode, Processes: []string{}}
	position, size := newPosition(query), 0
	names := func(names []string) error { page.Processes = names; return nil }
	each := func(line nodelogs.Line) error {
		if line.Mark {
			position.pass(line)
			return nil
		}
		if size += len(line.Text) + 64; size > maxPageBytes && len(page.Lines) > 0 {
			page.More = true
			return errFull
		}
		position.pass(line)
		page.Lines = append(page.Lines, lineOf(line, position.cursor()))
		page.More = len(page.Lines) >= query.Limit && query.Tail == 0
		return nil
	}
	if at.evidence != nil {
		page.Source = lifecycle.LogOfEvidence
		err = last(at.evidence, query, names, each)
	} else {
		ctx, stop := context.WithTimeoutCause(ctx, patience, away("the node did not answer within %s", patience))
		defer stop()
		err = s.read(ctx, at, query, names, each)
	}
	if err != nil && !errors.Is(err, errFull) {
		return nil, err
	}
	page.Cursor = position.cursor()
	return page, nil
}

// away is the fault of a node that does not answer.
func away(format string, args ...any) error {
	return fault.New(fault.NodeUnreachable, format, args...)
}

// read reads from a node. It ends with ctx.
func (s *Service) read(ctx context.Context, at *place, query nodelogs.Query, names func([]string) error,
	each func(nodelogs.Line) error) error {
	if at.node == "" {
		return fault.New(fault.FailedPrecondition, "the member is on no node, and left no logs")
	}
	if s.Open == nil {
		return away("the node's agent is not connected: try again when it is")
	}
	stream, err := s.Open(ctx, at.object.TenantID, at.node, ids.ID(query.Member))
	if _, known := fault.As(err); err != nil && !known {
		return fault.New(fault.NodeUnreachable, "the connection to the node's agent broke off: try again").Because(err)
	}
	if err != nil {
		return err
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	err = nodelogs.Read(stream, query, names, each)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return faultOf(err)
}

// faultOf translates what a node answered.
func faultOf(err error) error {
	var told *nodelogs.Error
	switch {
	case errors.As(err, &told):
	case errors.Is(err, nodelogs.ErrBroken):
		return fault.New(fault.NodeUnreachable,
			"the connection to the node's agent broke off: read on after the last cursor").
			Because(err)
	default:
		return err
	}
	switch told.Code {
	case nodelogs.ProcessUnknown:
		return fault.New(fault.InvalidArgument, "the member has started no process by this name: see processes").
			At("process")
	case nodelogs.CursorAhead:
		return fault.New(fault.CursorInvalid,
			"the cursor is beyond the node's newest line: read again without one").At("after")
	case nodelogs.MemberUnknown:
		return fault.New(fault.FailedPrecondition,
			"the node has no logs of this member: it has started nothing yet, or was started by an earlier agent")
	}
	return fault.New(fault.Internal, "the node could not read the logs").Because(err)
}
