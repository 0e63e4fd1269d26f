// Package cli is appctl's command line: the environment of a process, and the tree of all commands, a package per noun
// or family of nouns beside this one. A command resolves what it was given (a project by id or slug, an instance by id
// or name), makes one or two calls of the public client, and shows the answer as a table, as JSON or as ids. Every
// error becomes a message on standard error and an exit code that scripts can use.
package cli

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/adapter"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/artifacts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/audit"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/billing"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/capacity"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/catalog"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/costs"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/gaps"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/identity"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/instances"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/login"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/members"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/operations"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/policy"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/reach"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/secrets"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/shell"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/volumes"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/webhooks"
)

// Environment is what a run takes from its process.
type Environment = command.Environment

// Process returns the environment of this process.
func Process() Environment {
	return Environment{
		Getenv: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdinTerminal: isTerminal(os.Stdin), StderrTerminal: isTerminal(os.Stderr) && os.Getenv("TERM") != "dumb",
		Browse:     login.OpenBrowser,
		ConfigPath: configPath(os.Getenv),
	}
}

// isTerminal reports whether a person may be at the other end: the file is a device of characters, and not the null
// device, which programs without an input are given.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// configPath returns $XDG_CONFIG_HOME/appctl/config.json, or the path below ~/.config when that is not set.
func configPath(getenv func(string) string) string {
	home := getenv("XDG_CONFIG_HOME")
	if home == "" {
		home = filepath.Join(getenv("HOME"), ".config")
	}
	return filepath.Join(home, "appctl", "config.json")
}

// Main runs one command line and returns the exit code; it writes nothing but to the environment's outputs.
func Main(ctx context.Context, env Environment, args []string) int {
	t := &command.Tool{Env: env}
	return t.Execute(ctx, root(t), args)
}

// root returns the tree of all commands.
func root(t *command.Tool) *cobra.Command {
	root := &cobra.Command{
		Use: "appctl", Short: "Launch, watch and end instances of apps on the platform",
		SilenceErrors: true, SilenceUsage: true,
	}
	for _, commands := range [][]*cobra.Command{
		instances.Commands(t), capacity.Commands(t), catalog.Commands(t), artifacts.Commands(t),
		identity.Commands(t), policy.Commands(t), login.Commands(t), reach.Commands(t),
		shell.Commands(t), volumes.Commands(t),
	} {
		root.AddCommand(commands...)
	}
	root.AddCommand(
		operations.Command(t), members.Command(t), members.Tasks(t), members.Logs(t), members.Top(t), members.Exec(t),
		operations.Triage(t), operations.Bundle(t), operations.Trace(t), secrets.Command(t), webhooks.Command(t),
		audit.Command(t),
		adapter.Command(t), billing.Command(t), costs.Cost(t), costs.Budget(t), gaps.Command(t), admin(t), promote(t),
		version(t),
		&cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: command.ExitCodesHelp},
	)
	return root
}

// admin returns the verbs that keep the platform, a tenant or a catalog in order.
func admin(t *command.Tool) *cobra.Command {
	group := command.Group("admin", "Commands for operators, tenant admins, publishers and their automation",
		artifacts.Admin(t), capacity.Admin(t))
	group.AddCommand(identity.Admin(t)...)
	group.AddCommand(policy.Admin(t)...)
	group.AddCommand(catalog.Admin(t)...)
	return group
}

// promote returns the steps of trust in one place; the nouns have the same ones.
func promote(t *command.Tool) *cobra.Command {
	manifest, artifact := catalog.Promote(t), artifacts.Promote(t)
	manifest.Use, artifact.Use = "manifest MANIFEST", "artifact ARTIFACT"
	return command.Group("promote", "Promotion steps, from draft to retired", manifest, artifact)
}
