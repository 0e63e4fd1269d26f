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

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/app-platform/internal/server"
)

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
	command.AddCommand(serveCommand(), migrateCommand(), bootstrapCommand())
	return command
}

func serveCommand() *cobra.Command {
	config := server.Defaults()
	command := &cobra.Command{
		Use: "serve", Short: "Serve the API, the console and the workers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: config.Level()}))
			slog.SetDefault(log)
			return server.Run(cmd.Context(), config, log)
		},
	}
	config.Bind(command.Flags())
	return command
}

func migrateCommand() *cobra.Command {
	var dsn string
	command := &cobra.Command{
		Use: "migrate", Short: "Bring the database up to this version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return server.Migrate(cmd.Context(), dsn) },
	}
	databaseFlag(command, &dsn)
	return command
}

func bootstrapCommand() *cobra.Command {
	var dsn, email, name string
	command := &cobra.Command{
		Use: "bootstrap", Short: "Make the first platform operator and print a one-time login code", Args: cobra.NoArgs,
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

func databaseFlag(command *cobra.Command, dsn *string) {
	command.Flags().StringVar(dsn, "database-url", os.Getenv("DATABASE_URL"), "administrator's address of the database (default $DATABASE_URL)")
}
