// Command adapter-in-an-hour is the adapter that docs/guides/write-an-adapter.md builds up: the app
// "pulse", whose members each write down, every few seconds, that they are alive. It uses the sdk and
// nothing else of the platform.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
)

//go:embed manifest.json
var manifest []byte

func main() {
	os.Exit(controller.Main(controller.Spec{
		Name: "pulse", Manifest: manifest,
		App: func(string) (adapter.App, error) { return pulse() },
	}))
}

// pulse is the app: what the manifest says of it, and a function for everything it can do.
func pulse() (adapter.App, error) {
	app, err := adapter.FromManifest(manifest, map[string]adapter.ActionFunc{"pulse.read": read})
	app.Operations = map[adapter.Kind]adapter.OperationFunc{
		adapter.InstanceCreate:       create,
		adapter.InstanceDecommission: decommission,
	}
	app.Check = check
	app.Observe = observe
	return app, err
}

const (
	component = "beater"
	process   = "beater"
	script    = "/srv/pulse/beat.sh"
)

// beat is what runs in a member. GPUAAS_MEMBER_ROOT is empty where the member has a file system of its
// own, and its directory where it has not.
const beat = `dir="${GPUAAS_MEMBER_ROOT:-}/srv/pulse"
while :; do
    date -u +%Y-%m-%dT%H:%M:%SZ >> "$dir/beats"
    sleep "$INTERVAL" & wait $!
done
`

// config is what the manifest's configSchema describes; the platform has checked it and filled in the
// defaults.
type config struct {
	IntervalSeconds int `json:"intervalSeconds"`
}

// check refuses what this adapter cannot do safely, before anything is done.
func check(_ context.Context, dispatch adapter.Dispatch) error {
	for i, member := range dispatch.Members {
		if member.ComponentKey != component {
			return adapter.Reject("UNKNOWN_COMPONENT", fmt.Sprintf("members[%d].componentKey", i),
				"pulse has no component %q", member.ComponentKey)
		}
	}
	return nil
}

// create brings every member up. After a crash of this program it is called again from the top: the
// steps that were finished answer at once with what they answered then.
func create(ctx context.Context, run *adapter.Run) error {
	var wanted config
	if err := run.Config(&wanted); err != nil {
		return err
	}
	beaters := run.Of(component)
	run.Progress("starting", 10, fmt.Sprintf("starting %d beaters", len(beaters)))
	if err := run.Each(ctx, beaters, func(ctx context.Context, member adapter.Member) error {
		return start(ctx, run, member, wanted)
	}); err != nil {
		return err
	}
	run.Progress("beating", 90, "every beater beats")
	return run.Evidence("beaters", len(beaters))
}

// start is three steps on one member: a file, a process, and proof that it works.
func start(ctx context.Context, run *adapter.Run, member adapter.Member, wanted config) error {
	if err := run.Member(member.ID, adapter.MemberJoining, adapter.HealthUnknown, nil); err != nil {
		return err
	}
	file := adapter.WriteFile{Path: script, Mode: "0755", Content: beat, MakeDirs: true}
	if _, err := run.Do(ctx, member, "script", file); err != nil {
		return err
	}
	supervised := adapter.StartProcess{
		Name: process, Command: shell(`exec sh "$GPUAAS_MEMBER_ROOT` + script + `"`),
		Env:     []adapter.EnvVar{{Name: "INTERVAL", Value: fmt.Sprint(max(wanted.IntervalSeconds, 1))}},
		Restart: adapter.Restart{Policy: "on_failure", MaxRestarts: 5, BackoffSeconds: 1}, StopTimeoutSeconds: 5,
	}
	if _, err := run.Do(ctx, member, "start", supervised); err != nil {
		return err
	}
	proof := adapter.Probe{
		Exec:     &adapter.ExecProbe{Command: shell(`test -s "$GPUAAS_MEMBER_ROOT/srv/pulse/beats"`)},
		Attempts: 30, IntervalSeconds: 1, TimeoutSeconds: 5,
	}
	if _, err := run.Do(ctx, member, "proof", proof); err != nil {
		return err
	}
	return run.Member(member.ID, adapter.MemberActive, adapter.Healthy, nil)
}

// decommission stops the members in good order and has their nodes prove that nothing is left. It works
// on an instance that never came up: stopping what does not run is no failure.
func decommission(ctx context.Context, run *adapter.Run) error {
	beaters := run.Of(component)
	run.Progress("stopping", 10, fmt.Sprintf("stopping %d beaters", len(beaters)))
	if err := run.Each(ctx, beaters, func(ctx context.Context, member adapter.Member) error {
		_, err := run.Try(ctx, member, "stop", adapter.StopProcess{Name: process})
		return err
	}); err != nil {
		return err
	}
	run.Progress("tearing down", 50, "deleting what the beaters left")
	return run.Teardown(ctx, beaters)
}

// observe says how the instance is right now. A node that does not answer makes a member's health
// unknown, never good.
func observe(ctx context.Context, call *adapter.Call) (adapter.Observation, error) {
	seen, running := adapter.Observation{Health: adapter.Unhealthy}, 0
	for _, member := range call.Of(component) {
		one := adapter.MemberObservation{ID: member.ID, Health: adapter.HealthUnknown,
			Message: "its node did not answer"}
		result, err := call.Try(ctx, member, "inspect", adapter.InspectProcess{Name: process})
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
	case running > 0 && running == len(seen.Members):
		seen.Health = adapter.Healthy
	case running > 0:
		seen.Health = adapter.Degraded
	}
	seen.Message = fmt.Sprintf("%d of %d beaters run", running, len(seen.Members))
	return seen, nil
}

// read is the app's one action: the last beat of every member.
func read(ctx context.Context, call *adapter.Call) (any, error) {
	var input struct{ Limit int }
	if len(call.Input) > 0 {
		if err := json.Unmarshal(call.Input, &input); err != nil {
			return nil, fmt.Errorf("read the input: %w", err)
		}
	}
	beats := []map[string]any{}
	for _, member := range call.Of(component) {
		tail := adapter.RunCommand{Command: shell(fmt.Sprintf(`tail -n %d "$GPUAAS_MEMBER_ROOT/srv/pulse/beats"`,
			max(input.Limit, 1)))}
		result, err := call.Do(ctx, member, "tail", tail)
		if err != nil {
			return nil, err
		}
		beats = append(beats, map[string]any{"member": member.ID, "beats": strings.Fields(result.Stdout)})
	}
	return map[string]any{"members": beats}, nil
}

// shell runs a script; what a caller wrote never becomes part of one.
func shell(script string) []string { return []string{"sh", "-c", script} }
