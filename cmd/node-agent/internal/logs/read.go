package logs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logfile"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/masks"
	"github.com/gpuaas/app-platform/sdk/nodelogs"
)

// What readers elsewhere send and get.
type (
	// Query says what to read.
	Query = nodelogs.Query
	// Line is one line, a part of a long one, or a gap.
	Line = nodelogs.Line
	// Gap is a range of lines that are not there any more.
	Gap = nodelogs.Gap
	// Last is the last lines of a process.
	Last = nodelogs.Last
)

// source is one process that is read.
type source struct {
	name   string
	reader *logfile.Reader
	head   *Line // read and not yet handed on
}

// reading is one call of Read.
type reading struct {
	store   *Store
	query   Query
	folder  *os.Root
	waiter  *waiter
	sources map[string]*source
	skipped map[string]int64 // by the tail: the last number, by process
	first   bool             // the processes that are there at the beginning are not opened yet
	count   int
}

// Read passes the lines of a member to each, until no lines are left, the limit is reached, or each returns an error,
// which Read returns. It waits for each: what a slow reader misses by rotation is a gap.
func (s *Store) Read(ctx context.Context, query Query, each func(Line) error) error {
	folder, err := s.folder(query.Member)
	if err != nil {
		return err
	}
	r := &reading{store: s, query: query, folder: folder, waiter: &waiter{wake: make(chan struct{}, 1)},
		sources: map[string]*source{}, skipped: map[string]int64{}, first: true}
	defer r.close()
	err = r.run(ctx, each)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// errEnough ends a reading at its limit.
var errEnough = errors.New("enough")

func (r *reading) close() {
	r.store.notices.drop(r.waiter)
	for _, one := range r.sources {
		one.reader.Close()
	}
	_ = r.folder.Close()
}

func (r *reading) run(ctx context.Context, each func(Line) error) error {
	if err := r.watchMember(); err != nil {
		return err
	}
	emit := r.limited(each)
	if r.query.Tail > 0 {
		if err := r.tail(ctx, each, emit); err != nil {
			return err
		}
	}
	for {
		last := !r.query.Follow || r.gone() // before the lines are read that came before the end
		if err := r.drain(ctx, emit); err != nil || last {
			return err
		}
		select {
		case <-r.waiter.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// limited counts what is handed on.
func (r *reading) limited(each func(Line) error) func(Line) error {
	return func(line Line) error {
		if err := each(line); err != nil {
			return err
		}
		if r.count++; r.query.Limit > 0 && r.count >= r.query.Limit {
			return errEnough
		}
		return nil
	}
}

// tail hands on the last lines of all processes together.
func (r *reading) tail(ctx context.Context, each, emit func(Line) error) error {
	var last []Line
	keep := min(r.query.Tail, nodelogs.MaxTail)
	cut := func(to int) {
		for _, line := range last[:max(0, len(last)-to)] {
			r.skipped[line.Process] = line.Number
		}
		last = append(last[:0], last[max(0, len(last)-to):]...)
	}
	err := r.drain(ctx, func(line Line) error {
		if last = append(last, line); len(last) >= 2*keep {
			cut(keep)
		}
		return nil
	})
	cut(keep)
	if err == nil {
		err = r.marks(each)
	}
	for _, line := range last {
		if err == nil {
			err = emit(line)
		}
	}
	return err
}

// marks reports what the tail leaves out, by process, so that a reader that goes on does not get it.
func (r *reading) marks(each func(Line) error) error {
	for _, name := range slices.Sorted(maps.Keys(r.skipped)) {
		if err := each(Line{Process: name, Number: r.skipped[name], Mark: true}); err != nil {
			return err
		}
	}
	return nil
}

// watchMember has the follower woken by another process, and by the member's end.
func (r *reading) watchMember() error {
	if !r.query.Follow {
		return nil
	}
	state, err := r.store.state(r.query.Member)
	if err != nil {
		return err
	}
	defer state.Close()
	return errors.Join(r.watch(state, loses), r.watch(r.folder, grows))
}

// watch has the follower woken when a folder changes.
func (r *reading) watch(folder *os.Root, changes uint32) error {
	if !r.query.Follow {
		return nil
	}
	dir, err := folder.Open(".")
	if err != nil {
		return fmt.Errorf("follow logs: %w", err)
	}
	defer dir.Close()
	return r.store.notices.add(r.waiter, dir, changes)
}

// gone reports whether the member was removed.
func (r *reading) gone() bool {
	info, err := r.folder.Stat(".")
	if err != nil {
		return true
	}
	still, err := r.store.folder(r.query.Member)
	if err != nil {
		return true
	}
	defer still.Close()
	now, err := still.Stat(".")
	return err != nil || !os.SameFile(info, now)
}

// drain hands on everything that is there, in the order of time.
func (r *reading) drain(ctx context.Context, emit func(Line) error) error {
	if err := r.open(); err != nil {
		return err
	}
	set, err := r.store.options.Masks.Of(r.query.Member)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		var earliest *source
		for _, one := range r.sources {
			if err := one.fill(set, r.query.Since); err != nil {
				return err
			}
			if one.head != nil && (earliest == nil || one.before(earliest)) {
				earliest = one
			}
		}
		if earliest == nil {
			return nil
		}
		line := *earliest.head
		earliest.head = nil
		if err := emit(line); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// before orders by time, then by name. A gap comes before any line.
func (s *source) before(other *source) bool {
	if s.head.Time.Equal(other.head.Time) {
		return s.name < other.name
	}
	return s.head.Time.Before(other.head.Time)
}

// open begins to read the processes that are wanted and not read yet.
func (r *reading) open() error {
	found, err := names(r.folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	known := false
	for _, name := range found {
		known = known || name == r.query.Process
		if r.sources[name] != nil || r.query.Process != "" && name != r.query.Process {
			continue
		}
		if err := r.begin(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if r.first && r.query.Process != "" && !known {
		return ErrNoProcess
	}
	r.first = false
	return nil
}

// begin reads a process from where the query says.
func (r *reading) begin(name string) error {
	dir, err := r.folder.OpenRoot(name)
	if err != nil {
		return err
	}
	after, err := r.start(dir, name)
	if err == nil {
		err = r.watch(dir, grows)
	}
	if err != nil {
		_ = dir.Close()
		return err
	}
	r.sources[name] = &source{name: name, reader: logfile.NewReader(dir, after)}
	return nil
}

// start returns the number after which the process is read.
func (r *reading) start(dir *os.Root, name string) (int64, error) {
	after, has := r.query.After[name]
	if !has {
		if r.first && r.query.Tail > 0 {
			before, err := logfile.Before(dir, min(r.query.Tail, nodelogs.MaxTail))
			if before > 0 {
				r.skipped[name] = before
			}
			return before, err
		}
		return 0, nil
	}
	last, err := logfile.Last(dir)
	if err == nil && (after > last || after < 0) {
		err = ErrAhead
	}
	return after, err
}

// fill reads the next line, when there is one and none is waiting to be handed on.
func (s *source) fill(set *masks.Set, since time.Time) error {
	for s.head == nil {
		item, ok, err := s.reader.Next()
		if !ok || errors.Is(err, fs.ErrNotExist) {
			return nil // no more by now, or never again
		}
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		if item.Gap == nil && item.Entry.Time.Before(since) {
			continue
		}
		line := lineOf(s.name, item, set)
		s.head = &line
	}
	return nil
}

// lineOf returns what leaves the node of a line.
func lineOf(process string, item logfile.Item, set *masks.Set) Line {
	if gap := item.Gap; gap != nil {
		return Line{Process: process, Number: gap.To, Gap: &Gap{From: gap.From, To: gap.To, Restarted: gap.Restarted}}
	}
	entry := item.Entry
	text := masks.Text{Bytes: entry.Text, Before: entry.Continued, Follows: entry.Part}
	shown := nodelogs.Plain(set.Hide(text))
	if !nodelogs.IsPlain(entry.Text) { // what only now reads as a secret
		text.Bytes = []byte(shown)
		shown = string(set.Hide(text))
	}
	return Line{Process: process, Number: entry.Number, Time: entry.Time, Stream: entry.Stream.String(), Text: shown,
		Part: entry.Part}
}
