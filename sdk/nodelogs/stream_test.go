package nodelogs_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/nodelogs"
)

// source is a node with one member.
type source struct {
	lines []nodelogs.Line
	end   error
	asked chan nodelogs.Query
	ended chan error
}

func (s source) Processes(string) ([]string, error) { return []string{"a", "b"}, nil }

func (s source) Read(ctx context.Context, query nodelogs.Query, each func(nodelogs.Line) error) error {
	s.asked <- query
	for _, line := range s.lines {
		if err := each(line); err != nil {
			return err
		}
	}
	if query.Follow {
		<-ctx.Done()
		s.ended <- ctx.Err()
		return ctx.Err()
	}
	return s.end
}

func line(number int64, text string) nodelogs.Line {
	return nodelogs.Line{Process: "a", Number: number, Time: time.Unix(1700000000, 5).UTC(), Stream: "stdout",
		Text: text}
}

func newSource(end error, lines ...nodelogs.Line) source {
	return source{lines: lines, end: end, asked: make(chan nodelogs.Query, 1), ended: make(chan error, 1)}
}

// read reads by a stream that serve answers.
func read(t *testing.T, query nodelogs.Query, serve func(net.Conn)) (names []string, lines []nodelogs.Line, err error) {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	require.NoError(t, here.SetDeadline(time.Now().Add(15*time.Second)))
	go func() {
		defer there.Close()
		serve(there)
	}()
	err = nodelogs.Read(here, query, func(found []string) error { names = found; return nil },
		func(line nodelogs.Line) error { lines = append(lines, line); return nil })
	return names, lines, err
}

func TestLinesComeAsTheyAre(t *testing.T) {
	t.Parallel()
	gap := nodelogs.Line{Process: "a", Number: 9, Gap: &nodelogs.Gap{From: 3, To: 9, Restarted: true}}
	want := []nodelogs.Line{line(1, "one"),
		{Process: "a", Number: 2, Time: time.Unix(1, 0).UTC(), Stream: "stderr", Part: true},
		gap, line(10, "ö\ttab")}
	s := newSource(nil, want...)
	query := nodelogs.Query{Member: "mem_a", After: map[string]int64{"a": 7}, Tail: 3, Limit: 9,
		Since: time.Unix(5, 0).UTC()}
	names, lines, err := read(t, query,
		func(stream net.Conn) { _ = nodelogs.Serve(context.Background(), stream, query.Member, s) })
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names)
	require.Equal(t, want, lines)
	require.Equal(t, query, <-s.asked)
}

func TestEndsAreTold(t *testing.T) {
	t.Parallel()
	unknown := &nodelogs.Error{Code: nodelogs.ProcessUnknown, Message: "no such process"}
	for _, c := range []struct {
		end  error
		code nodelogs.Code
	}{
		{fmt.Errorf("wrapped: %w", unknown), nodelogs.ProcessUnknown},
		{errors.New("open /var/lib/secret: no"), nodelogs.Failed},
	} {
		_, _, err := read(t, nodelogs.Query{}, func(stream net.Conn) {
			_ = nodelogs.Serve(context.Background(), stream, "", newSource(c.end))
		})
		var told *nodelogs.Error
		require.ErrorAs(t, err, &told)
		require.Equal(t, c.code, told.Code)
		require.NotContains(t, told.Message, "/var")
	}
}

func TestFollowerThatGoesEndsTheReading(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	defer there.Close()
	s := newSource(nil, line(1, "one"))
	served := make(chan error, 1)
	go func() { served <- nodelogs.Serve(t.Context(), there, "", s) }()
	enough := errors.New("enough")
	err := nodelogs.Read(here, nodelogs.Query{Follow: true}, func([]string) error { return nil },
		func(nodelogs.Line) error { return enough })
	require.ErrorIs(t, err, enough)
	require.NoError(t, here.Close())
	require.ErrorIs(t, <-s.ended, context.Canceled)
	require.ErrorIs(t, <-served, context.Canceled)
}

// A node may be compromised: what is taken from it is bounded, plain, and about the query.
func TestHostileNodeIsNotBelieved(t *testing.T) {
	t.Parallel()
	answer := func(texts ...string) func(net.Conn) {
		return func(stream net.Conn) {
			_, _ = stream.Read(make([]byte, 4096))
			for _, text := range texts {
				_, _ = stream.Write([]byte(text + "\n"))
			}
		}
	}
	const ok = `{"line":{"process":"a","number":1,"time":"2026-01-01T00:00:00Z","stream":"stdout","text":"`
	for name, c := range map[string]func(net.Conn){
		"garbage": answer("<html>"), "nothing": answer(), "no fields": answer("{}"),
		"endless":         answer(strings.Repeat("x", 1<<20)),
		"another process": answer(strings.Replace(ok, `"a"`, `"b"`, 1) + `"}}`),
		"a bad name":      answer(strings.Replace(ok, `"a"`, `"../a"`, 1) + `"}}`),
		"a bad stream":    answer(strings.Replace(ok, `stdout`, `stdin`, 1) + `"}}`),
		"no number":       answer(strings.Replace(ok, `1`, `0`, 1) + `"}}`),
		"a long line":     answer(ok + strings.Repeat("x", nodelogs.MaxText+1) + `"}}`),
		"a bad gap":       answer(`{"line":{"process":"a","number":5,"gap":{"from":6,"to":5}}}`),
		"names again":     answer(`{"processes":[]}`, `{"processes":[]}`),
	} {
		_, lines, err := read(t, nodelogs.Query{Process: "a"}, c)
		require.ErrorIs(t, err, nodelogs.ErrBroken, name)
		require.Empty(t, lines, name)
	}
	names, lines, err := read(t, nodelogs.Query{},
		answer(`{"processes":["a","../b","\u001b"]}`, ok+`\u001b[31mred\u0007"}}`,
			`{"end":{"code":"FAILED","message":"\u001b[2Jgone"}}`))
	require.EqualError(t, err, "gone")
	require.Equal(t, []string{"a"}, names)
	require.Equal(t, "red\ufffd", lines[0].Text)
}

func TestQueryThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		_ = nodelogs.Serve(t.Context(), there, "", newSource(nil))
	}()
	_, err := here.Write([]byte("GET / HTTP/1.1\n"))
	require.NoError(t, err)
	buffer := make([]byte, 1024)
	n, err := here.Read(buffer)
	require.NoError(t, err)
	require.Contains(t, string(buffer[:n]), "QUERY_INVALID")
}
