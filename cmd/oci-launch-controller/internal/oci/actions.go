package oci

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// maxLog is the most that an action answers of one container's log, and maxLogs of all together, in bytes.
const (
	maxLog  = 32 << 10
	maxLogs = 192 << 10
)

// chosen are the members that an action is about: the named one, or all.
func chosen(call *adapter.Call, wanted string) ([]adapter.Member, error) {
	var list []adapter.Member
	for _, member := range call.Of(component) {
		if wanted == "" || wanted == member.ID || wanted == name(member) {
			list = append(list, member)
		}
	}
	if len(list) == 0 {
		return nil, adapter.Reject("NO_SUCH_MEMBER", "input.member", "no member is called %q", wanted)
	}
	return list, nil
}

func input(call *adapter.Call, out any) error {
	if len(call.Input) == 0 {
		return nil
	}
	if err := json.Unmarshal(call.Input, out); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	return nil
}

// readLogs answers the end of what containers wrote. A node that does not answer is named.
func readLogs(ctx context.Context, call *adapter.Call) (any, error) {
	in := struct {
		Member string
		Lines  int
	}{Lines: 100}
	if err := input(call, &in); err != nil {
		return nil, err
	}
	members, err := chosen(call, in.Member)
	if err != nil {
		return nil, err
	}
	logs, silent := []map[string]any{}, []string{}
	share := min(maxLog, maxLogs/len(members))
	for _, member := range members {
		bounded, cancel := context.WithTimeout(ctx, askTime)
		result, err := call.Try(bounded, member, "logs", verb("logs", strconv.Itoa(in.Lines)), adapter.Within(askTime))
		cancel()
		if err != nil || result.State != adapter.TaskSucceeded {
			silent = append(silent, name(member))
			continue
		}
		text, cut := end(result.Stdout, share)
		logs = append(logs, map[string]any{"memberId": member.ID, "member": name(member), "text": text,
			"truncated": cut ||
				result.Truncated})
	}
	return map[string]any{"logs": logs, "notAsked": silent}, nil
}

// end is the last whole lines of a text that fit into so many bytes.
func end(text string, limit int) (string, bool) {
	if len(text) <= limit {
		return text, false
	}
	text = text[len(text)-limit:]
	if _, rest, ok := strings.Cut(text, "\n"); ok {
		return rest, true
	}
	return strings.ToValidUTF8(text, ""), true
}

// restart stops and starts containers, one at a time by health, in the release that they have. What they have counted
// is read before; where a node does not answer, nothing is stopped.
func (m *meter) restart(ctx context.Context, call *adapter.Call) (any, error) {
	var in struct{ Member string }
	if err := input(call, &in); err != nil {
		return nil, err
	}
	members, err := chosen(call, in.Member)
	if err != nil {
		return nil, err
	}
	if silent := m.collect(ctx, call, members); len(silent) > 0 {
		return nil, adapter.Fail("NODE_SILENT", adapter.OwnerNode, true,
			"nothing was restarted: the node of %s does not answer now; try again", name(silent[0]))
	}
	done := []string{}
	for _, member := range members {
		if member.Status != string(adapter.MemberActive) {
			continue
		}
		if err := restartOne(ctx, call, member); err != nil {
			return nil, err
		}
		done = append(done, name(member))
	}
	return map[string]any{"restarted": done}, nil
}

func restartOne(ctx context.Context, call *adapter.Call, member adapter.Member) error {
	found, err := call.Do(ctx, member, "started", verb("started"), adapter.Within(quick))
	if err != nil {
		return err
	}
	var start adapter.StartProcess
	if err := json.Unmarshal([]byte(found.Stdout), &start); err != nil || len(start.Command) == 0 {
		return adapter.Fail("NOTHING_TO_START", adapter.OwnerNode, true, "%s has no container to start", name(member))
	}
	if _, err := call.Do(ctx, member, "stop", adapter.StopProcess{Name: process},
		adapter.Within(stopTime)); err != nil {
		return err
	}
	if _, err := call.Do(ctx, member, "start", start, adapter.Within(quick)); err != nil {
		return err
	}
	well := adapter.Probe{Exec: &adapter.ExecProbe{Command: verb("ready").Command}, Attempts: 20, IntervalSeconds: 0.5,
		TimeoutSeconds: 5}
	_, err = call.Do(ctx, member, "well", well, adapter.Within(quick))
	return err
}
