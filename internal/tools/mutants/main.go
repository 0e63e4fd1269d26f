// Command mutants mutates a package and runs its tests on each mutant: go run ./internal/tools/mutants ./domain/policy.
// It prints the mutants that survive and those that no test reaches, and how many of a hundred were killed.
// docs/testing.md says how to read them.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/internal/tools/mutants/mutation"
)

// equivalents is the list of mutants that no test can kill.
//
//go:embed equivalents.txt
var equivalents string

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	c := mutation.Config{Dir: "."}
	flag.IntVar(&c.Sample, "sample", 120, "how many mutants to run; 0 for all")
	flag.Uint64Var(&c.Seed, "seed", 1, "which sample to draw")
	flag.DurationVar(&c.Timeout, "timeout", 0,
		"time for the tests of one mutant; ten times the unmutated run by default")
	flag.IntVar(&c.Parallel, "parallel", 2, "how many mutants to run at a time")
	only := flag.String("run", "", "run only the tests that match, as go test -run")
	short := flag.Bool("short", false, "run the tests with -short")
	all := flag.Bool("v", false, "print the killed mutants too")
	flag.Usage = usage
	flag.Parse()
	if flag.NArg() == 0 {
		usage()
		os.Exit(2)
	}
	c.Package, c.Tests = flag.Arg(0), flag.Args()[1:]
	if *only != "" {
		c.TestArgs = append(c.TestArgs, "-test.run="+*only)
	}
	if *short {
		c.TestArgs = append(c.TestArgs, "-test.short")
	}
	var err error
	if c.Equivalents, err = mutation.ParseEquivalents(equivalents); err != nil {
		return fmt.Errorf("equivalents.txt: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	begun := time.Now()
	result, err := mutation.Run(ctx, c)
	if err != nil {
		return err
	}
	show(result, c, *all, time.Since(begun))
	return nil
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: mutants [flags] PACKAGE [PACKAGE WITH TESTS]...")
	flag.PrintDefaults()
}

func show(r *mutation.Result, c mutation.Config, all bool, took time.Duration) {
	print := func(what string, mutants []*mutation.Mutant) {
		for _, m := range mutants {
			fmt.Printf("%-10s %s\n", what, m)
		}
	}
	if all {
		print("killed", r.Killed)
		print("equivalent", r.Equivalent)
	}
	print("survived", r.Survived)
	print("unreached", r.Unreached)
	for _, name := range r.Stale {
		fmt.Println("stale entry of equivalents.txt:", name)
	}
	run := len(r.Killed) + len(r.Survived) + len(r.Unreached)
	fmt.Printf("%s: %d of %d mutants, seed %d: %d killed, %d survived, %d unreached\n",
		c.Package, run, r.Mutants, c.Seed, len(r.Killed), len(r.Survived), len(r.Unreached))
	fmt.Printf("%s: %d killed by time alone, %d equivalents left out, %d not compiled\n",
		c.Package, r.Late, len(r.Equivalent), r.NotCompiled)
	fmt.Printf("%s: %d %% of the reached and %d %% of all were killed, in %s\n",
		c.Package, r.OfReached(), r.OfAll(), took.Round(time.Second))
}
