// Command app-platform is the control plane: the API and the workers, in one process or apart.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	_ "github.com/gpuaas/app-platform/internal/custody/keepers" // Vault and the clouds' key services
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/server"
)

// lastSpans bounds how long a process that stops waits for its receiver of traces.
const lastSpans = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "app-platform:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	command := &cobra.Command{
		Use: "app-platform", Short: "The control plane for clustered apps on a GPU cloud",
		SilenceUsage: true, SilenceErrors: true,
	}
	command.AddCommand(serveCommand(), migrateCommand(), bootstrapCommand(), keysCommand(), secretsCommand())
	return command
}

func serveCommand() *cobra.Command {
	config := server.Defaults()
	command := &cobra.Command{
		Use: "serve", Short: "Serve the API, the console and the workers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: config.Level()}))
			slog.SetDefault(log)
			traces, err := telemetry.Open(cmd.Context(), "app-platform", os.Getenv)
			if err != nil {
				return err
			}
			config.Traces = traces
			err = server.Run(cmd.Context(), config, log)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), lastSpans)
			defer cancel()
			if unsent := traces.Close(ctx); unsent != nil {
				log.Warn("the last spans were not sent", "error", unsent)
			}
			return err
		},
	}
	config.Bind(command.Flags())
	return command
}

func migrateCommand() *cobra.Command {
	var dsn string
	command := &cobra.Command{
		Use: "migrate", Short: "Migrate the database to the schema of this version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return server.Migrate(cmd.Context(), dsn) },
	}
	databaseFlag(command, &dsn)
	return command
}

func bootstrapCommand() *cobra.Command {
	var dsn, email, name string
	command := &cobra.Command{
		Use: "bootstrap", Short: "Create the first platform operator; print a one-time login code", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			code, err := server.Bootstrap(cmd.Context(), dsn, email, name)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), code)
			return err
		},
	}
	databaseFlag(command, &dsn)
	command.Flags().StringVar(&email, "email", "operator@platform.local", "the operator's address")
	command.Flags().StringVar(&name, "name", "Platform Operator", "the operator's name")
	return command
}

func secretsCommand() *cobra.Command {
	var config server.RewrapConfig
	rewrap := &cobra.Command{
		Use: "rewrap", Short: "Wrap every secret's key with the first keeper, while the platform runs",
		Args: cobra.NoArgs,
		Long: `Unwraps the key of each stored secret value with the keeper that wrapped it, and wraps it with
--secrets-keeper. The values themselves are not decrypted. Run it when every server has the new keeper as
--secrets-keeper and the old one as --secrets-keeper-previous; after it has succeeded, the old keeper can be
removed. It may be interrupted and run again.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return server.Rewrap(cmd.Context(), config, cmd.OutOrStdout())
		},
	}
	databaseFlag(rewrap, &config.DatabaseURL)
	flags := rewrap.Flags()
	flags.StringVar(&config.KeysDir, "keys-dir", server.Defaults().KeysDir, "folder of the local key")
	server.KeeperFlags(flags, &config.Keeper, &config.Previous)
	flags.BoolVar(&config.All, "all", false,
		"also wrap again the keys that the first keeper wrapped, for example after it has rotated its own key")
	command := &cobra.Command{Use: "secrets", Short: "Manage the stored secrets", Args: cobra.NoArgs}
	command.AddCommand(rewrap)
	return command
}

func databaseFlag(command *cobra.Command, dsn *string) {
	command.Flags().StringVar(dsn, "database-url", os.Getenv("DATABASE_URL"),
		"administrator's address of the database (default $DATABASE_URL)")
}
