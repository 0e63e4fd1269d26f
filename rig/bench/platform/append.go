package platform

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Append is the arg of the command "append": events to write to an instance's timeline, as the
// workers of this process would.
type Append struct {
	Instance ids.ID
	First    int      // the number of the first
	Messages []string // one event each
	Together int      // events a transaction
}

// append writes the events and answers when the transaction of each had committed.
func (p *platform) append(ctx context.Context, raw json.RawMessage) (map[int]int64, error) {
	var in Append
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	committed := make(map[int]int64, len(in.Messages))
	for from := 0; from < len(in.Messages); from += in.Together {
		part := in.Messages[from:min(from+in.Together, len(in.Messages))]
		if err := p.appendOnce(ctx, in.Instance, part); err != nil {
			return nil, err
		}
		now := time.Now().UnixNano()
		for i := range part {
			committed[in.First+from+i] = now
		}
	}
	return committed, nil
}

func (p *platform) appendOnce(ctx context.Context, id ids.ID, messages []string) error {
	return p.db.As(ctx, authz.System("bench"), func(ctx context.Context, t *tx.Tx) error {
		row, err := t.Instance.Get(ctx, id)
		if err != nil {
			return fmt.Errorf("load instance %s: %w", id, err)
		}
		drafts := make([]event.Draft, len(messages))
		for i, message := range messages {
			drafts[i] = event.Draft{Type: lifecycle.EventOperationProgress, Message: message,
				Payload: map[string]any{"percent": i}}
		}
		return event.Append(ctx, t, row, drafts...)
	})
}
