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
	// Tail is how many lines before the end it begins without a cursor; nil for the platform's own, 0 for the first.
	Tail *int
	// Since leaves out lines from before it.
	Since *time.Time
}

// MemberLogs is what the processes of a member print: what is there, then what comes, each line once, until the member
// was removed, the context ends, or an error that trying again cannot mend, which is the last item.
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
			return &graphql.Request{OpName: "WatchMemberLogs", Query: gql.WatchMemberLogs_Operation, Variables: variables}
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
