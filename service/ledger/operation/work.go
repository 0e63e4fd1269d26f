package operation

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Columns are those of a View, which Scan reads. Of the adapter's status a view needs only what an
// open operation waits for.
const Columns = rows.OperationColumns +
	`, CASE WHEN operation.ended_at IS NULL THEN operation.adapter_status -> 'waitsFor' END`

// Work is something that runs on members and that an operation waits for or would lose, as the adapter reports it.
type Work struct {
	Kind, Name, MemberID, Owner string
	// ID is unique on the platform and the same in every answer; WorkID is the adapter's.
	ID, WorkID string
	Since      *time.Time // nil when the adapter does not say
	Message    string
}

// WorkOf spells an adapter's list of an instance's work, at most adapter.MaxWork of it.
func WorkOf(instance ids.ID, list []adapter.Work) []*Work {
	out, seen := make([]*Work, 0, len(list)), make(map[string]int, len(list))
	for _, work := range list[:min(len(list), adapter.MaxWork)] {
		one := &Work{ID: workID(instance, work, seen), Kind: work.Kind, WorkID: work.ID, Name: work.Name,
			MemberID: work.MemberID, Owner: work.Owner, Message: work.Message}
		if !work.Since.IsZero() {
			one.Since = &work.Since
		}
		out = append(out, one)
	}
	return out
}

// workID names a piece of work by what an adapter says of it: two instances number their work alike, a piece may run on
// several members, and an adapter may give no id at all, where the pieces are counted.
func workID(instance ids.ID, work adapter.Work, seen map[string]int) string {
	id := strings.Join([]string{string(instance), url.PathEscape(work.Kind), work.MemberID,
		url.PathEscape(work.ID)}, "/")
	if seen[id]++; seen[id] > 1 {
		return fmt.Sprintf("%s#%d", id, seen[id])
	}
	return id
}

// WaitsFor is the work that the operation waits for, by the adapter's newest report; empty when it has ended or the
// adapter reports none.
func (v *View) WaitsFor() []*Work {
	var list []adapter.Work
	if len(v.waits) == 0 || json.Unmarshal(v.waits, &list) != nil {
		return []*Work{}
	}
	return WorkOf(rows.Value(v.InstanceID), list)
}
