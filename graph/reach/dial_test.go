package reach

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/sdk/tunnel/tunneltest"
)

// cut is a tunnel to a member whose answer to anything begins, and ends as soon as the caller's side has ended.
type cut struct {
	*tunnel.Session
	ended chan struct{} // the member has ended its answer
}

func newCut(t *testing.T, begin, end string) *cut {
	t.Helper()
	platform, agent := tunneltest.Pair(t)
	c := &cut{Session: platform, ended: make(chan struct{}, 1)}
	served := make(chan error, 1)
	go func() {
		served <- agent.Serve(context.Background(), func(_ context.Context, open tunnel.Open, s *tunnel.Stream) error {
			if err := s.Granted(); err != nil || open.Kind != tunnel.KindPort {
				return err
			}
			reader := bufio.NewReader(s)
			if _, err := http.ReadRequest(reader); err != nil {
				return err
			}
			if _, err := io.WriteString(s, begin); err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, reader)
			_, err := io.WriteString(s, end)
			_ = s.Close()
			c.ended <- struct{}{}
			return err
		})
	}()
	t.Cleanup(func() {
		_ = platform.Close()
		<-served
	})
	return c
}

// arrived waits until all that the member has sent has come here: a stream that is granted later comes after it.
func (c *cut) arrived(t *testing.T) {
	t.Helper()
	<-c.ended
	stream, err := c.Open(t.Context(), tunnel.Open{Kind: tunnel.KindNode})
	require.NoError(t, err)
	require.NoError(t, stream.Close())
}

// An app that notices that its caller has left ends its answer as usual; it does so too when the caller's right ends.
// If that end were read, half an answer would look whole.
func TestAnAnswerThatIsCutNeverLooksWhole(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string][2]string{
		"in chunks":               {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n", "0\r\n\r\n"},
		"until the end":           {"HTTP/1.0 200 OK\r\n\r\nbegun", ""},
		"until the end, and more": {"HTTP/1.0 200 OK\r\n\r\nbegun", "more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			member := newCut(t, answer[0], answer[1])
			left := make(chan struct{}, 1)
			web := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				stream, err := member.Open(ctx, tunnel.Open{Kind: tunnel.KindPort})
				return &counted{Conn: stream, leave: func() { left <- struct{}{} }}, err
			}}
			ctx, lose := context.WithCancel(t.Context())
			defer lose()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://member/", nil)
			require.NoError(t, err)
			response, err := web.RoundTrip(request)
			require.NoError(t, err)
			defer func() { _ = response.Body.Close() }()
			begun := make([]byte, 5)
			_, err = io.ReadFull(response.Body, begun)
			require.NoError(t, err)
			require.Equal(t, "begun", string(begun))
			lose()
			<-left
			member.arrived(t)
			rest, err := io.ReadAll(response.Body)
			require.Error(t, err, "the answer looks whole")
			require.Empty(t, rest)
		})
	}
}
