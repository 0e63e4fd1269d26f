package logs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logfile"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/masks"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/seal"
)

const (
	member   = "mem_0000000000000000000000logs"
	patience = 60 * time.Second
)

// ground is a node with one member, whose init is the test.
type ground struct {
	t      *testing.T
	state  string
	store  *logs.Store
	masks  *masks.Keeper
	folder *os.Root
}

func newGround(t *testing.T, nodeBytes int64) *ground {
	t.Helper()
	g := &ground{t: t, state: t.TempDir()}
	g.addMember(member)
	key, err := seal.LoadOrCreate(g.state)
	require.NoError(t, err)
	g.masks = masks.NewKeeper(g.state, key)
	g.store, err = logs.New(logs.Options{StateDir: g.state, Masks: g.masks, NodeBytes: nodeBytes,
		Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(g.store.Close)
	g.folder = g.folderOf(member)
	return g
}

func (g *ground) addMember(id string) {
	g.t.Helper()
	dir := filepath.Join(g.state, roster.Dir, id)
	require.NoError(g.t, os.MkdirAll(filepath.Join(dir, "state", "logs"), 0o700))
	require.NoError(g.t, roster.Store(dir, roster.Record{MemberID: id}))
}

func (g *ground) folderOf(id string) *os.Root {
	g.t.Helper()
	folder, err := os.OpenRoot(filepath.Join(g.state, roster.Dir, id, "state", "logs"))
	require.NoError(g.t, err)
	g.t.Cleanup(func() { _ = folder.Close() })
	return folder
}

func (g *ground) process(name string) *logfile.Writer {
	g.t.Helper()
	w, err := logfile.Open(g.folder, name, logfile.MinBound)
	require.NoError(g.t, err)
	g.t.Cleanup(w.Close)
	return w
}

func (g *ground) read(query logs.Query) (lines []logs.Line) {
	g.t.Helper()
	query.Member = member
	require.NoError(g.t, g.store.Read(g.t.Context(), query, func(line logs.Line) error {
		lines = append(lines, line)
		return nil
	}))
	return lines
}

// short is each line as "process number text", and each gap as "process from..to".
func short(lines []logs.Line) (list []string) {
	for _, line := range lines {
		if line.Mark {
			list = append(list, fmt.Sprintf("%s after %d", line.Process, line.Number))
			continue
		}
		text := fmt.Sprintf("%s %d %s", line.Process, line.Number, line.Text)
		if line.Gap != nil {
			text = fmt.Sprintf("%s %d..%d", line.Process, line.Gap.From, line.Gap.To)
		}
		list = append(list, text)
	}
	return list
}

func printTo(w *logfile.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w.Lines(logfile.Stdout), format+"\n", args...)
}

func TestLinesOfAllProcessesComeInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	g := newGround(t, 1<<30)
	require.Empty(t, g.read(logs.Query{}))
	a, b := g.process("a"), g.process("b")
	printTo(b, "one")
	printTo(a, "two")
	_, _ = b.Lines(logfile.Stderr).Write([]byte("three\n"))
	printTo(a, "four")
	all := g.read(logs.Query{})
	require.Equal(t, []string{"b 1 one", "a 1 two", "b 2 three", "a 2 four"}, short(all))
	require.Equal(t, "stderr", all[2].Stream)
	require.WithinDuration(t, time.Now(), all[0].Time, time.Minute)
	require.Equal(t, []string{"a 1 two", "a 2 four"}, short(g.read(logs.Query{Process: "a"})))
	require.Equal(t, []string{"a after 1", "b after 1", "b 2 three", "a 2 four"}, short(g.read(logs.Query{Tail: 2})))
	require.Equal(t, []string{"a after 1", "b after 2", "a 2 four"}, short(g.read(logs.Query{Tail: 1})),
		"who goes on gets nothing that the tail left out")
	require.Equal(t, []string{"b 1 one", "a 1 two", "b 2 three", "a 2 four"}, short(g.read(logs.Query{Tail: 9})))
	require.Equal(t, []string{"b 1 one", "a 1 two"}, short(g.read(logs.Query{Limit: 2})))
	require.Equal(t, []string{"b 2 three", "a 2 four"},
		short(g.read(logs.Query{After: map[string]int64{"b": 1, "a": 1}})))
	require.Equal(t, []string{"b 2 three", "a 2 four"}, short(g.read(logs.Query{Since: all[2].Time})))
	names, err := g.store.Processes(member)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names)
}

