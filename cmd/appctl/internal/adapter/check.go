// Package adapter is the commands about adapters: begin one, try it, check it against the contract, and list the
// contract's clauses.
package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/catalog"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Command returns the commands about adapters.
func Command(t *command.Tool) *cobra.Command {
	return command.Group("adapter", "Adapters: programs that know how an app boots, drains and leaves",
		append([]*cobra.Command{check(t), clauses(t), initialise(t), develop(t)}, catalog.Sandbox(t)...)...)
}

// checkFlags are the flags of adapter check.
type checkFlags struct {
	options        conformance.Options
	members        map[string]int
	config, report string
	profile        string
	inputs         []string
	manifest, work string
	artifacts      []string
	start, state   string
	signKey, kind  string
	digest         bool
}

// check returns the command that runs the conformance suite against an adapter. Bounds and progress are remarks on
// standard error, so that standard output stays the report.
func check(t *command.Tool) *cobra.Command {
	var f checkFlags
	cmd := t.Command("check [URL]", "Exercise an adapter and report which rules of the contract it meets",
		func(ctx context.Context, args []string) error { return f.run(ctx, t, args) })
	cmd.Long = checkHelp
	cmd.Example = `  appctl adapter check --name pulse --start 'bin/pulse --platform-url $PLATFORM_URL --listen $ADAPTER_LISTEN --state-dir $ADAPTER_STATE_DIR'
  appctl adapter check http://127.0.0.1:9100 --name pulse --issuer-listen 127.0.0.1:9000 --json report.json`
	f.common(cmd)
	flags, o := cmd.Flags(), &f.options
	flags.StringSliceVar(&o.Refusable, "refusable", nil,
		"actions that the app may refuse with 422 on a new instance, such as a failover")
	flags.StringVar(&f.work, "work", "",
		"how to start work that a drain waits for: an action, name=JSON with {member}, {component}, {index}; "+
			"or sh:COMMAND, run in the member")
	flags.StringSliceVar(&o.Only, "only", nil,
		"only these clauses or groups, such as cancel or feed.waits, with those they need")
	flags.StringVar(&f.report, "json", "", `file for the machine-readable report; "-" writes it to standard output`)
	flags.StringVar(&f.signKey, "sign-key", "",
		"PEM file with a runner's Ed25519 private key: signs the report of --json into that file's name with .sig")
	flags.StringVar(&f.kind, "kind", "conformance", "what the signed report shows: conformance or tenancy")
	flags.BoolVar(&f.digest, "digest", false, "write only the digest of the report")
	flags.DurationVar(&o.Bounds.Overall, "timeout", 20*time.Minute, "time limit of the whole run")
	flags.DurationVar(&o.Bounds.Settle, "settle", time.Second, "how long to watch for events that must not come")
	return cmd
}

// common adds the flags of all commands that act as the platform towards an adapter.
func (f *checkFlags) common(cmd *cobra.Command) {
	flags, o := cmd.Flags(), &f.options
	flags.StringVar(&o.Name, "name", "", "the adapter's registered name: the audience of every request")
	flags.StringVar(&o.Listen, "issuer-listen", "",
		"host:port on which the check is the platform; http://host:port is the issuer the adapter must trust")
	flags.StringVar(&f.start, "start", "",
		"command line that starts the adapter; without it the crash clauses are not run")
	flags.StringVar(&f.state, "state-dir", "",
		"directory for the started adapter's state; a temporary one if not given")
	flags.StringVar(&o.App, "app", "", "app to exercise, where the adapter describes several")
	flags.StringVar(&o.Version, "app-version", "", "manifest version sent with each instance (1.0.0)")
	flags.StringVar(&f.config, "config", "",
		`JSON file with the instance config; "-" reads standard input; generated from the schema if not given`)
	flags.StringVar(&f.profile, "runtime-profile", "",
		`JSON or YAML file with the manifest's runtimeProfile; "-" reads standard input`)
	flags.StringArrayVar(&f.artifacts, "artifact", nil,
		"artifact that the manifest pins, name=PATH of an OCI image layout or a file; repeat for more")
	flags.StringToIntVar(&f.members, "members", nil,
		"members of an instance, key=count, separated by commas; the described defaults if not given")
	flags.IntVar(&o.Nodes, "nodes", 3, "how many nodes the members are spread over, 1 to 16")
	flags.BoolVar(&o.Namespaces, "namespaces", false,
		"run and boot each member in mount, PID and IPC namespaces on top of this machine's root; needs root")
	flags.StringVar(&o.Address, "node-address", "",
		"address of every node, for apps that cannot use 127.0.0.1, 127.0.0.2 and so on")
	flags.StringArrayVar(&f.inputs, "input", nil,
		"input of an action, name=JSON; repeat for more; generated from the schema if not given")
	flags.StringVar(&f.manifest, "manifest", "",
		"the app's manifest: check compares the description with it, and lints it if you are logged in; "+
			"dev runs its readiness probes")
	flags.DurationVar(&o.Bounds.Operation, "operation-timeout", time.Minute, "time limit of one operation of the app")
	command.Need(cmd, "name")
}

