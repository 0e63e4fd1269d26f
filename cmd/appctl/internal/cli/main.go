package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
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
	// StdinTerminal and StderrTerminal say whether a person sits there.
	StdinTerminal, StderrTerminal bool
	// StandStill is how long an operation may show nothing new before its blockers are asked for; 0 for 5 seconds.
	StandStill time.Duration
	// Browse shows an address to the person; nil where nobody can look.
	Browse func(address string) error
	// ConfigPath is the configuration file.
	ConfigPath string
}

// Process is the environment of this process.
func Process() Environment {
	return Environment{
		Getenv: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdinTerminal: isTerminal(os.Stdin), StderrTerminal: isTerminal(os.Stderr) && os.Getenv("TERM") != "dumb",
		Browse:     openBrowser,
		ConfigPath: configPath(os.Getenv),
	}
}

// isTerminal says whether somebody may be at the other end: a device of characters that is not the one
// that programs without an input are given.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	nobody, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, nobody)
}

// configPath is $XDG_CONFIG_HOME/appctl/config.json, below ~/.config when that is not set.
func configPath(getenv func(string) string) string {
	home := getenv("XDG_CONFIG_HOME")
	if home == "" {
		home = filepath.Join(getenv("HOME"), ".config")
	}
	return filepath.Join(home, "appctl", "config.json")
}

// tool is one run of appctl.
type tool struct {
	env     Environment
	server  string
	project string
	context string
	output  string
	quiet   bool
	// entered says that a command's own code has begun: errors before it are of the command line.
	entered bool
	client  *client.Client
}

// Main runs one command line and returns the exit code; it writes nothing but to the environment's outputs.
func Main(ctx context.Context, env Environment, args []string) int {
	t := &tool{env: env}
	root := t.root()
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if !t.entered {
		err = usageError{err}
	}
	report(env.Stderr, err, t.asJSON())
	return exitCode(err)
}

func (t *tool) root() *cobra.Command {
	root := &cobra.Command{
		Use: "appctl", Short: "Launch, watch and end instances of apps on the platform",
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return t.checkOutput() },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&t.server, "server", "", "address of the platform (env APPCTL_SERVER)")
	flags.StringVar(&t.project, "project", "", "project by id or slug (env APPCTL_PROJECT)")
	flags.StringVar(&t.context, "context", "", "named context of the configuration (env APPCTL_CONTEXT)")
	flags.StringVarP(&t.output, "output", "o", "table", "form of the answer: table or json")
	flags.BoolVarP(&t.quiet, "quiet", "q", false, "write only ids (or the one secret), no progress")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(
		t.loginCommand(), t.logoutCommand(), t.whoamiCommand(), t.sessionsCommand(), t.tokenCommand(), t.contextCommand(), t.projectsCommand(),
		t.appsCommand(), t.allocationsCommand(), t.launchCommand(), t.instancesCommand(), t.opsCommand(),
		t.eventsCommand(), t.actionCommand(), t.decommissionCommand(true), t.nodesCommand(), t.auditCommand(), t.breakGlassCommand(),
		t.membersCommand(), t.orphansCommand(), t.controlPlanesCommand(), t.pricesCommand(), t.secretsCommand(), t.webhooksCommand(),
		t.policyCommand(), t.entitlementsCommand(),
		t.sourceCommand(), t.artifactCommand(), t.manifestCommand(), t.promoteCommand(), t.evidenceCommand(), t.canaryCommand(),
		t.adminCommand(), t.adapterCommand(), t.whyCommand(), t.versionCommand(),
		&cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesHelp},
	)
	return root
}

func (t *tool) asJSON() bool { return t.output == "json" }

func (t *tool) checkOutput() error {
	if t.output != "table" && t.output != "json" {
		return usagef("--output %q: must be table or json", t.output)
	}
	return nil
}

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	parent := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fmt.Errorf("%s wants a subcommand: see %s --help", use, cmd.CommandPath())
		},
	}
	parent.AddCommand(commands...)
	return parent
}

// command is one that does something.
func (t *tool) command(use, short string, args cobra.PositionalArgs, run func(context.Context, []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			t.entered = true
			return run(cmd.Context(), args)
		},
	}
}

// view is an answer in its three forms.
type view struct {
	// json is the answer for scripts.
	json any
	// ids are written, one a line, when --quiet is given.
	ids []string
	// page writes the answer for people.
	page func(*render.Page)
}

func (t *tool) show(v view) error {
	switch {
	case t.asJSON():
		return render.JSON(t.env.Stdout, v.json)
	case t.quiet:
		for _, id := range v.ids {
			fmt.Fprintln(t.env.Stdout, id)
		}
	default:
		v.page(render.NewPage(t.env.Stdout))
	}
	return nil
}

// remark tells a person something on the side; scripts that read JSON are spared it.
func (t *tool) remark(format string, args ...any) {
	if !t.quiet && !t.asJSON() {
		fmt.Fprintln(t.env.Stderr, render.Clean(fmt.Sprintf(format, args...)))
	}
}
