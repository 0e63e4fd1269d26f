package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
	"github.com/gpuaas/app-platform/sdk/client"
)

func (t *tool) adapterCommand() *cobra.Command {
	return group("adapter", "Adapters: programs that know how an app boots, drains and leaves", t.adapterCheck(), t.adapterClauses())
}

// checkFlags are the flags of adapter check.
type checkFlags struct {
	options        conformance.Options
	members        map[string]int
	config, report string
	profile        string
	inputs         []string
	artifacts      []string
	start, state   string
	digest         bool
}

func (t *tool) adapterCheck() *cobra.Command {
	var flags checkFlags
	cmd := t.command("check [URL]", "Exercise an adapter and report which rules of the contract it keeps", cobra.MaximumNArgs(1),
		func(ctx context.Context, args []string) error { return t.check(ctx, args, &flags) })
	cmd.Long = checkHelp
	cmd.Example = `  appctl adapter check --name pulse --start 'bin/pulse --platform-url $PLATFORM_URL --listen $ADAPTER_LISTEN --state-dir $ADAPTER_STATE_DIR'
  appctl adapter check http://127.0.0.1:9100 --name pulse --issuer-listen 127.0.0.1:9000 --json report.json`
	set, o := cmd.Flags(), &flags.options
	set.StringVar(&o.Name, "name", "", "the adapter's registered name: the audience of every request")
	set.StringVar(&o.Listen, "issuer-listen", "", "host:port on which the check is the platform; http://host:port is the issuer the adapter must trust")
	set.StringVar(&flags.start, "start", "", "command line that starts the adapter; without it the crash clauses are not run")
	set.StringVar(&flags.state, "state-dir", "", "directory for the started adapter's state; a temporary one if not given")
	set.StringVar(&o.App, "app", "", "app to exercise, where the adapter describes several")
	set.StringVar(&o.Version, "app-version", "", "manifest version sent with each instance (1.0.0)")
	set.StringVar(&flags.config, "config", "", `JSON file with the instance config; "-" reads standard input; made from the schema if not given`)
	set.StringVar(&flags.profile, "runtime-profile", "", `JSON or YAML file with the manifest's runtimeProfile; "-" reads standard input`)
	set.StringArrayVar(&flags.artifacts, "artifact", nil, "artifact that the manifest pins, name=PATH of an OCI image layout or a file; repeat for more")
	set.StringToIntVar(&flags.members, "members", nil, "members of an instance, key=count, separated by commas; the described defaults if not given")
	set.IntVar(&o.Nodes, "nodes", 3, "how many nodes the members are spread over, 1 to 16")
	set.StringVar(&o.Address, "node-address", "", "address of every node, for apps that will not do with 127.0.0.1, 127.0.0.2 and so on")
	set.StringArrayVar(&flags.inputs, "input", nil, "input of an action, name=JSON; repeat for more; made from the schema if not given")
	set.StringSliceVar(&o.Only, "only", nil, "only these clauses or groups, such as cancel or feed.waits, with those they need")
	set.StringVar(&flags.report, "json", "", `file for the machine-readable report; "-" writes it to standard output`)
	set.BoolVar(&flags.digest, "digest", false, "write only the digest of the report")
	set.DurationVar(&o.Bounds.Overall, "timeout", 20*time.Minute, "bound of the whole run")
	set.DurationVar(&o.Bounds.Operation, "operation-timeout", time.Minute, "bound of one operation of the app")
	set.DurationVar(&o.Bounds.Settle, "settle", time.Second, "how long to watch that nothing more happens")
	_ = cmd.MarkFlagRequired("name")
	return cmd
}

const checkHelp = `Acts as the platform towards an adapter: signs requests, serves the key set and the public API, really carries out the
node tasks the adapter asks for (as plain processes of this machine), and checks what came of it, clause by clause.

The adapter must trust the check as its platform. With --start the check starts the adapter itself, and can also kill it in
the middle of its work; the command finds in its environment PLATFORM_URL (issuer, public API, and key set at
/.well-known/jwks.json), ADAPTER_NAME, ADAPTER_LISTEN (host:port) and ADAPTER_STATE_DIR. Without --start give
--issuer-listen, and start the adapter with that address as its platform; clauses that need a crash are then "not run",
which is never "passed".

Exit code 0: no clause failed. 1: a clause failed; the report says what was sent, what came and what to do. 2: the options are
wrong. 3: the adapter does not describe the app. 4: it refuses the check's request tokens. 7: it does not answer.`

