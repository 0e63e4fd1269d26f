package hello

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// shutCode is the script's exit code where a peer takes no new work.
const shutCode = 3

func input(call *adapter.Call, out any) error {
	if len(call.Input) == 0 {
		return nil
	}
	if err := json.Unmarshal(call.Input, out); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	return nil
}

func say(ctx context.Context, call *adapter.Call) (any, error) {
	var in struct{ Name string }
	if err := input(call, &in); err != nil {
		return nil, err
	}
	with, err := settingsOf(call.Instance.Version, call.Instance.Config)
	if err != nil {
		return nil, err
	}
	greetings := []map[string]string{}
	for _, peer := range call.Of(component) {
		text := fmt.Sprintf("%s, %s! This is %s.", with.greeting, oneLine(in.Name), name(peer))
		// The text travels on standard input: nothing a caller wrote becomes part of a command.
		note := adapter.RunCommand{Command: shell(`cat >> "$GPUAAS_MEMBER_ROOT` + heardPath + `"`), Stdin: text + "\n"}
		if _, err := call.Do(ctx, peer, "say", note); err != nil {
			return nil, err
		}
		greetings = append(greetings, map[string]string{"peer": name(peer), "node": peer.Node.Name, "text": text})
	}
	return map[string]any{"greetings": greetings}, nil
}

func list(ctx context.Context, call *adapter.Call) (any, error) {
	in := struct{ Limit int }{Limit: 20}
	if err := input(call, &in); err != nil {
		return nil, err
	}
	peers := []map[string]any{}
	for _, peer := range call.Of(component) {
		read := adapter.RunCommand{Command: shell(fmt.Sprintf(`f="$GPUAAS_MEMBER_ROOT%s"; test ! -f "$f" || tail -n %d "$f"`, heardPath, in.Limit))}
		result, err := call.Do(ctx, peer, "list", read)
		if err != nil {
			return nil, err
		}
		peers = append(peers, map[string]any{"peer": name(peer), "greetings": lines(result.Stdout)})
	}
	return map[string]any{"peers": peers}, nil
}

// startWork begins a piece of work on a peer, or on the first that takes some. The peers decide
// themselves, so that a repeat of the action finds the same peer.
func startWork(ctx context.Context, call *adapter.Call) (any, error) {
	in := struct {
		Member, Name string
		Seconds      int
	}{Name: "work"}
	if err := input(call, &in); err != nil {
		return nil, err
	}
	begin := verb("begin", strconv.Itoa(in.Seconds), call.Requester.ID, oneLine(in.Name))
	found := false
	for _, peer := range call.Of(component) {
		if in.Member != "" && in.Member != peer.ID && in.Member != name(peer) {
			continue
		}
		found = true
		if !peer.Node.IsReachable() {
			continue
		}
		result, err := call.Try(ctx, peer, "begin", begin, adapter.Within(quick))
		switch {
		case err != nil:
			return nil, err
		case result.State == adapter.TaskSucceeded && strings.TrimSpace(result.Stdout) != "":
			return map[string]any{"id": strings.TrimSpace(result.Stdout), "peer": name(peer), "memberId": peer.ID}, nil
		case result.State != adapter.TaskSucceeded && (result.ExitCode == nil || *result.ExitCode != shutCode):
			return nil, adapter.Fail("WORK_NOT_STARTED", adapter.OwnerNode, true, "%s did not start the work: %s", name(peer), result.Message)
		}
	}
	if in.Member != "" && !found {
		return nil, adapter.Reject("NO_SUCH_PEER", "input.member", "no peer is called %q", in.Member)
	}
	return nil, adapter.Reject("NO_PEER_AVAILABLE", "input.member", "no peer takes new work now")
}

// listWork lists the work of every peer; a peer that cannot be asked is named.
func listWork(ctx context.Context, call *adapter.Call) (any, error) {
	work, silent := []map[string]any{}, []string{}
	for _, one := range ask(ctx, call, call.Of(component)) {
		if !one.heard {
			silent = append(silent, name(one.peer))
		}
		for _, piece := range one.work {
			work = append(work, map[string]any{
				"id": piece.ID, "name": piece.Name, "owner": piece.Owner, "peer": name(one.peer), "memberId": piece.MemberID, "since": piece.Since,
			})
		}
	}
	return map[string]any{"work": work, "notAsked": silent}, nil
}
