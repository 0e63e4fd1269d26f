package streams_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/streams"
	"github.com/gpuaas/app-platform/sdk/nodelogs"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/sdk/tunnel/tunneltest"
)

// printed is a member that has printed one line, and prints no more.
type printed struct{ gone chan struct{} }

func (printed) Processes(string) ([]string, error) { return []string{"app"}, nil }

func (p printed) Read(ctx context.Context, query nodelogs.Query, each func(nodelogs.Line) error) error {
	line := nodelogs.Line{Process: "app", Number: 1, Time: time.Unix(1, 0).UTC(), Stream: "stdout", Text: query.Member}
	if err := each(line); err != nil || !query.Follow {
		return err
	}
	<-ctx.Done()
	close(p.gone)
	return ctx.Err()
}

// Logs are served as a stream of a tunnel, about the member that the stream was opened for alone; a follower that
// closes its stream ends the reading.
func TestLogsAreAStreamOfTheTunnel(t *testing.T) {
	t.Parallel()
	platform, agent := tunneltest.Pair(t)
	source := printed{gone: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- agent.Serve(ctx, (&streams.Server{Logs: source}).Serve) }()
	t.Cleanup(func() {
		stop()
		<-served
		_ = platform.Close()
	})
	read := func(member string, follow bool) (texts []string, err error) {
		stream, err := platform.Open(t.Context(), tunnel.Open{Kind: nodelogs.Kind, MemberID: "mem_a"})
		require.NoError(t, err)
		defer stream.Close()
		done := context.Canceled
		err = nodelogs.Read(stream, nodelogs.Query{Member: member, Follow: follow}, func([]string) error { return nil },
			func(line nodelogs.Line) error {
				texts = append(texts, line.Text)
				if follow {
					return done
				}
				return nil
			})
		return texts, err
	}
	texts, err := read("mem_a", false)
	require.NoError(t, err)
	require.Equal(t, []string{"mem_a"}, texts)
	texts, err = read("mem_b", false)
	require.ErrorContains(t, err, "about this member")
	require.Empty(t, texts)
	_, err = read("mem_a", true)
	require.ErrorIs(t, err, context.Canceled)
	select {
	case <-source.gone:
	case <-time.After(15 * time.Second):
		require.FailNow(t, "the reading goes on though nobody reads")
	}
}
