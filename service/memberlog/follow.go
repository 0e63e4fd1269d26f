package memberlog

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/sdk/nodelogs"
)

const (
	// awayPatience is how long a follower waits for a node whose agent is away: a restarted agent is back by then.
	awayPatience = 45 * time.Second
	// againFirst and againMost are the shortest and the longest pause before a node is tried again.
	againFirst, againMost = 250 * time.Millisecond, 4 * time.Second
)

// Follow opens a member's logs to read them as they are printed, beginning as Page does. It requires
// <family>.member.logs; a caller that keeps it open calls Check from time to time. Its faults are those of Page.
func (s *Service) Follow(ctx context.Context, in Input) (*Following, error) {
	query, err := in.query()
	if err != nil {
		return nil, err
	}
	at, err := s.admit(ctx, in, true)
	if err != nil {
		return nil, err
	}
	query.Follow = true
	return &Following{service: s, at: at, query: query, position: newPosition(query)}, nil
}

// Following is an opened log.
type Following struct {
	service  *Service
	at       *place
	query    nodelogs.Query
	position *position
}

// Run hands on lines until the member was removed, ctx ends, or each returns an error. It waits for each. An agent that
// goes away is waited for, and goes on where it was: each line comes once. One that is away at the beginning is
// NODE_UNREACHABLE. Run is called once.
func (f *Following) Run(ctx context.Context, each func(*Line) error) error {
	pass := func(line nodelogs.Line) error {
		f.position.pass(line)
		if line.Mark {
			return nil
		}
		return each(lineOf(line, f.position.cursor()))
	}
	names := func([]string) error { return nil }
	if f.at.evidence != nil {
		return last(f.at.evidence, f.query, names, pass)
	}
	pause, waited, reached := againFirst, time.Duration(0), false
	for {
		err := f.service.read(ctx, f.at, f.query, func([]string) error {
			pause, waited, reached = againFirst, 0, true // it is back
			return nil
		}, pass)
		if !fault.Is(err, fault.NodeUnreachable) || ctx.Err() != nil || !reached || waited > awayPatience {
			return err
		}
		f.goOn()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		waited += pause
		pause = min(2*pause, againMost)
	}
}

// goOn moves the query behind the last line that was handed on. Before the first line the query stays as it is.
func (f *Following) goOn() {
	if len(f.position.After) > 0 {
		f.query.After, f.query.Tail = f.position.After, 0
	}
}
