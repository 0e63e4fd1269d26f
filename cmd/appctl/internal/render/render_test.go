package render_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
)

func TestTableAlignsAndSaysWhenEmpty(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	render.NewPage(&out).Table([]string{"NAME", "STATE"}, [][]string{{"one", "RUNNING"}, {"a-longer-name", ""}})
	require.Equal(t, "NAME           STATE\none            RUNNING\na-longer-name  -\n", out.String())
	out.Reset()
	render.NewPage(&out).Table([]string{"NAME"}, nil)
	require.Equal(t, "none\n", out.String())
}

func TestControlCharactersNeverReachTheTerminal(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a b[31mred c", render.Clean("a\tb\x1b[31mred\x00\nc\u202e"))
}

func TestProgressOnATerminalRedrawsOneLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := render.NewProgress(&out, true)
	p.Show("RUNNING", 50, "dispatch", "waiting")
	p.Show("RUNNING", 50, "dispatch", "waiting")
	p.Show("SUCCEEDED", 100, "done", "")
	p.Done()
	require.Equal(t, "\r\x1b[2K[############------------]  50%  RUNNING  dispatch  waiting"+
		"\r\x1b[2K[########################] 100%  SUCCEEDED  done\n", out.String())
}

func TestProgressElsewhereIsALineForEachChange(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := render.NewProgress(&out, false)
	p.Show("PENDING", 0, "", "")
	p.Show("RUNNING", 50, "dispatch", strings.Repeat("x", 300))
	p.Done()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Equal(t, "PENDING        0%", lines[0])
	require.Len(t, []rune(lines[1]), 100)
}

func TestTimeIsUTCToTheSecond(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 5000, time.FixedZone("x", 3600))
	require.Equal(t, "2026-11-20T11:00:00Z", render.Time(&at))
	require.Empty(t, render.Time(nil))
}
