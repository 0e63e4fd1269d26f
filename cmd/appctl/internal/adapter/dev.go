package adapter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/dev"
)

// maxLine bounds one line of a session, in bytes.
const maxLine = 1 << 20

// develop returns the command that leaves the check's platform running.
func develop(t *command.Tool) *cobra.Command {
	var f checkFlags
	var scenario string
	cmd := t.Command("dev [URL]", "Run an adapter with its own platform: start operations and faults, see the events",
		func(ctx context.Context, args []string) error { return f.develop(ctx, t, args, scenario) })
	cmd.Long = devHelp + dev.Help()
	cmd.Example = `  appctl adapter dev --name pulse --manifest manifest.json --start 'bin/pulse --platform-url $PLATFORM_URL --listen $ADAPTER_LISTEN --state-dir $ADAPTER_STATE_DIR'
  appctl adapter dev --name pulse --start … --scenario killed.json`
	f.common(cmd)
	cmd.Flags().StringVar(&scenario, "scenario", "",
		`file with one step a line, or JSON {"steps": ["launch peer=2", "expect succeeded"]}; "-" reads standard input`)
	return cmd
}

const devHelp = `Start the adapter and a platform for it alone, as adapter check does, and keep both running: node
tasks are carried out in members on this machine. Type one verb a line; each event is shown as it happens: operations,
members, node tasks, faults, and how the platform would judge each end. quit, the end of the input or Ctrl-C ends the
adapter and every process of every member, and deletes their files.

An operation waits for the one before it. A member is named COMPONENT-INDEX, a node node-1, node-2 and so on.

With --scenario, or if standard input is not a terminal, the first line that fails ends the session: exit code 1 if a
result is not what expect names, 2 if a line cannot be carried out. With -o json each event is a line of JSON.

Verbs:
`

// develop runs one session.
func (f *checkFlags) develop(ctx context.Context, t *command.Tool, args []string, scenario string) error {
	var lines []string
	if scenario != "" {
		var err error
		if lines, err = steps(scenario, t.Env.Stdin); err != nil {
			return err
		}
	}
	drop, err := f.complete(t, args)
	defer func() { drop() }()
	if err != nil {
		return err
	}
	session, err := dev.Start(ctx, f.options, func(event dev.Event) { show(t, event) })
	if err != nil {
		return checkError(err)
	}
	if scenario != "" {
		err = session.Scenario(lines)
	} else {
		err = converse(ctx, t, session)
	}
	if ctx.Err() != nil { // Ctrl-C is how a session ends
		err = nil
	}
	if err = errors.Join(sessionError(err), session.Close()); err == nil {
		t.Remark("the adapter and everything in its members has ended")
	}
	return err
}

// steps reads a scenario: a JSON document with steps, or lines.
func steps(path string, stdin io.Reader) ([]string, error) {
	text, err := values.ReadFile(path, stdin)
	if err != nil {
		return nil, command.Usagef("--scenario: %w", err)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return strings.Split(string(text), "\n"), nil
	}
	var document struct{ Steps []string }
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil {
		return nil, command.Usagef("--scenario: must be {\"steps\": [\"launch\", …]}: %w", err)
	}
	return document.Steps, nil
}

// converse carries out what is typed. Where the input is not a terminal, the first line that fails ends the session.
func converse(ctx context.Context, t *command.Tool, session *dev.Session) error {
	if t.Env.StdinTerminal {
		t.Remark("type help for the verbs; quit or Ctrl-C ends everything")
	}
	typed := make(chan string)
	go func() {
		defer close(typed)
		scanner := bufio.NewScanner(t.Env.Stdin)
		scanner.Buffer(nil, maxLine)
		for scanner.Scan() {
			select {
			case typed <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case line, more := <-typed:
			if !more {
				return session.Settle()
			}
			err := session.Do(line)
			switch {
			case errors.Is(err, dev.ErrQuit):
				return nil
			case err != nil && t.Env.StdinTerminal:
				t.Remark("%v", err)
			case err != nil:
				return fmt.Errorf("line %d, %s: %w", n, line, err)
			}
		}
	}
}

// show writes an event: a line for people, or one of JSON.
func show(t *command.Tool, event dev.Event) {
	if t.AsJSON() {
		_ = json.NewEncoder(t.Env.Stdout).Encode(event) // who does not read any more ends the session by a signal
		return
	}
	_, _ = fmt.Fprintf(t.Env.Stdout, "%s  %-9s  %s\n", event.At.Format("15:04:05.000"), event.Kind, event.Text)
}

// sessionError returns how a session ended as an error with an exit code.
func sessionError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, dev.ErrLine):
		return command.Usage(err)
	}
	return command.Failed(err)
}
