package live

import (
	"context"

	"github.com/gpuaas/app-platform/service/memberlog"
)

// Logs follows what members print, each subscription by a stream of its own: what is read is never kept.
type Logs struct {
	Service  *memberlog.Service
	Sentinel *Sentinel
}

// Watch sends the lines of a member as they are printed, and closes the channel after the member was removed. It waits
// for its caller: a slow one gets a gap where the node has dropped lines. end is called with the reason when the caller
// of ctx loses the right, or the member's node stays away. Watch requires <family>.member.logs.
func (l *Logs) Watch(ctx context.Context, in memberlog.Input, end func(error)) (<-chan *memberlog.Line, error) {
	following, err := l.Service.Follow(ctx, in)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	forget := l.Sentinel.Watch(ctx, "logs of "+string(in.MemberID), func(ctx context.Context) error {
		return l.Service.Check(ctx, in.MemberID)
	}, func(err error) { end(err); cancel() })
	out := make(chan *memberlog.Line)
	go func() {
		defer cancel()
		defer close(out)
		defer forget()
		err := following.Run(ctx, func(line *memberlog.Line) error {
			select {
			case out <- line:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err != nil && ctx.Err() == nil {
			end(err)
		}
	}()
	return out, nil
}