const checkHelp = `Act as the platform for an adapter: sign requests, serve the key set and the public API, carry out
the node tasks that the adapter requests (as plain processes of this machine, or with --namespaces in members that have
namespaces), and check the results, clause by clause.

The adapter must trust the check as its platform. With --start the check starts the adapter itself, and can also kill it
in the middle of its work; the environment of the command has PLATFORM_URL (issuer, public API, and key set at
/.well-known/jwks.json), ADAPTER_NAME, ADAPTER_LISTEN (host:port) and ADAPTER_STATE_DIR. Without --start give
--issuer-listen, and start the adapter with that address as its platform; clauses that need a crash are then "not run",
which never counts as "passed".

Exit code 0: no clause failed. 1: a clause failed; the report says what was sent, what was received and what to do. 2:
the options are wrong. 3: the adapter does not describe the app. 4: it refuses the check's request tokens. 7: it does
not answer.`

// run runs the suite and shows the report.
func (f *checkFlags) run(ctx context.Context, t *command.Tool, args []string) error {
	kind, err := f.signs()
	if err != nil {
		return err
	}
	drop, err := f.complete(t, args)
	if err != nil {
		return err
	}
	defer drop()
	if err := f.lint(ctx, t); err != nil {
		return err
	}
	if !f.digest {
		t.Remark("bounds: %s", f.options.Bounds.Full())
		f.options.Progress = func(result conformance.Result) { t.Remark("%s", result.Line()) }
	}
	report, err := conformance.Run(ctx, f.options)
	if err != nil && len(report.Results) == 0 {
		return checkError(err)
	}
	if err := errors.Join(f.write(t, report), f.sign(kind), err); err != nil {
		return err
	}
	if failed := report.Failures(); len(failed) > 0 {
		return command.Failed(fmt.Errorf("%d clauses failed: %s", len(failed), strings.Join(failed, ", ")))
	}
	return nil
}

// complete turns flags into options. The function that it returns removes what was created for the run.
func (f *checkFlags) complete(t *command.Tool, args []string) (drop func(), err error) {
	drop = func() {}
	if len(args) == 1 {
		f.options.URL = args[0]
	}
	f.options.Members = f.members
	if f.options.Config, err = t.Document("--config", f.config, nil); err != nil {
		return drop, err
	}
	if f.options.RuntimeProfile, err = t.Document("--runtime-profile", f.profile, nil); err != nil {
		return drop, err
	}
	f.options.Inputs = map[string]json.RawMessage{}
	for _, pair := range f.inputs {
		name, text, found := strings.Cut(pair, "=")
		if !found {
			return drop, command.Usagef("--input %q: must be name=JSON", pair)
		}
		f.options.Inputs[name] = json.RawMessage(text)
	}
	if err := f.works(); err != nil {
		return drop, err
	}
	if f.manifest != "" {
		if f.options.Manifest, err = t.ReadDocument("--manifest", f.manifest); err != nil {
			return drop, err
		}
	}
	if err := f.load(); err != nil {
		return drop, err
	}
	if f.start == "" {
		return drop, nil
	}
	return f.launcher()
}

// works reads what begins work.
func (f *checkFlags) works() error {
	if f.work == "" {
		return nil
	}
	if command, ok := strings.CutPrefix(f.work, "sh:"); ok {
		f.options.Work = &conformance.Work{Command: command}
		return nil
	}
	name, input, found := strings.Cut(f.work, "=")
	if !found {
		return command.Usagef("--work %q: must be an action, name=JSON, or sh:COMMAND", f.work)
	}
	f.options.Work = &conformance.Work{Action: name, Input: json.RawMessage(input)}
	return nil
}

// lint has the platform check the manifest, where one is known: what the suite cannot know, such as the permission keys
// that there are.
func (f *checkFlags) lint(ctx context.Context, t *command.Tool) error {
	if f.manifest == "" {
		return nil
	}
	if _, token, err := t.Target(); err != nil || token == "" {
		t.Remark("the manifest is not linted: log in to a platform and run appctl manifest lint %s", f.manifest)
		return nil
	}
	_, err := parts.Lint(ctx, t, f.manifest, f.options.Manifest)
	return err
}

