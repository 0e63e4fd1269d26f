package client

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/Khan/genqlient/graphql"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// LogsFrom says which lines MemberLogs begins with.
type LogsFrom struct {
	// Process is the only process; empty for all.
	Process string
	// After is the cursor of the last line that the reader has.
	After string
	// Tail begins with so many of the last lines where After is empty; nil for the platform's default, 0 for all.
	Tail *int
	// Since leaves out lines from before it.
	Since *time.Time
}

// MemberLogs follows the output of a member's processes: the kept lines, then new ones, each once, until the member is
// removed, the context ends, or an error occurs that another try cannot repair, which is the last item.
func (c *Client) MemberLogs(ctx context.Context, memberID string, from LogsFrom) iter.Seq2[*gql.LogLine, error] {
	return func(yield func(*gql.LogLine, error) bool) {
		f := &feed[gql.LogLine]{client: c}
		f.request = func() *graphql.Request {
			variables := map[string]any{"memberId": memberID}
			for name, text := range map[string]string{"process": from.Process, "after": from.After} {
				if text != "" {
					variables[name] = text
				}
			}
			if from.Tail != nil {
				variables["tail"] = *from.Tail
			}
			if from.Since != nil {
				variables["since"] = from.Since.UTC()
			}
			return &graphql.Request{OpName: "WatchMemberLogs", Query: gql.WatchMemberLogs_Operation,
				Variables: variables}
		}
		f.decode = func(data json.RawMessage) (*gql.LogLine, error) {
			var answer gql.WatchMemberLogsResponse
			err := json.Unmarshal(data, &answer)
			return &answer.MemberLogs, err
		}
		f.accept = func(line *gql.LogLine) verdict {
			from.After = line.Cursor
			return deliver
		}
		f.all(ctx)(yield)
	}
}