func TestWhatIsNotThereIsSaid(t *testing.T) {
	t.Parallel()
	g := newGround(t, 1<<30)
	printTo(g.process("a"), "one")
	none := func(logs.Line) error { return nil }
	for _, c := range []struct {
		query logs.Query
		want  error
	}{
		{logs.Query{Member: "mem_other"}, logs.ErrNoMember},
		{logs.Query{Member: "../../etc"}, logs.ErrNoMember},
		{logs.Query{Member: member, Process: "b"}, logs.ErrNoProcess},
		{logs.Query{Member: member, Process: "../a"}, logs.ErrNoProcess},
		{logs.Query{Member: member, After: map[string]int64{"a": 2}}, logs.ErrAhead},
		{logs.Query{Member: member, After: map[string]int64{"a": -1}}, logs.ErrAhead},
	} {
		require.ErrorIs(t, g.store.Read(t.Context(), c.query, none), c.want, "%+v", c.query)
	}
	enough := errors.New("enough")
	require.ErrorIs(t, g.store.Read(t.Context(), logs.Query{Member: member}, func(logs.Line) error { return enough }),
		enough)
}

func TestCursorWhoseLinesWereRotatedAwayGivesAGap(t *testing.T) {
	t.Parallel()
	g := newGround(t, 1<<30)
	w := g.process("a")
	for i := range 10_000 {
		printTo(w, "line %d %s", i+1, strings.Repeat("x", 60))
	}
	lines := short(g.read(logs.Query{After: map[string]int64{"a": 5}}))
	require.Regexp(t, `^a 6\.\.\d+$`, lines[0])
	require.Regexp(t, `^a 10000 line 10000 x`, lines[len(lines)-1])
	require.Len(t, g.read(logs.Query{Tail: 100}), 1+100)
}

// A line with everything that a terminal or a page would obey, and a secret with an escape sequence in its middle.
func TestNothingHostileLeaves(t *testing.T) {
	t.Parallel()
	g := newGround(t, 1<<30)
	require.NoError(t, g.masks.Keep(member, [][]byte{[]byte("hunter22")}))
	w := g.process("a")
	printTo(w, "%s", "\x1b[31mred\x1b[0m \x1b]0;title\x07t \x1b]8;;http://x\x1b\\l\x1bc \xff\xfe \x00\x08\x7f "+
		"\u009b1m \u202e\u2028 ö\ttab\r\r")
	printTo(w, "key hunter22, hun\x1b[1mter22 and aHVudGVyMjI=")
	require.Equal(t, []string{"a 1 red t l \ufffd \ufffd\ufffd\ufffd \ufffd1m \ufffd\ufffd ö\ttab",
		"a 2 key [masked], [masked] and [masked]"}, short(g.read(logs.Query{})))
	long := strings.Repeat("x", logfile.MaxText-4) + "hunter22" + "y"
	printTo(w, "%s", long)
	parts := g.read(logs.Query{After: map[string]int64{"a": 2}})
	require.Len(t, parts, 2)
	require.True(t, parts[0].Part)
	require.Equal(t, strings.Repeat("x", logfile.MaxText-4)+"[masked]", parts[0].Text)
	require.Equal(t, "[masked]y", parts[1].Text)
	require.False(t, parts[1].Part)
}

