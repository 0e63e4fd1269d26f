package operation

import (
	"encoding/json"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Columns are those of a View, which Scan reads. Of the adapter's status a view needs only what an
// open operation waits for.
const Columns = rows.OperationColumns + `, CASE WHEN operation.ended_at IS NULL THEN operation.adapter_status -> 'waitsFor' END`

// Work is something that runs on members and that an operation waits for or would lose, by the
// adapter's word.
type Work struct {
	Kind, ID, Name, MemberID, Owner string
	Since                           *time.Time // nil when the adapter does not say
	Message                         string
}

// WorkOf spells an adapter's list of work, at most adapter.MaxWork of it.
func WorkOf(list []adapter.Work) []*Work {
	out := make([]*Work, 0, len(list))
	for _, work := range list[:min(len(list), adapter.MaxWork)] {
		one := &Work{Kind: work.Kind, ID: work.ID, Name: work.Name, MemberID: work.MemberID, Owner: work.Owner, Message: work.Message}
		if !work.Since.IsZero() {
			one.Since = &work.Since
		}
		out = append(out, one)
	}
	return out
}

// WaitsFor is the work that the operation waits for, by the adapter's newest word; empty when it has
// ended or the adapter says nothing.
func (v *View) WaitsFor() []*Work {
	var list []adapter.Work
	if len(v.waits) == 0 || json.Unmarshal(v.waits, &list) != nil {
		return []*Work{}
	}
	return WorkOf(list)
}
