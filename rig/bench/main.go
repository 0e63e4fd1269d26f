// Command bench measures the platform, each figure beside its reference in the same run, and fails
// when a figure misses its bar. See docs/benchmarks.md.
//
//	bench [-short] [-only detail,list,…] [-rounds n] [-scale] [-data dir] [-profile dir] [-no-fail]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/internal/postgres"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/load"
	"github.com/gpuaas/app-platform/rig/bench/platform"
	"github.com/gpuaas/app-platform/rig/bench/process"
	"github.com/gpuaas/app-platform/rig/bench/reference"
)

// roles are what this program can be besides the bench itself.
var roles = map[process.Role]process.Main{
	sourceRole:    sourceMain,
	platform.Role: platform.Main, reference.Role: reference.Main, reference.BroadcastRole: reference.Broadcast,
	load.SocketsRole: load.Sockets,
	adapterRole:      adapterMain, noopRole: noopMain,
}

// errMissed says that a figure missed its bar.
var errMissed = errors.New("a bar was missed")

func main() {
	if code, child := process.Run(roles); child {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// plan is how much is measured.
type plan struct {
	data        string // folder of the database
	profile     string // folder for CPU profiles of the platform; empty for none
	size        dataset.Size
	durability  postgres.Profile
	only        []string
	rounds      int
	callers     int           // people who ask
	connections int           // HTTP connections at once
	pool        int           // database connections of each login role
	span        time.Duration // one round of requests
	catalog     int           // manifests and artifacts
	blob        int64         // bytes of the artifact that is delivered, and of the one over which memory must stay flat
	large       int64
	sockets     []int           // fan-outs
	messages    int             // of a round of fan-out, over all sockets
	rate        int             // operations a second
	operations  int             // of a round of dispatches
	backlog     int             // operations of a round of throughput
	long        int             // operations over which memory must stay flat
	waiting     int             // operations that wait at once, and of a backlog that others live beside
	wait        time.Duration   // for which they are watched
	scale       [2]dataset.Size // one ten times the other
	noFail      bool
}

// full is the plan behind the published figures.
func full() plan {
	return plan{
		data: ".data/bench", size: dataset.Full, durability: postgres.Durable, rounds: 5, callers: 64, connections: 64, pool: 16,
		span: 4 * time.Second, catalog: 5_000, blob: 512 << 20, large: 2 << 30, sockets: []int{1_000, 10_000}, messages: 300_000, rate: 50, operations: 750,
		backlog: 5_000, long: 100_000, waiting: 10_000, wait: 20 * time.Second, scale: [2]dataset.Size{dataset.Tenth, dataset.Full},
	}
}

// short makes a plan a quick look.
func (p *plan) short() {
	p.size, p.rounds, p.span = dataset.Short, 2, time.Second
	p.sockets, p.messages, p.operations = []int{500}, 50_000, 150
	p.blob = 128 << 20
	p.backlog, p.long, p.waiting, p.wait = 1_000, 3_000, 1_000, 5*time.Second
}

func parse(args []string, stderr io.Writer) (plan, error) {
	p := full()
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	short := flags.Bool("short", false, "little data and few rounds: a quick look")
	only := flags.String("only", "", "what to measure, separated by commas: "+strings.Join(names(), ", ")+" (default all)")
	scale := flags.Bool("scale", false, "compare 20,000 instances with 200,000 and 10,000,000 events, instead of a tenth of each")
	rounds := flags.Int("rounds", 0, "rounds of each side (default 5, or 2 with -short)")
	flags.StringVar(&p.data, "data", p.data, "folder of the database; it is kept between runs")
	flags.StringVar(&p.profile, "profile", "", "folder for CPU profiles of the platform")
	flags.IntVar(&p.pool, "pool", p.pool, "database connections of each login role, on both sides")
	flags.BoolVar(&p.noFail, "no-fail", false, "end with success even when a bar is missed")
	if err := flags.Parse(args); err != nil {
		return p, err
	}
	if *short {
		p.short()
	}
	if *scale {
		p.scale = [2]dataset.Size{dataset.Full, dataset.Tenfold}
	}
	if *rounds > 0 {
		p.rounds = *rounds
	}
	if *only != "" {
		p.only = strings.Split(*only, ",")
	}
	for _, name := range p.only {
		if !slices.Contains(names(), name) {
			return p, fmt.Errorf("-only: %q is none of %s", name, strings.Join(names(), ", "))
		}
	}
	return p, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	p, err := parse(args, stderr)
	if err != nil {
		return err
	}
	sheet, err := measure(ctx, p, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s, %d cores, %s, %d instances, %d events, %d rounds\n\n", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(),
		runtime.Version(), p.size.Instances, p.size.Instances*p.size.Events, p.rounds)
	sheet.print(stdout)
	if sheet.missed() && !p.noFail {
		return errMissed
	}
	return nil
}

// measure runs every subject of the plan and answers what it came to.
func measure(ctx context.Context, p plan, log *slog.Logger) (*sheet, error) {
	s := &sheet{}
	b := &bench{plan: p, log: log, sheet: s}
	if p.data == "" {
		return nil, errors.New("a folder for the database is needed")
	}
	set, err := dataset.Open(ctx, dataset.Config{Dir: p.data, Size: p.size, Log: log, Profile: p.durability})
	if err != nil {
		return nil, err
	}
	defer set.Close()
	b.set = set
	for _, one := range subjects {
		if len(p.only) > 0 && !slices.Contains(p.only, one.name) {
			continue
		}
		log.Info("measuring", "subject", one.name)
		if err := one.measure(ctx, b); err != nil {
			return nil, fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return s, nil
}
