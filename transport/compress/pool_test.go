package compress_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport/compress"
)

// decode reads a body by its coding, with the decoders of other hands where there are any.
func decode(t testing.TB, coding compress.Encoding, body []byte) []byte {
	t.Helper()
	var from io.Reader = bytes.NewReader(body)
	switch coding {
	case compress.Gzip:
		unzip, err := gzip.NewReader(from)
		require.NoError(t, err)
		from = unzip
	case compress.Brotli:
		from = brotli.NewReader(from)
	}
	out, err := io.ReadAll(from)
	require.NoError(t, err)
	return out
}

// ask answers a request that accepts such codings, with a body.
func ask(p *compress.Pool, accept string, body []byte) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(http.MethodPost, "/", nil), httptest.NewRecorder()
	if accept != "" {
		r.Header.Set("Accept-Encoding", accept)
	}
	p.Answer(w, r, http.StatusOK, body)
	return w
}

// listing is JSON of so many rows.
func listing(rows int) []byte {
	var out bytes.Buffer
	for i := range rows {
		out.WriteString(`{"id":"ins_` + strconv.FormatUint(uint64(i)*0x9e3779b97f4a7c15, 36) + `","status":"RUNNING"},`)
	}
	return out.Bytes()
}

func TestAnAnswerDecodesToTheSameBytes(t *testing.T) {
	t.Parallel()
	p := compress.NewPool(1)
	for _, rows := range []int{25, 50, 1000, 40, 30_000, 25} { // one encoder for all, also after a large one
		body := listing(rows)
		for _, coding := range []compress.Encoding{compress.Identity, compress.Gzip, compress.Brotli} {
			w := ask(p, string(coding), body)
			require.Equal(t, string(coding), w.Header().Get("Content-Encoding"))
			require.Equal(t, []string{"Accept-Encoding"}, w.Header()["Vary"])
			require.Equal(t, strconv.Itoa(w.Body.Len()), w.Header().Get("Content-Length"))
			require.Equal(t, body, decode(t, coding, w.Body.Bytes()))
			require.Equal(t, coding != compress.Identity, w.Body.Len() < len(body))
		}
	}
}

func TestWhatDoesNotPayGoesOutPlain(t *testing.T) {
	t.Parallel()
	p := compress.NewPool(1)
	short := bytes.Repeat([]byte("x"), compress.MinBytes-1)
	w := ask(p, "gzip", short)
	require.Empty(t, w.Header().Get("Content-Encoding"))
	require.Empty(t, w.Header()["Vary"], "no request changes it")
	require.Equal(t, short, w.Body.Bytes())
	require.Equal(t, "gzip", ask(p, "gzip", append(short, 'x')).Header().Get("Content-Encoding"))

	random := make([]byte, 4096)
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(random)
	for _, coding := range []string{"gzip", "br"} {
		w = ask(p, coding, random)
		require.Empty(t, w.Header().Get("Content-Encoding"), "it would be longer")
		require.Equal(t, random, w.Body.Bytes())
	}
}

func TestAHeaderOfOneAnswerIsNotAnothers(t *testing.T) {
	t.Parallel()
	p, body := compress.NewPool(1), listing(50)
	ask(p, "", body).Header().Add("Vary", "Origin")
	require.Equal(t, []string{"Accept-Encoding"}, ask(p, "", body).Header()["Vary"])
}

// stuck is a client that does not read: its answer's bytes are not taken until it goes.
type stuck struct {
	http.ResponseWriter
	writing, gone chan struct{}
}

func (s *stuck) Write([]byte) (int, error) {
	close(s.writing)
	<-s.gone
	return 0, io.ErrClosedPipe
}

func TestAClientThatDoesNotReadHoldsNoEncoder(t *testing.T) {
	t.Parallel()
	p, body := compress.NewPool(1), listing(50)
	w := &stuck{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	var answering sync.WaitGroup
	answering.Go(func() { p.Answer(w, r, http.StatusOK, body) })
	<-w.writing
	require.Equal(t, "gzip", ask(p, "gzip", body).Header().Get("Content-Encoding"), "the pool's only encoder is free")
	close(w.gone)
	answering.Wait()
	require.Equal(t, "gzip", ask(p, "gzip", body).Header().Get("Content-Encoding"))
}

func TestManyAtOnceGetWhatIsTheirs(t *testing.T) {
	t.Parallel()
	p := compress.NewPool(2)
	var clients sync.WaitGroup
	for i := range 16 {
		coding := []compress.Encoding{compress.Gzip, compress.Brotli}[i%2]
		body := []byte(strings.Repeat("client "+strconv.Itoa(i)+" ", 200+i))
		clients.Go(func() {
			for range 50 {
				w := ask(p, string(coding), body)
				if !bytes.Equal(body, decode(t, compress.Encoding(w.Header().Get("Content-Encoding")),
					w.Body.Bytes())) {
					t.Errorf("client %d got another's", i)
				}
			}
		})
	}
	clients.Wait()
	require.Equal(t, "br", ask(p, "br", listing(50)).Header().Get("Content-Encoding"), "every encoder came back")
}

func TestABusyPoolMakesNobodyWait(t *testing.T) {
	t.Parallel()
	body := listing(50)
	w := ask(compress.NewPool(0), "br", body)
	require.Empty(t, w.Header().Get("Content-Encoding"))
	require.Equal(t, body, w.Body.Bytes())
}

func FuzzDecodesToTheSameBytes(f *testing.F) {
	p := compress.NewPool(1)
	f.Add([]byte("a"), uint16(2000))
	f.Fuzz(func(t *testing.T, unit []byte, times uint16) {
		body := bytes.Repeat(unit, int(times)%4096)
		for _, coding := range []compress.Encoding{compress.Gzip, compress.Brotli} {
			if short, ok := p.Encode(coding, body); ok {
				require.Equal(t, body, decode(t, coding, short))
			}
		}
	})
}
