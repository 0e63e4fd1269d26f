package volumehttp

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

// passed passes a request to a node that the test plays, and returns the answer.
func passed(t *testing.T, r *http.Request, node func(conn net.Conn)) *httptest.ResponseRecorder {
	t.Helper()
	asked, err := parse(r)
	require.NoError(t, err)
	ours, theirs := net.Pipe()
	defer func() { _, _ = ours.Close(), theirs.Close() }()
	go node(theirs)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	w := httptest.NewRecorder()
	p := &passage{Handler: &Handler{Log: slog.New(slog.DiscardHandler)}, asked: asked, conn: ours, writer: w}
	p.listen(cancel)
	p.pass(r.WithContext(ctx))
	return w
}

const anywhere = volumefiles.Prefix + "vol_00000000000000000000000001/files/"

func TestANodeThatFallsSilentEndsTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		w := passed(t, httptest.NewRequest(http.MethodGet, anywhere, nil), func(conn net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
		})
		require.Equal(t, silence, time.Since(begun))
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		for _, words := range []string{`"UNAVAILABLE"`, `"retryable":true`,
			"neither received nor sent a byte for 2m0s"} {
			require.Contains(t, w.Body.String(), words)
		}
	})
}

func TestANodeThatIsSlowEndsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const page = `{"entries": [], "next": ""}`
		w := passed(t, httptest.NewRequest(http.MethodGet, anywhere, nil), func(conn net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			for _, one := range strings.SplitAfter("HTTP/1.1 200 OK\r\nContent-Length: 27\r\n\r\n"+page, "") {
				<-time.After(silence - time.Second)
				_, _ = io.WriteString(conn, one)
			}
		})
		require.Equal(t, http.StatusOK, w.Code)
		require.JSONEq(t, `{"entries": [], "next": ""}`, w.Body.String())
	})
}

func TestANodeHasTheTimeForWhatItReadsByItself(t *testing.T) {
	t.Parallel()
	for method, wanted := range map[string]struct {
		patience time.Duration
		headers  []string
	}{
		http.MethodGet:    {silence + 64*time.Second, []string{"Range", "bytes=1073741824-"}},
		http.MethodPut:    {silence + 128*time.Second, []string{"Content-Range", "bytes */2147483648"}},
		http.MethodDelete: {deletion, nil},
		http.MethodHead:   {silence, nil},
	} {
		r := httptest.NewRequest(method, anywhere+"x", nil)
		r.Header.Set(volumefiles.ReprDigest, volumefiles.Digest{}.String())
		if method == http.MethodHead {
			r.Header.Del(volumefiles.ReprDigest)
		}
		for i := 0; i < len(wanted.headers); i += 2 {
			r.Header.Set(wanted.headers[i], wanted.headers[i+1])
		}
		asked, err := parse(r)
		require.NoError(t, err, method)
		require.Equal(t, wanted.patience, asked.patience(), method)
	}
}
