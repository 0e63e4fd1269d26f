package logfile_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logfile"
)

// ground is a folder of logs with one process, p.
type ground struct {
	t    *testing.T
	dir  string
	root *os.Root
}

func newGround(t *testing.T) ground {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return ground{t: t, dir: dir, root: root}
}

func (g ground) writer(bound int64) *logfile.Writer {
	g.t.Helper()
	w, err := logfile.Open(g.root, "p", bound)
	require.NoError(g.t, err)
	g.t.Cleanup(w.Close)
	return w
}

func (g ground) reader(after int64) *logfile.Reader {
	g.t.Helper()
	dir, err := g.root.OpenRoot("p")
	require.NoError(g.t, err)
	r := logfile.NewReader(dir, after)
	g.t.Cleanup(r.Close)
	return r
}

func (g ground) files() []string {
	g.t.Helper()
	files, err := filepath.Glob(filepath.Join(g.dir, "p", "*.log"))
	require.NoError(g.t, err)
	return files
}

// all reads what is there, each line as "number stream text", with what goes on marked by +, and each gap as
// "from..to".
func all(t *testing.T, r *logfile.Reader) (lines []string) {
	t.Helper()
	for {
		item, ok, err := r.Next()
		require.NoError(t, err)
		if !ok {
			return lines
		}
		if gap := item.Gap; gap != nil {
			lines = append(lines, fmt.Sprintf("%d..%d %t", gap.From, gap.To, gap.Restarted))
			continue
		}
		e := item.Entry
		mark := map[bool]string{true: "+"}
		lines = append(lines, fmt.Sprintf("%d %s %s%s%s", e.Number, e.Stream, mark[e.Continued], e.Text, mark[e.Part]))
	}
}

func print(t *testing.T, to *logfile.Lines, pieces ...string) {
	t.Helper()
	for _, piece := range pieces {
		n, err := to.Write([]byte(piece))
		require.NoError(t, err)
		require.Equal(t, len(piece), n)
	}
}

func TestLinesAreNumberedAcrossStreamsAndWriters(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	w := g.writer(0)
	out, err := w.Lines(logfile.Stdout), w.Lines(logfile.Stderr)
	r := func() *logfile.Reader { return g.reader(0) }()
	require.Empty(t, all(t, r))
	print(t, out, "on", "e\ntw", "o\n\nthree without an end")
	print(t, err, "bad\xff\x00\n")
	require.Equal(t, []string{"1 stdout one", "2 stdout two", "3 stdout ", "4 stderr bad\xff\x00"}, all(t, r))
	require.Empty(t, all(t, r))
	out.Close()
	err.Close()
	w.Close()
	print(t, g.writer(0).Lines(logfile.Stdout), "again\n")
	require.Equal(t, []string{"5 stdout three without an end", "6 stdout again"}, all(t, r))
	require.Equal(t, []string{"6 stdout again"}, all(t, g.reader(5)))
	require.Empty(t, all(t, g.reader(6)))
}

func TestLongLineIsSeveralMarkedParts(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	out := g.writer(0).Lines(logfile.Stdout)
	x := strings.Repeat("x", logfile.MaxText)
	print(t, out, x+"\n", x+"y\n", x, x, "\n", "end\n")
	require.Equal(t, []string{"1 stdout " + x, "2 stdout " + x + "+", "3 stdout +y", "4 stdout " + x + "+",
		"5 stdout +" + x,
		"6 stdout end"}, all(t, g.reader(0)))
}

func TestRotationKeepsTheBoundAndLeavesAGap(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	out := g.writer(logfile.MinBound).Lines(logfile.Stdout)
	follower := g.reader(0)
	const lines = 20_000
	var followed []string
	for i := range lines {
		print(t, out, fmt.Sprintf("line %d %s\n", i+1, strings.Repeat("x", i%90)))
		if i%500 == 0 {
			followed = append(followed, all(t, follower)...)
		}
	}
	followed = append(followed, all(t, follower)...)
	require.Len(t, followed, lines, "who keeps up misses nothing")
	for i, line := range followed {
		require.True(t, strings.HasPrefix(line, fmt.Sprintf("%d stdout line %d ", i+1, i+1)), line)
	}
	var total int64
	for _, file := range g.files() {
		info, err := os.Stat(file)
		require.NoError(t, err)
		total += info.Size()
	}
	require.LessOrEqual(t, total, int64(logfile.MinBound)+1024)
	late := all(t, g.reader(7))
	var from, to int64
	_, err := fmt.Sscanf(late[0], "%d..%d false", &from, &to)
	require.NoError(t, err, late[0])
	require.Equal(t, int64(8), from)
	require.Equal(t, followed[to:], late[1:], "after the gap nothing is missing")
	require.Greater(t, len(late), 1000)
}

