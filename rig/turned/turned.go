// Package turned is the product's server with a clock that a rig can turn: the server that rigs start under a name of
// their own, from the program that they are.
package turned

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/gpuaas/app-platform/server"
)

// Prefix begins the names under which a program is a server.
const Prefix = "turned-server-"

// Link makes a server of this program in a folder, by number, and returns its path.
func Link(dir string, number int) (program string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	program = filepath.Join(dir, fmt.Sprint(Prefix, number))
	return program, os.Symlink(self, program)
}

// Skew is the file that says by how much the clock of a server is off, as Go writes durations. Without the file it is
// right.
func Skew(program string) string { return program + ".skew" }

// Asked reports whether the program was started under such a name: its main is then to end with Serve.
func Asked() bool { return strings.HasPrefix(filepath.Base(os.Args[0]), Prefix) }

// Serve is the server, and returns what the process ends with.
func Serve() int {
	config := server.Defaults()
	config.BillingEvery = time.Second
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.Bind(flags)
	if err := flags.Parse(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	config.Clock = func() time.Time {
		content, _ := os.ReadFile(Skew(os.Args[0]))
		by, _ := time.ParseDuration(string(content))
		return time.Now().Add(by)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: config.Level()}))
	slog.SetDefault(log)
	if err := server.Run(ctx, config, log); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "app-platform:", err)
		return 1
	}
	return 0
}