// follow reads in the background.
func (g *ground) follow(query logs.Query) (<-chan logs.Line, <-chan error, context.CancelFunc) {
	ctx, stop := context.WithCancel(g.t.Context())
	lines, ended := make(chan logs.Line), make(chan error, 1)
	query.Member, query.Follow = member, true
	go func() {
		ended <- g.store.Read(ctx, query, func(line logs.Line) error {
			select {
			case lines <- line:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	g.t.Cleanup(stop)
	return lines, ended, stop
}

func (g *ground) next(lines <-chan logs.Line) string {
	g.t.Helper()
	select {
	case line := <-lines:
		return short([]logs.Line{line})[0]
	case <-time.After(patience):
		require.FailNow(g.t, "no line comes")
		return ""
	}
}

func TestFollowerGetsLinesProcessesAndTheEnd(t *testing.T) {
	t.Parallel()
	g := newGround(t, 1<<30)
	a := g.process("a")
	for i := range 5 {
		printTo(a, "early %d", i+1)
	}
	lines, ended, _ := g.follow(logs.Query{Tail: 1})
	require.Equal(t, "a after 4", g.next(lines))
	require.Equal(t, "a 5 early 5", g.next(lines))
	printTo(a, "later")
	require.Equal(t, "a 6 later", g.next(lines))
	b := g.process("b")
	printTo(b, "new")
	require.Equal(t, "b 1 new", g.next(lines))
	for i := range 20_000 { // a follower that does not read stops nobody
		printTo(a, "%d %s", i+7, strings.Repeat("x", 50))
	}
	at := int64(6)
	for at < 20_006 {
		line := <-lines
		if line.Gap != nil {
			require.Equal(t, at+1, line.Gap.From)
		} else {
			require.Equal(t, at+1, line.Number)
		}
		at = line.Number
	}
	printTo(b, "last words")
	require.Equal(t, "b 2 last words", g.next(lines))
	require.NoError(t, os.RemoveAll(filepath.Join(g.state, roster.Dir, member)))
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(patience):
		require.FailNow(t, "the follower does not notice the member's end")
	}
}

func TestFollowerEndsWithItsContextAndLeavesNoWatch(t *testing.T) {
	t.Parallel()
	g := newGround(t, 1<<30)
	a := g.process("a")
	first, firstEnded, stopFirst := g.follow(logs.Query{Process: "a"})
	second, _, _ := g.follow(logs.Query{Process: "a"})
	printTo(a, "one")
	require.Equal(t, "a 1 one", g.next(first))
	require.Equal(t, "a 1 one", g.next(second))
	stopFirst()
	require.ErrorIs(t, <-firstEnded, context.Canceled)
	printTo(a, "two")
	require.Equal(t, "a 2 two", g.next(second), "what they shared is left to the other")
}

func TestNodesBoundTakesFromWhoHoldsMost(t *testing.T) {
	t.Parallel()
	g := newGround(t, 200<<10)
	loud, quiet := g.process("loud"), g.process("quiet")
	printTo(quiet, "a word")
	for i := range 5000 {
		printTo(loud, "line %d %s", i+1, strings.Repeat("x", 50))
	}
	require.NoError(t, g.store.Trim())
	var total int64
	require.NoError(t, filepath.Walk(filepath.Join(g.state, roster.Dir),
		func(_ string, info os.FileInfo, err error) error {
			if filepath.Ext(info.Name()) == ".log" {
				total += info.Size()
			}
			return err
		}))
	require.LessOrEqual(t, total, int64(200<<10))
	require.Equal(t, []string{"quiet 1 a word"}, short(g.read(logs.Query{Process: "quiet"})))
	lines := short(g.read(logs.Query{Process: "loud"}))
	require.Regexp(t, `^loud 1\.\.\d+$`, lines[0])
	require.Regexp(t, "^loud 5000 line 5000 x", lines[len(lines)-1])
	printTo(loud, "goes on")
	require.Equal(t, []string{"loud 5001 goes on"},
		short(g.read(logs.Query{Process: "loud", After: map[string]int64{"loud": 5000}})))
}

func TestLastLinesOutliveTheMember(t *testing.T) {
	t.Parallel()
	g := newGround(t, 1<<30)
	require.NoError(t, g.masks.Keep(member, [][]byte{[]byte("hunter22")}))
	a, b := g.process("a"), g.process("b")
	for i := range 3000 {
		printTo(a, "line %d %s", i+1, strings.Repeat("\x01", 90))
	}
	printTo(b, "my hunter22")
	require.NoError(t, g.store.Keep(t.Context(), member))
	require.NoError(t, os.RemoveAll(filepath.Join(g.state, roster.Dir, member, "state", "logs", "a")))
	require.NoError(t, g.store.Keep(t.Context(), member), "a removal that was broken off is repeated")
	require.NoError(t, os.RemoveAll(filepath.Join(g.state, roster.Dir, member)))
	require.NoError(t, g.store.Keep(t.Context(), member))
	last, err := g.store.Last(member)
	require.NoError(t, err)
	require.Len(t, last, 2)
	require.True(t, last[0].Earlier)
	require.Greater(t, len(last[0].Lines), 50)
	require.Equal(t, int64(3000), last[0].Lines[len(last[0].Lines)-1].Number)
	require.False(t, last[1].Earlier)
	require.Equal(t, []string{"b 1 my [masked]"}, short(last[1].Lines))
	raw, err := os.ReadFile(filepath.Join(g.state, "last-lines", member+".json"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(raw), 96<<10)
	require.NotContains(t, string(raw), "hunter22")
	g.store.Drop(member)
	last, err = g.store.Last(member)
	require.NoError(t, err)
	require.Empty(t, last)
}
