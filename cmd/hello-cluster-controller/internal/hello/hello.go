// Package hello is the app hello-cluster: one process for each member, kept alive by the node's
// agent, and two actions that talk to them by node tasks.
package hello

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// component is the only kind of member; process is what runs in each.
const (
	component = "peer"
	process   = "peer"
)

//go:embed peer.sh
var peerScript string

const (
	scriptPath = "/srv/hello/peer.sh"
	heardPath  = "/srv/hello/heard"
)

// Config is an instance's configuration.
type Config struct {
	// Greeting is what a peer says before a name.
	Greeting string `json:"greeting"`
}

// App returns the app described by this manifest.
func App(manifest []byte) (adapter.App, error) {
	app, err := adapter.FromManifest(manifest, map[string]adapter.ActionFunc{
		"hello.say": say, "hello.list": list,
	})
	app.Operations = map[adapter.Kind]adapter.OperationFunc{
		adapter.InstanceCreate:       create,
		adapter.InstanceDecommission: decommission,
	}
	app.Check = check
	app.Observe = observe
	return app, err
}

// check refuses what the app does not know, before anything is done.
func check(_ context.Context, d adapter.Dispatch) error {
	for i, member := range d.Members {
		if member.ComponentKey != component {
			return adapter.Reject("UNKNOWN_COMPONENT", fmt.Sprintf("members[%d].componentKey", i), "hello-cluster has no component %q", member.ComponentKey)
		}
	}
	return nil
}

func create(ctx context.Context, run *adapter.Run) error {
	peers := run.Of(component)
	run.Progress("starting peers", 10, fmt.Sprintf("starting %d peers", len(peers)))
	if err := run.Each(ctx, peers, func(ctx context.Context, peer adapter.Member) error {
		return startPeer(ctx, run, peer)
	}); err != nil {
		return err
	}
	run.Progress("listening", 90, "every peer runs")
	return run.Evidence("peers", len(peers))
}

// startPeer writes the script, starts it and waits for its first sign of life.
func startPeer(ctx context.Context, run *adapter.Run, peer adapter.Member) error {
	if err := run.Member(peer.ID, adapter.MemberJoining, adapter.HealthUnknown, nil); err != nil {
		return err
	}
	script := adapter.WriteFile{Path: scriptPath, Mode: "0755", Content: peerScript, MakeDirs: true}
	if _, err := run.Do(ctx, peer, "script", script); err != nil {
		return err
	}
	start := adapter.StartProcess{
		Name: process, Command: shell(`exec sh "$GPUAAS_MEMBER_ROOT` + scriptPath + `"`),
		Env:     []adapter.EnvVar{{Name: "PEER_NAME", Value: name(peer)}},
		Restart: adapter.Restart{Policy: "on_failure", MaxRestarts: 5, BackoffSeconds: 1}, StopTimeoutSeconds: 5,
	}
	if _, err := run.Do(ctx, peer, "start", start); err != nil {
		return err
	}
	alive := adapter.Probe{Exec: &adapter.ExecProbe{Command: shell(`test -f "$GPUAAS_MEMBER_ROOT/srv/hello/alive"`)}, Attempts: 30, IntervalSeconds: 1, TimeoutSeconds: 5}
	if _, err := run.Do(ctx, peer, "alive", alive); err != nil {
		return err
	}
	return run.Member(peer.ID, adapter.MemberActive, adapter.Healthy, map[string]any{"name": name(peer), "node": peer.Node.Name})
}

// decommission stops the peers in good order and then has each node prove that nothing is left. A
// stop that fails, on a member that never came to be, is no reason not to tear down.
func decommission(ctx context.Context, run *adapter.Run) error {
	peers := run.Of(component)
	run.Progress("stopping peers", 10, fmt.Sprintf("stopping %d peers", len(peers)))
	if err := run.Each(ctx, peers, func(ctx context.Context, peer adapter.Member) error {
		_, err := run.Try(ctx, peer, "stop", adapter.StopProcess{Name: process})
		return err
	}); err != nil {
		return err
	}
	run.Progress("tearing down", 50, "deleting what the peers left")
	return run.Teardown(ctx, peers)
}

func say(ctx context.Context, call *adapter.Call) (any, error) {
	var input struct{ Name string }
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	config := Config{Greeting: "Hello"}
	if len(call.Instance.Config) > 0 {
		if err := json.Unmarshal(call.Instance.Config, &config); err != nil {
			return nil, fmt.Errorf("read config: %w", err)
		}
	}
	greetings := []map[string]string{}
	for _, peer := range call.Of(component) {
		text := fmt.Sprintf("%s, %s! This is %s.", config.Greeting, oneLine(input.Name), name(peer))
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
	input := struct{ Limit int }{Limit: 20}
	if len(call.Input) > 0 {
		if err := json.Unmarshal(call.Input, &input); err != nil {
			return nil, fmt.Errorf("read input: %w", err)
		}
	}
	peers := []map[string]any{}
	for _, peer := range call.Of(component) {
		read := adapter.RunCommand{Command: shell(fmt.Sprintf(`f="$GPUAAS_MEMBER_ROOT%s"; test ! -f "$f" || tail -n %d "$f"`, heardPath, input.Limit))}
		result, err := call.Do(ctx, peer, "list", read)
		if err != nil {
			return nil, err
		}
		peers = append(peers, map[string]any{"peer": name(peer), "greetings": lines(result.Stdout)})
	}
	return map[string]any{"peers": peers}, nil
}

// observe asks each node how its peer's process is. A node that does not answer makes the peer's
// health unknown, never good.
func observe(ctx context.Context, call *adapter.Call) (adapter.Observation, error) {
	seen := adapter.Observation{Health: adapter.Healthy}
	running := 0
	for _, peer := range call.Of(component) {
		one := adapter.MemberObservation{ID: peer.ID, Health: adapter.HealthUnknown, Message: "its node did not answer"}
		result, err := call.Try(ctx, peer, "inspect", adapter.InspectProcess{Name: process})
		if err != nil {
			return seen, err
		}
		if state, ok := result.Process(); ok {
			one.Health, one.Message = adapter.Unhealthy, "its process is "+state.State
			if state.State == "running" {
				one.Health, running = adapter.Healthy, running+1
			}
		}
		seen.Members = append(seen.Members, one)
	}
	switch {
	case running == 0:
		seen.Health = adapter.Unhealthy
	case running < len(seen.Members):
		seen.Health = adapter.Degraded
	}
	seen.Message = fmt.Sprintf("%d of %d peers run", running, len(seen.Members))
	return seen, nil
}

func name(peer adapter.Member) string { return fmt.Sprintf("peer-%d", peer.Index) }

func shell(script string) []string { return []string{"sh", "-c", script} }

// oneLine keeps a greeting one line of the file.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
}

func lines(text string) []string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return []string{}
	}
	return strings.Split(text, "\n")
}
