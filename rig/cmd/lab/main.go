// Command lab is the program behind `make run`: it brings a whole local installation up on one machine, keeps it
// running, and takes it down again on Ctrl-C, last first, leaving no process, namespace or mount. Its data folder is
// kept for the next run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gpuaas/app-platform/internal/prereq"
	"github.com/gpuaas/app-platform/rig/lab"
	"github.com/gpuaas/app-platform/rig/stack"
)

func main() {
	lab.MaybeRunInit()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second Ctrl-C ends the process at once: everything it started dies with it.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// options are what the command line and the environment say.
type options struct {
	data        string
	bin         string
	listen      string
	databaseURL string
	webhooks    string
	kubernetes  string
	nodes       int
	plain       bool
	prepare     bool
}

const maxNodes = 32

func parse(args []string, out io.Writer) (options, error) {
	o := options{databaseURL: os.Getenv("DATABASE_URL")}
	flags := flag.NewFlagSet("lab", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.data, "data", ".data", "folder that keeps the installation")
	flags.StringVar(&o.bin, "bin", "bin", "folder of the built programs")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address of API and console on this machine")
	flags.StringVar(&o.webhooks, "webhooks", "127.0.0.1:9000",
		"where webhooks may be sent on this machine, by http too, as addresses separated by commas; empty for none")
	flags.StringVar(&o.kubernetes, "kubernetes", "",
		"folder of the compiled stand-in for RKE2, from make kubernetes; with it, whole nodes and rke2 are offered")
	flags.IntVar(&o.nodes, "nodes", 3, "number of local nodes; without namespaces there is one")
	flags.BoolVar(&o.plain, "plain", false, "run the local node without namespaces, also as root")
	flags.BoolVar(&o.prepare, "prepare", false, "only install what the tests need on this machine, and exit")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.nodes < 1 || o.nodes > maxNodes {
		return o, fmt.Errorf("-nodes %d is not between 1 and %d", o.nodes, maxNodes)
	}
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	if o.prepare {
		return prereq.EnsureTo(ctx, out, prereq.Postgres, prereq.Lab, prereq.Slurm, prereq.CloudInit, prereq.Containers,
			prereq.Browser, prereq.Python)
	}
	for _, path := range []*string{&o.data, &o.bin} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	config := stack.Config{
		Dir: o.data, Bin: o.bin, Listen: o.listen, DatabaseURL: o.databaseURL, Nodes: o.nodes, Plain: o.plain,
		DemoPrices: true, Apps: append(stack.Apps(), stack.SystemApps()...),
		Webhooks: strings.FieldsFunc(o.webhooks, func(r rune) bool { return r == ',' }), Out: out,
	}
	if err := offerKubernetes(&config, o.kubernetes, out); err != nil {
		return err
	}
	s, err := stack.Up(ctx, config)
	if err != nil {
		return interrupted(ctx, err)
	}
	err = serve(ctx, s, out)
	fmt.Fprintln(out, "stopping")
	return errors.Join(interrupted(ctx, err), s.Close())
}

// wholeNodes is how many nodes a demonstration of Kubernetes has: a server, an agent, and one to grow by.
const wholeNodes = 3

// offerKubernetes adds the app that needs a compiled Kubernetes where the folder has one, and else says how to get it.
func offerKubernetes(config *stack.Config, folder string, out io.Writer) error {
	if _, err := os.Stat(filepath.Join(folder, "built")); folder == "" || errors.Is(err, os.ErrNotExist) {
		fmt.Fprintln(out, "rke2 is left out: run make kubernetes once to compile it, in 6 to 10 minutes")
		return nil
	} else if err != nil {
		return err
	}
	folder, err := filepath.Abs(folder)
	config.Kubernetes, config.WholeNodes = folder, wholeNodes
	config.Apps = append(config.Apps, stack.Kubernetes())
	return err
}

// interrupted drops an error that Ctrl-C brought about.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// serve says where everything is and waits.
func serve(ctx context.Context, s *stack.Stack, out io.Writer) error {
	link, _, err := s.LoginLink(ctx, s.Demo.AdminID)
	if err != nil {
		return err
	}
	operator, _, err := s.LoginLink(ctx, s.Demo.OperatorID)
	if err != nil {
		return err
	}
	for _, node := range s.Nodes {
		fmt.Fprintf(out, "%-10s %s\n", node.Name(), node.Addr())
	}
	fmt.Fprintf(out, `
console    %s
log in     %s
           once, as the demo tenant's admin; for the command line: bin/appctl login --server %s --code LINK
operator   %s
           once, as the platform's operator; the platform's own apps run in APPCTL_PROJECT=%s
automation export APPCTL_SERVER=%s APPCTL_PROJECT=%s APPCTL_TOKEN=$(cat %s)
publisher  eval "$(cat %s)"
           of the app %s: key %s, signs with %s; see examples/publish-ci
           an app and an adapter of its own, without help: make outsider
registry   %s, user push, password in %s
logs       %s

running; Ctrl-C stops everything
`, s.URL, link, s.URL, operator, s.Demo.SystemProjectID, s.URL, s.Demo.ProjectID, s.KeyFile(), s.PublisherEnvFile(),
		stack.PublisherApp, s.PublisherKeyFile(), s.SigningKeyFile(), s.RegistryAddr(),
		s.RegistryPasswordFile(), s.LogDir())
	return s.Wait(ctx)
}
