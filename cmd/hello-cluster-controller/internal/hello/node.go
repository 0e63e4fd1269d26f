package hello

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

//go:embed hello.sh
var script string

// Paths of a member's files, below its root.
const (
	scriptPath   = "/srv/hello/hello.sh"
	settingsPath = "/srv/hello/settings"
	labelsPath   = "/srv/hello/labels.json"
	heardPath    = "/srv/hello/heard"
)

const (
	// quick bounds a task that a healthy node finishes at once.
	quick = 10 * time.Second
	// askTime bounds the poll of one member: the platform waits for the answer about the whole instance.
	askTime = 5 * time.Second
)

func shell(script string) []string { return []string{"sh", "-c", script} }

// verb returns a command that runs a verb of the script. Where the script was never written, no verb has ever run: the
// command succeeds and prints nothing.
func verb(args ...string) adapter.RunCommand {
	guard := shell(`f="$GPUAAS_MEMBER_ROOT` + scriptPath + `"; test -f "$f" || exit 0; exec sh "$f" "$@"`)
	return adapter.RunCommand{Command: append(append(guard, "hello"), args...)}
}

// settings are what a peer runs with.
type settings struct {
	version  string
	greeting string
}

func settingsOf(version string, config json.RawMessage) (settings, error) {
	read := Config{Greeting: "Hello"}
	if len(config) > 0 {
		if err := json.Unmarshal(config, &read); err != nil {
			return settings{}, fmt.Errorf("read config: %w", err)
		}
	}
	return settings{version: version, greeting: read.Greeting}, nil
}

func (s settings) file() adapter.WriteFile {
	return adapter.WriteFile{Path: settingsPath, MakeDirs: true,
		Content: fmt.Sprintf("version %s\ngreeting %s\n", oneLine(s.version), oneLine(s.greeting))}
}

// launch brings a peer to these settings, whatever it ran with before: it stops the peer, writes the settings, starts
// it and waits until it runs. The prefix keeps the steps of two launches in one operation distinct.
func launch(ctx context.Context, run *adapter.Run, peer adapter.Member, prefix string, with settings) error {
	start := adapter.StartProcess{
		Name: process, Command: shell(`exec sh "$GPUAAS_MEMBER_ROOT` + scriptPath + `" peer`),
		Env:     []adapter.EnvVar{{Name: "PEER_NAME", Value: name(peer)}},
		Restart: adapter.Restart{Policy: "on_failure", MaxRestarts: 5, BackoffSeconds: 1}, StopTimeoutSeconds: 5,
	}
	up := adapter.Probe{Exec: &adapter.ExecProbe{Command: verb("up").Command}, Attempts: 100, IntervalSeconds: 0.3,
		TimeoutSeconds: 5}
	for _, step := range []struct {
		name string
		task adapter.NodeTask
	}{
		{"stop", adapter.StopProcess{Name: process}},
		{"script", adapter.WriteFile{Path: scriptPath, Mode: "0755", Content: script, MakeDirs: true}},
		{"settings", with.file()},
		{"fresh", verb("fresh")},
		{"start", start},
		{"up", up},
	} {
		if _, err := run.Do(ctx, peer, prefix+step.name, step.task); err != nil {
			return err
		}
	}
	return nil
}

// tell runs a verb on every peer that can be reached, and returns the names of the peers that did not run it. Such a
// peer does not stop the operation: its recovery writes its whole list again.
func tell(ctx context.Context, run *adapter.Run, peers []adapter.Member, step, what, lines string) (missed []string,
	err error) {
	failed := make([]bool, len(peers))
	at := make(map[string]int, len(peers))
	for i, peer := range peers {
		at[peer.ID] = i
	}
	err = run.Each(ctx, peers, func(ctx context.Context, peer adapter.Member) error {
		failed[at[peer.ID]] = true
		if !peer.Node.IsReachable() {
			return nil
		}
		bounded, cancel := context.WithTimeout(ctx, quick)
		defer cancel()
		task := verb(what)
		task.Stdin = lines
		result, err := run.Try(bounded, peer, step, task, adapter.Within(quick))
		if err == nil {
			failed[at[peer.ID]] = result.State != adapter.TaskSucceeded
		}
		return context.Cause(ctx)
	})
	for i, peer := range peers {
		if failed[i] {
			missed = append(missed, name(peer))
		}
	}
	return missed, err
}

// linesOf writes peers as the script reads them: one a line.
func linesOf(peers []adapter.Member) string {
	var text strings.Builder
	for _, peer := range peers {
		fmt.Fprintf(&text, "%s %s %s\n", peer.ID, name(peer), peer.Host())
	}
	return text.String()
}

// health reads from the node how the peer's process is: unknown when the node does not answer.
func health(ctx context.Context, run *adapter.Run, peer adapter.Member) adapter.Health {
	if !peer.Node.IsReachable() {
		return adapter.HealthUnknown
	}
	bounded, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	result, err := run.Look(bounded, peer, "inspect", adapter.InspectProcess{Name: process}, adapter.Within(askTime))
	if err != nil {
		return adapter.HealthUnknown
	}
	judged, _ := judge(result)
	return judged
}

// judge returns the health that a node's answer about a peer's process means, and why.
func judge(result adapter.TaskResult) (adapter.Health, string) {
	state, ok := result.Process()
	switch {
	case !ok || result.State != adapter.TaskSucceeded:
		return adapter.HealthUnknown, "its node did not answer"
	case state.State == "running":
		return adapter.Healthy, "its process runs"
	}
	return adapter.Unhealthy, "its process is " + state.State
}

// workOf reads the script's list of work.
func workOf(peer adapter.Member, text string) []adapter.Work {
	var list []adapter.Work
	for _, line := range lines(text) {
		fields := strings.SplitN(line, "\t", 6)
		if len(fields) < 6 {
			continue
		}
		since, _ := strconv.ParseInt(fields[2], 10, 64)
		list = append(list, adapter.Work{
			Kind: "work", ID: fields[0], Name: fields[5], MemberID: peer.ID, Owner: fields[4],
			Since:   time.Unix(since, 0).UTC(),
			Message: fmt.Sprintf("takes %s seconds on %s", fields[3], name(peer)),
		})
	}
	return list
}

// oneLine replaces control characters by spaces, so that a text stays one line of a file.
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
