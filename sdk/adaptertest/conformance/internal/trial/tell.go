package trial

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/text"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/run"
)

const (
	// maxDiffs is how many differences between two bodies a report shows, maxValue how many bytes of a value in one.
	maxDiffs = 12
	maxValue = 200
	// maxTasks is how many of a clause's failed node tasks a report shows.
	maxTasks = 4
)

// letterSent is a request of the present clause with its answer.
type letterSent struct {
	sent, came []byte
	status     int
}

// differ records what differs from the last request of the clause to the same route: these lines show whether a request
// repeats that one, without reading two bodies.
func (c *Check) differ(l Letter, answer Reply, exchange *run.Exchange) {
	route := l.Method + " " + l.Target
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent == nil {
		c.sent = map[string]letterSent{}
	}
	if before, ok := c.sent[route]; ok && len(l.Body) > 0 {
		exchange.SentDiff = diff(before.sent, l.Body)
	}
	if before, ok := c.sent[route]; ok && before.status == answer.Status {
		exchange.CameDiff = diff(before.came, answer.Body)
	}
	c.sent[route] = letterSent{sent: l.Body, came: answer.Body, status: answer.Status}
}

// diff returns what differs between two JSON bodies, a line for each place: its path, the old and the new value. Bodies
// that are not JSON, or the same, have no lines.
func diff(before, after []byte) (lines []string) {
	var was, is any
	if bytes.Equal(before, after) || json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &is) != nil {
		return nil
	}
	compare("", was, is, &lines)
	if over := len(lines) - maxDiffs; over > 0 {
		lines = append(lines[:maxDiffs], fmt.Sprintf("and %d more", over))
	}
	return lines
}

func compare(path string, was, is any, lines *[]string) {
	switch was := was.(type) {
	case map[string]any:
		if is, ok := is.(map[string]any); ok {
			compareObjects(path, was, is, lines)
			return
		}
	case []any:
		if is, ok := is.([]any); ok && len(is) == len(was) {
			for n := range was {
				compare(fmt.Sprintf("%s[%d]", path, n), was[n], is[n], lines)
			}
			return
		}
	}
	if one, other := shown(was), shown(is); one != other {
		*lines = append(*lines, fmt.Sprintf("%s: %s became %s", path, text.Clip(one, maxValue),
			text.Clip(other, maxValue)))
	}
}

func compareObjects(path string, was, is map[string]any, lines *[]string) {
	names := maps.Clone(was)
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		at := name
		if path != "" {
			at = path + "." + name
		}
		one, had := was[name]
		other, has := is[name]
		switch {
		case !had:
			*lines = append(*lines, fmt.Sprintf("%s: %s was added", at, text.Clip(shown(other), maxValue)))
		case !has:
			*lines = append(*lines, fmt.Sprintf("%s: %s was left out", at, text.Clip(shown(one), maxValue)))
		default:
			compare(at, one, other, lines)
		}
	}
}

func shown(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return text.HideTokens(string(raw))
}

// failedTasks returns the last node tasks that failed during the clause, and not because the suite had them fail.
func (c *Check) failedTasks() (tasks []run.FailedTask) {
	for _, entry := range c.Platform.Since(c.began) {
		if !entry.Begun || entry.State == adapter.TaskSucceeded || !entry.State.Ended() {
			continue
		}
		tasks = append(tasks, run.FailedTask{
			Member: entry.Member, Kind: string(entry.Kind), State: string(entry.State), Key: entry.Key,
			Spec: text.HideTokens(string(entry.Spec)), Message: text.HideTokens(entry.Message),
			ExitCode: entry.ExitCode,
			Stdout:   text.HideTokens(entry.Stdout), Stderr: text.HideTokens(entry.Stderr),
		})
	}
	return tasks[max(0, len(tasks)-maxTasks):]
}
