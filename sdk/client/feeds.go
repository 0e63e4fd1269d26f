package client

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"

	"github.com/Khan/genqlient/graphql"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// recentEvents bounds how many delivered events a project's feed remembers to drop those that arrive twice.
const recentEvents = 4096

// Timeline follows an instance's timeline: the events after the cursor ("" for the beginning), then new ones, each
// once and in order, until the context ends or an error occurs that another try cannot repair, which is the last
// item. An event's Cursor is where a later Timeline resumes.
func (c *Client) Timeline(ctx context.Context, instanceID, after string) iter.Seq2[*gql.Event, error] {
	return func(yield func(*gql.Event, error) bool) {
		cursor, last := after, 0
		f := &feed[gql.Event]{client: c}
		f.request = func() *graphql.Request {
			return request("WatchTimeline", gql.WatchTimeline_Operation, "instanceId", instanceID, "after", cursor)
		}
		f.decode = func(data json.RawMessage) (*gql.Event, error) {
			var answer gql.WatchTimelineResponse
			err := json.Unmarshal(data, &answer)
			return &answer.InstanceTimeline, err
		}
		f.accept = func(event *gql.Event) verdict {
			if event.Seq <= last {
				return drop
			}
			if last > 0 && event.Seq != last+1 {
				return resume
			}
			cursor, last = event.Cursor, event.Seq
			return deliver
		}
		f.all(ctx)(yield)
	}
}

// ProjectActivity follows all events of a project, in the order of their commits: those after the cursor ("" for
// now), then new ones, each once. It ends as Timeline does. A feed without a cursor whose connection breaks before
// the first event begins again at the time of the reconnect.
func (c *Client) ProjectActivity(ctx context.Context, projectID, after string) iter.Seq2[*gql.Event, error] {
	return func(yield func(*gql.Event, error) bool) {
		cursor, seen := after, newRecent(recentEvents)
		f := &feed[gql.Event]{client: c}
		f.request = func() *graphql.Request {
			return request("WatchProject", gql.WatchProject_Operation, "projectId", projectID, "after", cursor)
		}
		f.decode = func(data json.RawMessage) (*gql.Event, error) {
			var answer gql.WatchProjectResponse
			err := json.Unmarshal(data, &answer)
			return &answer.ProjectActivity, err
		}
		f.accept = func(event *gql.Event) verdict {
			if !seen.add(event.Id) {
				return drop
			}
			cursor = event.Cursor
			return deliver
		}
		f.all(ctx)(yield)
	}
}

// OperationProgress follows an operation: its present state, then each change. It ends without an error when the
// operation has ended. What a reconnect repeats unchanged is dropped.
func (c *Client) OperationProgress(ctx context.Context, operationID string) iter.Seq2[*gql.OperationDetail, error] {
	return func(yield func(*gql.OperationDetail, error) bool) {
		var last []byte
		f := &feed[gql.OperationDetail]{client: c}
		f.request = func() *graphql.Request {
			return request("WatchOperation", gql.WatchOperation_Operation, "operationId", operationID, "", "")
		}
		f.decode = func(data json.RawMessage) (*gql.OperationDetail, error) {
			var answer gql.WatchOperationResponse
			err := json.Unmarshal(data, &answer)
			return &answer.OperationProgress, err
		}
		f.accept = func(op *gql.OperationDetail) verdict {
			now, err := json.Marshal(op)
			if err == nil && bytes.Equal(now, last) {
				return drop
			}
			last = now
			return deliver
		}
		f.all(ctx)(yield)
	}
}

// NodeTasks follows the work of the calling node: every task that has not ended, then each new or changed one. After
// a reconnect all that have not ended come again, so that none is missed: the reader recognises them by id and fence.
func (c *Client) NodeTasks(ctx context.Context) iter.Seq2[*gql.NodeWork, error] {
	f := &feed[gql.NodeWork]{client: c}
	f.request = func() *graphql.Request {
		return request("WatchNodeTasks", gql.WatchNodeTasks_Operation, "", "", "", "")
	}
	f.decode = func(data json.RawMessage) (*gql.NodeWork, error) {
		var answer gql.WatchNodeTasksResponse
		err := json.Unmarshal(data, &answer)
		return &answer.NodeTasks, err
	}
	f.accept = func(*gql.NodeWork) verdict { return deliver }
	return f.all(ctx)
}

// request returns a subscription with up to two variables; an empty one is left out.
func request(name, query, firstKey, first, secondKey, second string) *graphql.Request {
	variables := map[string]string{}
	if firstKey != "" && first != "" {
		variables[firstKey] = first
	}
	if secondKey != "" && second != "" {
		variables[secondKey] = second
	}
	return &graphql.Request{OpName: name, Query: query, Variables: variables}
}

// recent remembers the last ids given to it, up to its bound.
type recent struct {
	ids  map[string]struct{}
	ring []string
	next int
}

func newRecent(bound int) *recent {
	return &recent{ids: make(map[string]struct{}), ring: make([]string, bound)}
}

// add remembers the id and reports whether it was new.
func (r *recent) add(id string) bool {
	if _, known := r.ids[id]; known {
		return false
	}
	delete(r.ids, r.ring[r.next])
	r.ids[id], r.ring[r.next] = struct{}{}, id
	r.next = (r.next + 1) % len(r.ring)
	return true
}