// A reader and a writer that rotates under it, at once: numbers rise, each line is its number, and what is missing is
// in a gap.
func TestReaderUnderRotationMissesNothingInSilence(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	w := g.writer(logfile.MinBound)
	const lines = 30_000
	done := make(chan struct{})
	go func() {
		defer close(done)
		out := w.Lines(logfile.Stdout)
		for i := range lines {
			_, _ = fmt.Fprintf(out, "%d\n", i+1)
		}
	}()
	r := g.reader(0)
	next := int64(1)
	for ended := false; ; {
		item, ok, err := r.Next()
		require.NoError(t, err)
		switch {
		case !ok && ended:
			require.Equal(t, int64(lines+1), next)
			return
		case !ok:
			select {
			case <-done:
				ended = true
			default:
			}
		case item.Gap != nil:
			require.Equal(t, next, item.Gap.From)
			next = item.Gap.To + 1
		default:
			require.Equal(t, next, item.Entry.Number)
			require.Equal(t, fmt.Sprint(next), string(item.Entry.Text))
			next++
		}
	}
}

// A writer that is killed in the middle of a record is cut off there; a reader that was waiting for the rest goes on
// with what is written in its place.
func TestTornRecordIsCutOff(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	print(t, g.writer(0).Lines(logfile.Stdout), "one\n", "two\n")
	r := g.reader(0)
	file, err := os.OpenFile(g.files()[0], os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString("3 1700000000000000000 o. to")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	require.Equal(t, []string{"1 stdout one", "2 stdout two"}, all(t, r))
	print(t, g.writer(0).Lines(logfile.Stdout), "three\n")
	require.Equal(t, []string{"3 stdout three"}, all(t, r))
}

// What was written shortly before the machine restarted may be lost, and a reader may have had it: no number is used
// for a second line.
func TestNumbersGoOnFurtherAfterARestartOfTheMachine(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	print(t, g.writer(0).Lines(logfile.Stdout), "one\n", "two\n", "three\n")
	file := g.files()[0]
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := bytes.SplitAfter(raw, []byte("\n"))
	lost := append([]byte("# another boot\n"), bytes.Join(lines[1:3], nil)...) // and the third was not on the disk
	require.NoError(t, os.WriteFile(file, lost, 0o600))
	print(t, g.writer(0).Lines(logfile.Stdout), "four\n")
	const four = 3 + logfile.Jump
	want := []string{fmt.Sprintf("4..%d true", four-1), fmt.Sprintf("%d stdout four", four)}
	require.Equal(t, want, all(t, g.reader(3)), "of who had the third")
	require.Equal(t, []string{"1 stdout one", "2 stdout two", fmt.Sprintf("3..%d true", four-1), want[1]},
		all(t, g.reader(0)))
}

// The files belong to the member, which may write there what it likes.
func TestHostileFilesAreSkipped(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	w := g.writer(0)
	print(t, w.Lines(logfile.Stdout), "one\n")
	own := g.files()[0]
	file, err := os.OpenFile(own, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString("garbage\n\n9999999999999999999999 1 o. x\n0 1 o. x\n2 1 x. x\n2 1 o? x\n-5 1 o. x\n2 " +
		"-1 o. x\n2 1 o.\n" +
		strings.Repeat("y", 300_000) + "\n1 1 o. a line again\n")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	dir := filepath.Dir(own)
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "0000000000000000500.log"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(g.dir, "secret"), []byte("# x\n600 1 o. secret\n"), 0o600))
	require.NoError(t, os.Symlink("../secret", filepath.Join(dir, "0000000000000000600.log")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "0000000000000000700.log"), 0o700))
	print(t, w.Lines(logfile.Stdout), "two\n")
	require.Equal(t, []string{"1 stdout one", "2 stdout two"}, all(t, g.reader(0)))
	root, err := g.root.OpenRoot("p")
	require.NoError(t, err)
	defer root.Close()
	last, err := logfile.Last(root)
	require.NoError(t, err)
	require.Equal(t, int64(2), last)
}

func TestTailAndBeforeReadFromTheEnd(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	out := g.writer(logfile.MinBound).Lines(logfile.Stdout)
	for i := range 10_000 {
		print(t, out, fmt.Sprintf("line %d\n", i+1))
	}
	dir, err := g.root.OpenRoot("p")
	require.NoError(t, err)
	defer dir.Close()
	tail, err := logfile.Tail(dir, 21)
	require.NoError(t, err)
	require.Equal(t, "ine 9999\nline 10000\n"[0:], strings.TrimPrefix(string(tail), "l"))
	for _, count := range []int{0, 1, 3000} {
		before, err := logfile.Before(dir, count)
		require.NoError(t, err)
		require.Equal(t, int64(10_000-count), before)
	}
	before, err := logfile.Before(dir, 1_000_000)
	require.NoError(t, err)
	require.Greater(t, before, int64(100), "rotation has taken the first")
}

func TestFullDiskUsesNumbers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a small disk needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("small", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skip("no tmpfs can be mounted here: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	g := ground{t: t, dir: dir, root: root}
	out := g.writer(0).Lines(logfile.Stdout)
	print(t, out, "one\n")
	filler := filepath.Join(dir, "filler")
	_ = os.WriteFile(filler, make([]byte, 1<<20), 0o600)
	print(t, out, strings.Repeat("lost\n", 3000))
	require.NoError(t, os.Remove(filler))
	print(t, out, "after\n")
	lines := all(t, g.reader(0))
	require.Equal(t, []string{"1 stdout one", "2..3001 false", "3002 stdout after"}, lines)
}
