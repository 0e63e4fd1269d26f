// Command bench measures the platform, each figure beside its reference in the same run, and fails
// when a figure misses its bar. See docs/benchmarks.md.
//
//	bench [-short] [-only detail,list,…] [-rounds n] [-month n] [-scale] [-data dir] [-profile dir]
//	      [-postgraphile dir] [-no-fail]
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

	"github.com/gpuaas/app-platform/rig/bench/books"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/decisions"
	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/load"
	"github.com/gpuaas/app-platform/rig/bench/operations"
	"github.com/gpuaas/app-platform/rig/bench/peers"
	"github.com/gpuaas/app-platform/rig/bench/peers/gqlgen"
	"github.com/gpuaas/app-platform/rig/bench/platform"
	"github.com/gpuaas/app-platform/rig/bench/process"
	"github.com/gpuaas/app-platform/rig/bench/queries"
	"github.com/gpuaas/app-platform/rig/bench/reference"
	"github.com/gpuaas/app-platform/rig/bench/reference/frozen"
	"github.com/gpuaas/app-platform/rig/bench/relay"
)

// roles are what this program can be besides the bench itself.
var roles = map[process.Role]process.Main{
	sourceRole:    sourceMain,
	platform.Role: platform.Main, reference.Role: reference.Main, frozen.Role: frozen.Main,
	gqlgen.Role: gqlgen.Main, peers.PostGraphileRole: peers.PostGraphile,
	reference.BroadcastRole: reference.Broadcast,
	load.SocketsRole:        load.Sockets,
	kit.AdapterRole:         kit.AdapterMain, kit.NoopRole: kit.NoopMain,
	relay.SourceRole: relay.Source, relay.AgentRole: relay.Agent, relay.HopRole: relay.Hop,
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

// bench is one run.
type bench struct{ *kit.Bench }

// subjects returns what can be measured, in order.
func subjects() []kit.Subject {
	return slices.Concat(decisions.Subjects, []kit.Subject{
		{Name: "rls", Measure: on(measureRLS)},
		{Name: "audit", Measure: on(measureAudit)},
		{Name: "denials", Measure: on(measureDenials)},
	}, queries.Subjects, []kit.Subject{
		{Name: "delivery", Measure: on(measureDelivery)},
		{Name: "members", Measure: on(measureMembers)},
		{Name: "fanout", Measure: on(measureFanout)},
	}, relay.Subjects, operations.Subjects, books.Subjects, []kit.Subject{{Name: "scale", Measure: on(measureScale)}})
}

// on makes a measurement of this program one of the kit's.
func on(measure func(context.Context, *bench) error) func(context.Context, *kit.Bench) error {
	return func(ctx context.Context, b *kit.Bench) error { return measure(ctx, &bench{b}) }
}

func names() []string {
	var all []string
	for _, one := range subjects() {
		all = append(all, one.Name)
	}
	return all
}

func parse(args []string, stderr io.Writer) (kit.Plan, error) {
	p := kit.Full()
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	short := flags.Bool("short", false, "little data and few rounds: a quick run")
	only := flags.String("only", "", "what to measure, separated by commas: "+strings.Join(names(), ", ")+
		" (default all)")
	scale := flags.Bool("scale", false,
		"compare 20,000 instances with 200,000 and 10,000,000 events, instead of a tenth of each")
	rounds := flags.Int("rounds", 0, "rounds of each side (default 5, or 2 with -short)")
	month := flags.Int("month", 0, "usage records of the month that is rated (default 500,000, or 50,000 with -short)")
	flags.StringVar(&p.Data, "data", p.Data, "folder of the database; it is kept between runs")
	flags.StringVar(&p.Profile, "profile", "", "folder for CPU profiles of the platform")
	flags.IntVar(&p.Pool, "pool", p.Pool, "database connections of each login role, on both sides")
	flags.StringVar(&p.PostGraphile, "postgraphile", "", "folder in which PostGraphile is installed, for peers; "+
		"empty to skip it (see make bench-peers)")
	flags.BoolVar(&p.NoFail, "no-fail", false, "exit with success even when a bar is missed")
	if err := flags.Parse(args); err != nil {
		return p, err
	}
	if *short {
		p.Short()
	}
	if *scale {
		p.Scale = [2]dataset.Size{dataset.Full, dataset.Tenfold}
	}
	if *month > 0 {
		p.Month = *month
	}
	if *rounds > 0 {
		p.Rounds = *rounds
	}
	if *only != "" {
		p.Only = strings.Split(*only, ",")
	}
	for _, name := range p.Only {
		if !slices.Contains(names(), name) {
			return p, fmt.Errorf("-only: %q is not one of %s", name, strings.Join(names(), ", "))
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
	if len(sheet.Figures) == 0 && err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s, %d cores, %s, %d instances, %d events, %d rounds\n\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(),
		runtime.Version(), p.Size.Instances, p.Size.Instances*p.Size.Events, p.Rounds)
	sheet.Print(stdout)
	if err != nil {
		return err // after what was measured before it
	}
	if sheet.Missed() && !p.NoFail {
		return errMissed
	}
	return nil
}

// measure runs every subject of the plan and returns the figures, also those from before an error.
func measure(ctx context.Context, p kit.Plan, log *slog.Logger) (*kit.Sheet, error) {
	s := &kit.Sheet{}
	b := &kit.Bench{Plan: p, Log: log, Sheet: s}
	if p.Data == "" {
		return s, errors.New("a folder for the database is needed")
	}
	set, err := dataset.Open(ctx, dataset.Config{Dir: p.Data, Size: p.Size, Log: log, Profile: p.Durability})
	if err != nil {
		return s, err
	}
	defer set.Close()
	b.Set = set
	for _, one := range subjects() {
		if len(p.Only) > 0 && !slices.Contains(p.Only, one.Name) {
			continue
		}
		log.Info("measuring", "subject", one.Name)
		if err := one.Measure(ctx, b); err != nil {
			return s, fmt.Errorf("%s: %w", one.Name, err)
		}
	}
	return s, nil
}
