// Package command is what appctl's commands share: one run with its flags and its connection, the shapes of commands
// (a verb that shows its answer, a list), answers in their three forms, and errors with their exit codes.
package command

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/sdk/client"
)

// Environment is what a run takes from its process.
type Environment struct {
	// Getenv reads an environment variable.
	Getenv func(string) string
	// Stdin is read for codes, tokens and documents given as "-".
	Stdin io.Reader
	// Stdout gets answers; Stderr gets errors, progress and remarks.
	Stdout, Stderr io.Writer
	// StdinTerminal and StderrTerminal report whether a person is at the other end.
	StdinTerminal, StderrTerminal bool
	// StandStill is how long an operation may show nothing new before its blockers are read; 0 for 5 seconds.
	StandStill time.Duration
	// Browse shows an address to the person; nil without a browser.
	Browse func(address string) error
	// ConfigPath is the configuration file.
	ConfigPath string
}

// Tool is one run of appctl. It is a GraphQL client that connects with its first request, so that a command checks
// what it was given before it needs a server or a credential.
type Tool struct {
	Env Environment
	// Server, Project and Context are flags of every command; empty when not given.
	Server, Project, Context string
	// Quiet writes only ids, or the one secret, and no progress.
	Quiet bool

	output  string
	entered bool
	client  *client.Client
}

// Execute runs one command line and returns the exit code; it writes nothing but to the environment's outputs.
func (t *Tool) Execute(ctx context.Context, root *cobra.Command, args []string) int {
	t.register(root)
	root.SetArgs(args)
	root.SetIn(t.Env.Stdin)
	root.SetOut(t.Env.Stdout)
	root.SetErr(t.Env.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if !t.entered { // an error before a command's own code begins is the command line's
		err = usageError{err}
	}
	report(t.Env.Stderr, err, t.AsJSON())
	return exitCode(err)
}

// register adds the flags of every command.
func (t *Tool) register(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&t.Server, "server", "", "address of the platform (env APPCTL_SERVER)")
	flags.StringVar(&t.Project, "project", "", "project by id or slug (env APPCTL_PROJECT)")
	flags.StringVar(&t.Context, "context", "", "named context of the configuration (env APPCTL_CONTEXT)")
	flags.StringVarP(&t.output, "output", "o", "table", "form of the answer: table or json")
	flags.BoolVarP(&t.Quiet, "quiet", "q", false, "write only ids (or the one secret), no progress")
	CompleteWith(root, "output", "table", "json")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return t.checkOutput() }
}

func (t *Tool) checkOutput() error {
	if t.output != "table" && t.output != "json" {
		return Usagef("--output %q: must be table or json", t.output)
	}
	return nil
}

// Paged reports whether answers are shown as pages for people, and not as JSON or ids.
func (t *Tool) Paged() bool { return !t.AsJSON() && !t.Quiet }

// AsJSON reports whether the answer is wanted as JSON.
func (t *Tool) AsJSON() bool { return t.output == "json" }