// check runs the suite and shows the report.
func (t *tool) check(ctx context.Context, args []string, flags *checkFlags) error {
	drop, err := flags.complete(t, args)
	if err != nil {
		return err
	}
	defer drop()
	if !flags.digest {
		t.Remark("bounds: %s", flags.options.Bounds.Full())
		flags.options.Progress = func(result conformance.Result) { t.Remark("%s", result.Line()) }
	}
	report, err := conformance.Run(ctx, flags.options)
	if err != nil && len(report.Results) == 0 {
		return checkError(err)
	}
	if err := errors.Join(t.writeReport(report, flags), err); err != nil {
		return err
	}
	if failed := report.Failures(); len(failed) > 0 {
		return command.Failed(fmt.Errorf("%d clauses failed: %s", len(failed), strings.Join(failed, ", ")))
	}
	return nil
}

// complete turns flags into options. The function it returns drops what was made for the run.
func (f *checkFlags) complete(t *tool, args []string) (drop func(), err error) {
	drop = func() {}
	if len(args) == 1 {
		f.options.URL = args[0]
	}
	f.options.Members = f.members
	if f.options.Config, err = t.document("--config", f.config, nil); err != nil {
		return drop, err
	}
	if f.options.RuntimeProfile, err = t.document("--runtime-profile", f.profile, nil); err != nil {
		return drop, err
	}
	f.options.Inputs = map[string]json.RawMessage{}
	for _, pair := range f.inputs {
		name, text, found := strings.Cut(pair, "=")
		if !found {
			return drop, usagef("--input %q: must be name=JSON", pair)
		}
		f.options.Inputs[name] = json.RawMessage(text)
	}
	if err := f.load(); err != nil {
		return drop, err
	}
	if f.start == "" {
		return drop, nil
	}
	return f.launcher()
}

// load reads the artifacts that the members may fetch.
func (f *checkFlags) load() error {
	f.options.Content = &sandbox.Artifacts{}
	for _, pair := range f.artifacts {
		name, path, found := strings.Cut(pair, "=")
		if !found || name == "" {
			return usagef("--artifact %q: must be name=PATH", pair)
		}
		loaded, err := f.options.Content.Load(name, path)
		if err != nil {
			return usagef("--artifact: %v", err)
		}
		f.options.Artifacts = append(f.options.Artifacts, loaded)
	}
	return nil
}

// launcher makes what starts the adapter, with a state directory.
func (f *checkFlags) launcher() (drop func(), err error) {
	drop = func() {}
	if f.state == "" {
		dir, err := os.MkdirTemp("", "adapter-check-")
		if err != nil {
			return drop, fmt.Errorf("state directory: %w", err)
		}
		f.state, drop = dir, func() { _ = os.RemoveAll(dir) }
	} else if err := os.MkdirAll(f.state, 0o700); err != nil {
		return drop, usagef("--state-dir: %v", err)
	}
	f.options.Launcher = &conformance.Command{Line: f.start, Name: f.options.Name, URL: f.options.URL, StateDir: f.state}
	return drop, nil
}

// checkError gives what kept the suite from running its exit code.
func checkError(err error) error {
	switch {
	case errors.Is(err, conformance.ErrOptions):
		return usageError(err)
	case errors.Is(err, conformance.ErrNoApp):
		return notFoundf("%v", err)
	case errors.Is(err, conformance.ErrRefused):
		return &client.Error{Code: client.CodeUnauthenticated, Message: err.Error()}
	case errors.Is(err, conformance.ErrUnreachable):
		return &client.Error{Code: client.CodeAdapterUnavailable, Message: err.Error(), Retryable: true}
	}
	return err
}

// writeReport writes the machine-readable report where it was asked for, and shows the one for people.
func (t *tool) writeReport(report conformance.Report, flags *checkFlags) error {
	if flags.report != "" && flags.report != "-" {
		file, err := os.Create(flags.report)
		if err != nil {
			return fmt.Errorf("--JSON: %w", err)
		}
		if err := errors.Join(render.JSON(file, report), file.Close()); err != nil {
			return fmt.Errorf("--JSON: %w", err)
		}
	}
	switch {
	case flags.digest || t.Quiet:
		_, err := fmt.Fprintln(t.Env.Stdout, report.Digest)
		return err
	case t.AsJSON() || flags.report == "-":
		return render.JSON(t.Env.Stdout, report)
	}
	return report.WriteText(t.Env.Stdout)
}

func (t *tool) adapterClauses() *cobra.Command {
	return t.command("clauses", "List the clauses that adapter check runs", cobra.NoArgs, func(context.Context, []string) error {
		var rows [][]string
		var ids []string
		list := []map[string]any{}
		for _, clause := range conformance.Clauses() {
			rows = append(rows, []string{clause.ID, clause.Rule, clause.Section})
			ids = append(ids, clause.ID)
			list = append(list, map[string]any{"id": clause.ID, "rule": clause.Rule, "section": clause.Section, "fix": clause.Fix, "needs": append([]string{}, clause.Needs...)})
		}
		return t.show(view{JSON: list, IDs: ids, Page: func(p *render.Page) { p.Table([]string{"CLAUSE", "RULE", "SECTION"}, rows) }})
	})
}
