// Command appctl is the platform's command line: it launches, watches and ends instances of apps, and serves
// scripts with JSON output and exit codes that mean one thing each (see appctl help exit-codes). It is built on
// the public Go client alone.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, cli.Process(), os.Args[1:])
	stop()
	os.Exit(code)
}
