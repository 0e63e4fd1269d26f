package mutation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// memory bounds the address space of a test run, in KiB: a mutated loop may never end what it collects.
const memory = 8 << 20

// Config is what to mutate and how to test it.
type Config struct {
	// Dir is the module's root, and Package a package below it, such as ./domain/policy.
	Dir, Package string
	// Tests are the packages whose tests run on each mutant; Package's own when it is empty.
	Tests []string
	// TestArgs go to the test programs, such as -test.short.
	TestArgs []string
	// Sample is how many mutants are run at most, drawn by Seed; 0 for all.
	Sample int
	Seed   uint64
	// Timeout bounds the tests of one mutant; ten times those of the unmutated package, and at least five seconds, when
	// it is 0.
	Timeout time.Duration
	// Parallel is how many mutants are run at a time; 1 when it is 0.
	Parallel    int
	Equivalents Equivalents
}

// Result is what became of a sample.
type Result struct {
	// Mutants is how many the package has, NotCompiled how many of the sample do not compile, and Late how many of the
	// killed were so by time alone.
	Mutants, NotCompiled, Late int
	// Each mutant of the sample is in one of these, in the order of the files. Equivalent ones are not run.
	Killed, Survived, Unreached, Equivalent []*Mutant
	// Stale are entries of the list of equivalents that name no mutant of the package.
	Stale []string
}

// OfReached returns the percentage of reached mutants that were killed, OfAll that of all; 100 of none.
func (r *Result) OfReached() int { return percent(len(r.Killed), len(r.Killed)+len(r.Survived)) }

// OfAll returns the percentage of all mutants that were killed, with those that no test reaches.
func (r *Result) OfAll() int {
	return percent(len(r.Killed), len(r.Killed)+len(r.Survived)+len(r.Unreached))
}

func percent(part, whole int) int {
	if whole == 0 {
		return 100
	}
	return part * 100 / whole
}

// Run mutates the package and tests the mutants.
func Run(ctx context.Context, c Config) (*Result, error) {
	folder, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	s, err := load(ctx, c.Dir, c.Package)
	if err != nil {
		return nil, err
	}
	all := find(s)
	result := &Result{Mutants: len(all), Stale: c.Equivalents.stale(c.Package, all)}
	sampled := sample(all, c.Sample, c.Seed)
	wanted := slices.DeleteFunc(slices.Clone(sampled), func(m *Mutant) bool { return c.Equivalents.has(c.Package, m) })
	result.Equivalent = slices.DeleteFunc(sampled, func(m *Mutant) bool { return !c.Equivalents.has(c.Package, m) })
	compiled, programs, err := build(ctx, c, s, wanted, folder)
	if err != nil {
		return nil, err
	}
	result.NotCompiled = len(wanted) - len(compiled)
	return result, result.test(ctx, c, compiled, programs, folder)
}

// sample draws mutants and keeps their order.
func sample(all []*Mutant, size int, seed uint64) []*Mutant {
	if size <= 0 || size >= len(all) {
		return slices.Clone(all)
	}
	drawn := slices.Clone(all)
	random := rand.New(rand.NewPCG(seed, 0)) // #nosec G404 -- a sample that can be drawn again
	random.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	drawn = drawn[:size]
	slices.SortFunc(drawn, func(a, b *Mutant) int { return a.Number - b.Number })
	return drawn
}

// program is a test program and the folder that it runs in.
type program struct{ path, dir string }

// build compiles the test programs with the mutants in them. Mutants on lines that the compiler refuses are left out.
func build(ctx context.Context, c Config, s *source, mutants []*Mutant, folder string) ([]*Mutant, []program, error) {
	tests := c.Tests
	if len(tests) == 0 {
		tests = []string{c.Package}
	}
	for {
		listing, err := overlay(s, mutants, folder)
		if err != nil {
			return nil, nil, err
		}
		programs, refused, err := compile(ctx, c.Dir, tests, listing, folder)
		if err == nil {
			return mutants, programs, nil
		}
		left := slices.DeleteFunc(slices.Clone(mutants), func(m *Mutant) bool { return m.onLines(s, refused) })
		if len(left) == len(mutants) {
			return nil, nil, err
		}
		mutants = left
	}
}