// load reads the artifacts that the members may fetch.
func (f *checkFlags) load() error {
	f.options.Content = &sandbox.Artifacts{}
	for _, pair := range f.artifacts {
		name, path, found := strings.Cut(pair, "=")
		if !found || name == "" {
			return command.Usagef("--artifact %q: must be name=PATH", pair)
		}
		loaded, err := f.options.Content.Load(name, path)
		if err != nil {
			return command.Usagef("--artifact: %v", err)
		}
		f.options.Artifacts = append(f.options.Artifacts, loaded)
	}
	return nil
}

// launcher sets what starts the adapter, with a state directory.
func (f *checkFlags) launcher() (drop func(), err error) {
	drop = func() {}
	if f.state == "" {
		dir, err := os.MkdirTemp("", "adapter-check-")
		if err != nil {
			return drop, fmt.Errorf("state directory: %w", err)
		}
		f.state, drop = dir, func() { _ = os.RemoveAll(dir) }
	} else if err := os.MkdirAll(f.state, 0o700); err != nil {
		return drop, command.Usagef("--state-dir: %v", err)
	}
	f.options.Launcher = &conformance.Command{Line: f.start, Name: f.options.Name, URL: f.options.URL,
		StateDir: f.state}
	return drop, nil
}

// checkError returns what kept the suite from running as an error with an exit code.
func checkError(err error) error {
	switch {
	case errors.Is(err, conformance.ErrOptions):
		return command.Usage(err)
	case errors.Is(err, conformance.ErrNoApp):
		return command.NotFoundf("%v", err)
	case errors.Is(err, conformance.ErrRefused):
		return &client.Error{Code: client.CodeUnauthenticated, Message: err.Error()}
	case errors.Is(err, conformance.ErrUnreachable):
		return &client.Error{Code: client.CodeAdapterUnavailable, Message: err.Error(), Retryable: true}
	}
	return err
}

// write writes the machine-readable report where the flags want it, and shows the one for people.
func (f *checkFlags) write(t *command.Tool, report conformance.Report) error {
	if f.report != "" && f.report != "-" {
		file, err := os.Create(f.report)
		if err != nil {
			return fmt.Errorf("--JSON: %w", err)
		}
		if err := errors.Join(render.JSON(file, report), file.Close()); err != nil {
			return fmt.Errorf("--JSON: %w", err)
		}
	}
	switch {
	case f.digest || t.Quiet:
		_, err := fmt.Fprintln(t.Env.Stdout, report.Digest)
		return err
	case t.AsJSON() || f.report == "-":
		return render.JSON(t.Env.Stdout, report)
	}
	return report.WriteText(t.Env.Stdout)
}

// signs checks, before anything is run, what the report is to be signed with; the kind is the one that is signed.
func (f *checkFlags) signs() (kind gql.EvidenceKind, err error) {
	kind, err = command.Enum("kind", f.kind, []gql.EvidenceKind{gql.EvidenceKindConformance, gql.EvidenceKindTenancy})
	if err != nil || f.signKey == "" {
		return kind, err
	}
	if f.report == "" || f.report == "-" {
		return kind, command.Usagef("--sign-key: needs --json FILE, whose bytes it signs")
	}
	if _, err := parts.SignReport(f.signKey, string(kind), nil); err != nil {
		return kind, command.Usagef("--sign-key: %w", err)
	}
	return kind, nil
}

// sign writes the signature of the report that was written.
func (f *checkFlags) sign(kind gql.EvidenceKind) error {
	if f.signKey == "" {
		return nil
	}
	text, err := os.ReadFile(f.report)
	if err != nil {
		return fmt.Errorf("--sign-key: %w", err)
	}
	signature, err := parts.SignReport(f.signKey, string(kind), text)
	if err != nil {
		return fmt.Errorf("--sign-key: %w", err)
	}
	return os.WriteFile(f.report+".sig", []byte(signature+"\n"), 0o600)
}

// clauses returns the command that lists the contract's clauses. It needs no platform.
func clauses(t *command.Tool) *cobra.Command {
	return command.Verb(t, "clauses", "List the clauses that adapter check runs",
		func(found []conformance.Clause) command.View {
			list := []map[string]any{}
			for _, clause := range found {
				list = append(list, map[string]any{
					"id": clause.ID, "rule": clause.Rule, "section": clause.Section, "fix": clause.Fix,
					"needs": append([]string{}, clause.Needs...),
				})
			}
			return clauseTable.As(list, found)
		},
		func(context.Context, []string) ([]conformance.Clause, error) { return conformance.Clauses(), nil })
}

var clauseTable = command.Table[conformance.Clause]{
	Heading: []string{"CLAUSE", "RULE", "SECTION"},
	Row:     func(clause *conformance.Clause) []string { return []string{clause.ID, clause.Rule, clause.Section} },
}
