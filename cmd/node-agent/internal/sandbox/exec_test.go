package sandbox_test

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// worked is what a command wrote, and its exit code.
type worked struct {
	out, err strings.Builder
	code     int
}

// until reads what comes until a text is among the output.
func until(t *testing.T, running net.Conn, had *worked, text string) {
	t.Helper()
	for !strings.Contains(had.out.String(), text) {
		var next wire.Response
		require.NoError(t, wire.Read(running, &next))
		require.NotNil(t, next.Output, "the command ended with %+v after %q", next.Result, had.out.String())
		had.take(next)
	}
}

func (w *worked) take(next wire.Response) {
	if next.Output != nil && next.Output.Stream == "stderr" {
		w.err.Write(next.Output.Data)
	} else if next.Output != nil {
		w.out.Write(next.Output.Data)
	}
}

// rest reads to the end.
func rest(t *testing.T, running net.Conn, had *worked) {
	t.Helper()
	for {
		var next wire.Response
		require.NoError(t, wire.Read(running, &next))
		had.take(next)
		if next.Result != nil {
			had.code = next.Result.ExitCode
			return
		}
	}
}

func TestSomebodyWorksWithACommand(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		running, err := client.Exec(t.Context(), wire.Exec{
			Command: []string{"sh", "-c", `read line; echo "got $line"; cat; echo oops >&2; exit 7`}})
		require.NoError(t, err)
		defer func() { _ = running.Close() }()
		had := &worked{}
		require.NoError(t, wire.Write(running, wire.ExecInput{Data: []byte("one\n")}))
		until(t, running, had, "got one\n")
		require.NoError(t, wire.Write(running, wire.ExecInput{Data: []byte("two\n")}))
		until(t, running, had, "two\n")
		require.NoError(t, wire.Write(running, wire.ExecInput{End: true}))
		rest(t, running, had)
		require.Equal(t, 7, had.code)
		require.Equal(t, "oops\n", had.err.String())

		_, err = client.Exec(t.Context(), wire.Exec{Command: []string{"/no/such"}})
		require.ErrorContains(t, err, "there is no program")
	})
}

func TestACommandHasATerminal(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		running, err := client.Exec(t.Context(), wire.Exec{Command: []string{"sh"}, TTY: true, Rows: 30, Cols: 100,
			Env: []string{"PS1=> ", "TERM=xterm"}})
		require.NoError(t, err)
		defer func() { _ = running.Close() }()
		had := &worked{}
		enter := func(line string) { require.NoError(t, wire.Write(running, wire.ExecInput{Data: []byte(line)})) }
		enter("tty; stty size\n")
		until(t, running, had, "/dev/pts/")
		until(t, running, had, "30 100")
		require.NoError(t, wire.Write(running, wire.ExecInput{Rows: 50, Cols: 132}))
		enter("stty size\n")
		until(t, running, had, "50 132")
		// what is typed is shown too: what is waited for is nothing that was typed
		enter(`sh -c 'trap "echo stop\$((40+2)); exit" INT; echo ready$((1+1)); while :; do sleep 1; done'` + "\n")
		until(t, running, had, "ready2")
		enter("\x03")
		until(t, running, had, "stop42") // the terminal's own key reaches what runs in it
		enter("echo open > /dev/tty; exit 3\n")
		rest(t, running, had)
		require.Equal(t, 3, had.code)
		require.Contains(t, had.out.String(), "open\r\n")
	})
}

func TestACommandEndsWithWhoeverWorkedWithIt(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, b bundle) {
		client := b.ensure(t)
		running, err := client.Exec(t.Context(),
			wire.Exec{Command: []string{"sh", "-c", "setsid sleep 7811 & echo on; wait"}})
		require.NoError(t, err)
		until(t, running, &worked{}, "on\n")
		look := func(key string) int { return runs(t, client, shell(key, "pgrep -f 'sleep 781[1]'")).ExitCode }
		require.Zero(t, look("tsk_before"))
		require.NoError(t, running.Close())
		n := 0
		eventually(t, func() bool {
			n++
			return look("tsk_after"+strings.Repeat("x", n)) == 1
		}, "it and what it started have ended")
	})
}
