package hello

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/usagelog"
)

// shutCode is the exit code with which the script refuses new work.
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

// served is the dimension that hello.say counts.
const served = "greetings.served"

// counter counts what actions serve.
type counter struct{ log *usagelog.Log }

// say has every peer greet. Usage is recorded by call and peer, so that a repeat of the call counts nothing twice.
func (c counter) say(ctx context.Context, call *adapter.Call) (any, error) {
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
		at := time.Now().UTC().Truncate(time.Second)
		err := c.log.Add(call.Instance.ID, adapter.UsageRecord{ID: call.Key() + "." + peer.ID, Dimension: served,
			Quantity: "1",
			From:     at, To: at, MemberID: peer.ID})
		if err != nil {
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
		read := adapter.RunCommand{Command: shell(fmt.Sprintf(
			`f="$GPUAAS_MEMBER_ROOT%s"; test ! -f "$f" || tail -n %d "$f"`, heardPath, in.Limit))}
		result, err := call.Do(ctx, peer, "list", read)
		if err != nil {
			return nil, err
		}
		peers = append(peers, map[string]any{"peer": name(peer), "greetings": lines(result.Stdout)})
	}
	return map[string]any{"peers": peers}, nil
}

// startWork begins a piece of work on the peer that the caller names, or on the first that accepts it. The peers decide
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
			return nil, adapter.Fail("WORK_NOT_STARTED", adapter.OwnerNode, true, "%s did not start the work: %s",
				name(peer), result.Message)
		}
	}
	if in.Member != "" && !found {
		return nil, adapter.Reject("NO_SUCH_PEER", "input.member", "no peer is called %q", in.Member)
	}
	return nil, adapter.Reject("NO_PEER_AVAILABLE", "input.member", "no peer takes new work now")
}

// listWork lists the work of every peer, and names the peers that did not answer.
func listWork(ctx context.Context, call *adapter.Call) (any, error) {
	work, silent := []map[string]any{}, []string{}
	for _, one := range ask(ctx, call, call.Of(component)) {
		if !one.heard {
			silent = append(silent, name(one.peer))
		}
		for _, piece := range one.work {
			work = append(work, map[string]any{
				"id": piece.ID, "name": piece.Name, "owner": piece.Owner, "peer": name(one.peer),
				"memberId": piece.MemberID,
				"since":    piece.Since,
			})
		}
	}
	return map[string]any{"work": work, "notAsked": silent}, nil
}

// usage returns the usage records after a cursor.
func (c counter) usage(_ context.Context, call *adapter.Call, after string) (adapter.UsagePage, error) {
	return c.log.Page(call.Instance.ID, after)
}
