// Command lab is the program behind `make run`: it brings a whole local installation up on one machine, keeps it running, and
// takes it down again on Ctrl-C, last first, leaving no process, namespace or mount. Its data folder is kept for the next run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/gpuaas/app-platform/internal/lab"
	"github.com/gpuaas/app-platform/internal/prereq"
	"github.com/gpuaas/app-platform/internal/rig"
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
	databaseURL string
	nodes       int
	plain       bool
}

const maxNodes = 32

func parse(args []string, out io.Writer) (options, error) {
	o := options{databaseURL: os.Getenv("DATABASE_URL")}
	flags := flag.NewFlagSet("lab", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.data, "data", ".data", "folder that keeps the installation")
	flags.IntVar(&o.nodes, "nodes", 3, "number of local nodes; without namespaces there is one")
	flags.BoolVar(&o.plain, "plain", false, "run the local node without namespaces, also as root")
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
	cfg := rig.Config{Dir: o.data, DatabaseURL: o.databaseURL, Plain: o.plain, Out: out}
	if os.Geteuid() == 0 && !o.plain {
		cfg.Features = []prereq.Feature{prereq.Slurm}
	}
	r, err := rig.Up(ctx, cfg)
	if err != nil {
		return interrupted(ctx, err)
	}
	err = serve(ctx, r, o, out)
	fmt.Fprintln(out, "stopping")
	return errors.Join(interrupted(ctx, err), r.Close())
}

// interrupted drops an error that Ctrl-C brought about.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func serve(ctx context.Context, r *rig.Rig, o options, out io.Writer) error {
	if err := addNodes(ctx, r, o, out); err != nil {
		return err
	}
	fmt.Fprintf(out, "registry  http://%s\n", r.RegistryAddr())
	fmt.Fprintln(out, "running; Ctrl-C stops everything")
	return r.Wait(ctx)
}

func addNodes(ctx context.Context, r *rig.Rig, o options, out io.Writer) error {
	count := o.nodes
	if r.Network() == nil {
		count = 1
		fmt.Fprintln(out, "without root: one local node, its members are plain processes")
	}
	for i := 1; i <= count; i++ {
		node, err := r.AddNode(ctx, fmt.Sprintf("node-%d", i))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s    %s\n", node.Name(), node.Addr())
	}
	return nil
}