// onLines reports whether the mutant changes one of the lines, named file:line.
func (m *Mutant) onLines(s *source, lines map[string]bool) bool {
	return slices.ContainsFunc(m.edits, func(one edit) bool {
		line := 1 + bytes.Count(s.text[one.file][:one.at], []byte("\n"))
		return lines[one.file+":"+strconv.Itoa(line)]
	})
}

// complaint is a line of the compiler's about a mutated file.
var complaint = regexp.MustCompile(`(?m)([^/\s]+\.go:\d+):\d+: `)

// compile compiles the test programs. On failure it returns the lines that the compiler names, as file:line.
func compile(ctx context.Context, dir string, tests []string, listing, folder string) (
	[]program, map[string]bool, error,
) {
	var programs []program
	for i, test := range tests {
		path := filepath.Join(folder, fmt.Sprintf("tests%d", i))
		command := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", listing, "-o", path, "-gcflags=-e", test)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			refused := map[string]bool{}
			for _, found := range complaint.FindAllSubmatch(out, -1) {
				refused[string(found[1])] = true
			}
			return nil, refused, fmt.Errorf("compile the tests of %s: %w\n%s", test, err, out)
		}
		programs = append(programs, program{path, filepath.Join(dir, test)})
	}
	return programs, nil, nil
}

// test runs the programs without a mutant, and then with each one that they reached.
func (r *Result) test(ctx context.Context, c Config, mutants []*Mutant, programs []program, folder string) error {
	begun := time.Now()
	reached, err := reach(ctx, c, programs, filepath.Join(folder, "reached"))
	if err != nil {
		return err
	}
	if c.Timeout == 0 {
		c.Timeout = max(10*time.Since(begun), 5*time.Second)
	}
	turns := make(chan struct{}, max(1, c.Parallel))
	killed, late := make([]bool, len(mutants)), make([]bool, len(mutants))
	var running sync.WaitGroup
	for i, m := range mutants {
		if !reached[m.Number] {
			continue
		}
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			killed[i] = slices.ContainsFunc(programs, func(one program) bool {
				_, err := one.run(ctx, c.Timeout, c.TestArgs, fmt.Sprintf("MUTANT=%d", m.Number))
				late[i] = errors.Is(err, context.DeadlineExceeded)
				return err != nil
			})
		})
	}
	running.Wait()
	for i, m := range mutants {
		if late[i] {
			r.Late++
		}
		switch {
		case killed[i]:
			r.Killed = append(r.Killed, m)
		case reached[m.Number]:
			r.Survived = append(r.Survived, m)
		default:
			r.Unreached = append(r.Unreached, m)
		}
	}
	return ctx.Err()
}

// reach runs the programs without a mutant and returns the numbers of those that they reach. They are collected in
// the file.
func reach(ctx context.Context, c Config, programs []program, file string) (map[int]bool, error) {
	for _, one := range programs {
		if out, err := one.run(ctx, 10*time.Minute, c.TestArgs, "MUTANT_REACHED="+file); err != nil {
			return nil, fmt.Errorf("the tests fail without a mutant: %w\n%s", err, out)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	reached := map[int]bool{}
	for _, line := range strings.Fields(string(text)) {
		number, err := strconv.Atoi(line)
		if err != nil {
			return nil, fmt.Errorf("read the reached mutants: %w", err)
		}
		reached[number] = true
	}
	return reached, nil
}

// run returns what the tests wrote, and an error when they fail or take longer than the limit.
func (p program) run(ctx context.Context, limit time.Duration, args []string, environment string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	bounded := []string{"-c", fmt.Sprintf(`ulimit -v %d && exec "$0" "$@"`, memory), p.path, "-test.failfast"}
	command := exec.CommandContext(ctx, "sh", append(bounded, args...)...) // #nosec G204 -- what was just compiled
	command.Dir, command.Env = p.dir, append(os.Environ(), environment)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) } // and what it started
	command.WaitDelay = 5 * time.Second
	out, err := command.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out, err
}
