package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/fetch"
)

var digest = "sha256:" + strings.Repeat("a", 64)

// serve starts a source, and returns its address and a Reach that allows plain HTTP to it.
func serve(t *testing.T, handler http.HandlerFunc) (host string, reach fetch.Reach) {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	host = server.Listener.Addr().String()
	return host, fetch.Reach{Insecure: []string{host}, Patience: 500 * time.Millisecond}
}

// registry answers the ping of a registry and gives the rest to the handler.
func registry(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			return
		}
		handler(w, r)
	}
}

func open(t *testing.T, reach fetch.Reach, kind lifecycle.SourceKind, ref string, c fetch.Credential) *fetch.Session {
	session, err := reach.Open(t.Context(), kind, "", ref, c)
	require.NoError(t, err)
	t.Cleanup(session.Close)
	return session
}

func read(t *testing.T, session *fetch.Session, offset int64) (string, int64, error) {
	body, size, err := session.Blob(t.Context(), digest, offset)
	if err != nil {
		return "", 0, err
	}
	data, err := io.ReadAll(body)
	require.NoError(t, body.Close())
	return string(data), size, err
}

func TestABlobGoesOnWhereItBrokeOffWhateverTheServerKnowsOfRanges(t *testing.T) {
	t.Parallel()
	const whole = "0123456789"
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		offset  int64
		want    string
		fails   string
	}{
		"from the start": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(whole))
		}, 0, whole, ""},
		"by range": {func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(whole))
		}, 4, "456789", ""},
		"at the end": {func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(whole))
		}, 10, "", ""},
		"beyond the end": {func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(whole))
		}, 11, "", "fewer bytes than were read"},
		"no ranges": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(whole)) }, 4, "456789",
			""},
		"no ranges, too short": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("012")) }, 4, "",
			"fewer bytes than were read"},
		"no open ranges": {func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") != "" {
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				return
			}
			_, _ = w.Write([]byte(whole))
		}, 4, "456789", ""},
		"another range": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 2-9/10")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte(whole[2:]))
		}, 4, "", "another range"},
		"a part for the whole": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-3/10")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte(whole[:4]))
		}, 0, "", "another range"},
	} {
		host, reach := serve(t, test.handler)
		data, size, err := read(t, open(t, reach, lifecycle.SourceHTTPS, "https://"+host+"/file", fetch.Credential{}),
			test.offset)
		if test.fails != "" {
			require.ErrorContains(t, err, test.fails, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, test.want, data, name)
		require.EqualValues(t, len(whole), size, name)
	}
}

func TestNoCredentialGoesWhereTheSourceSendsUsOn(t *testing.T) {
	t.Parallel()
	var shown atomic.Value
	elsewhere, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		shown.Store(r.Header.Get("Authorization"))
		_, _ = w.Write([]byte("there"))
	})
	handler := func(w http.ResponseWriter, r *http.Request) {
		user, secret, ok := r.BasicAuth()
		if !ok || user != "me" || secret != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path != "/v2/" {
			http.Redirect(w, r, "http://"+elsewhere+"/x", http.StatusTemporaryRedirect)
		}
	}
	for _, kind := range []lifecycle.SourceKind{lifecycle.SourceHTTPS, lifecycle.SourceOCI} {
		host, reach := serve(t, handler)
		ref := map[lifecycle.SourceKind]string{lifecycle.SourceHTTPS: "https://" + host + "/file",
			lifecycle.SourceOCI: host + "/x@" + digest}[kind]
		session := open(t, reach, kind, ref, fetch.Credential{User: "me", Secret: "secret"})
		_, _, err := read(t, session, 0)
		refused, ok := fault.As(err)
		require.True(t, ok, "%v", err)
		require.Equal(t, fault.DialRefused, refused.Code)
		require.NotContains(t, err.Error(), "secret")

		reach.Insecure, reach.Also = append(reach.Insecure, elsewhere), []string{elsewhere}
		session = open(t, reach, kind, ref, fetch.Credential{User: "me", Secret: "secret"})
		data, _, err := read(t, session, 0)
		require.NoError(t, err)
		require.Equal(t, "there", data)
		require.Empty(t, shown.Load(), "%s", kind)
	}
}

func TestATokenServerMustBeAllowedLikeAnyOther(t *testing.T) {
	t.Parallel()
	tokens, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, _, _ := r.BasicAuth(); user != "me" || r.URL.Query().Get("scope") != "repository:x:pull" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"token": "a-token"}`))
	})
	host, reach := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer a-token" {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="x"`, tokens))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte("blob"))
	})
	_, err := reach.Open(t.Context(), lifecycle.SourceOCI, "", host+"/x@"+digest,
		fetch.Credential{User: "me", Secret: "secret"})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
	// The library lets token servers at private addresses through only under the registry's own address; a name is
	// judged when it is dialled.
	name := "tokens.test" + tokens[strings.LastIndexByte(tokens, ':'):]
	named, namedReach := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer a-token" {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="x"`, name))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte("blob"))
	})
	_, err = namedReach.Open(t.Context(), lifecycle.SourceOCI, "", named+"/x@"+digest,
		fetch.Credential{User: "me", Secret: "secret"})
	require.True(t, fault.Is(err, fault.DialRefused), "%v", err)
	namedReach.Also, namedReach.Insecure = []string{name}, append(namedReach.Insecure, name)
	namedReach.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == name {
			address = tokens
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	data, _, err := read(t, open(t, namedReach, lifecycle.SourceOCI, named+"/x@"+digest,
		fetch.Credential{User: "me", Secret: "secret"}), 0)
	require.NoError(t, err)
	require.Equal(t, "blob", data)
}

func TestPlainHTTPIsForHostsTheOperatorNames(t *testing.T) {
	t.Parallel()
	host, reach := serve(t, func(http.ResponseWriter, *http.Request) {})
	reach.Insecure = nil
	_, err := reach.Open(t.Context(), lifecycle.SourceHTTPS, "", "http://"+host+"/file", fetch.Credential{})
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
	_, _, err = read(t, open(t, reach, lifecycle.SourceHTTPS, "https://"+host+"/file", fetch.Credential{}), 0)
	require.Error(t, err, "TLS was asked for")
	_, err = reach.Open(t.Context(), lifecycle.SourceOCI, "", host+"/x@"+digest, fetch.Credential{})
	require.Error(t, err, "TLS was asked for, though the host is local")
	require.Equal(t, "the source cannot be reached", fetch.Told(err))
	_, err = reach.Open(t.Context(), lifecycle.SourceOCI, "", "https://"+host+"/x", fetch.Credential{})
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
	_, err = reach.Open(t.Context(), lifecycle.SourceHTTPS, "", host+"/x@"+digest, fetch.Credential{})
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
}

func TestASilentSourceIsGivenUp(t *testing.T) {
	t.Parallel()
	host, reach := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(make([]byte, 1<<20))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	_, _, err := read(t, open(t, reach, lifecycle.SourceHTTPS, "https://"+host+"/silent", fetch.Credential{}), 0)
	require.ErrorContains(t, err, "silent")
}

func TestAnswersThatAreReadIntoMemoryAreBounded(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	flood := func(w http.ResponseWriter, _ *http.Request) {
		for range 64 {
			n, err := w.Write(make([]byte, 1<<20))
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
	host, reach := serve(t, flood)
	_, err := open(t, reach, lifecycle.SourceHTTPS, "https://"+host+"/file", fetch.Credential{}).Beside(t.Context(),
		".sig", 1<<10)
	require.ErrorContains(t, err, "larger than 1024")
	host, reach = serve(t, registry(flood))
	session := open(t, reach, lifecycle.SourceOCI, host+"/x@"+digest, fetch.Credential{})
	_, _, err = session.Manifest(t.Context(), digest)
	require.ErrorContains(t, err, "larger than")
	_, err = session.Referrers(t.Context(), digest)
	require.ErrorContains(t, err, "larger than")
}

func TestReferrersAreReadPageByPageAndNoFurther(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	host, reach := serve(t, registry(func(w http.ResponseWriter, r *http.Request) {
		page := asked.Add(1)
		if r.URL.Query().Get("elsewhere") == "" {
			w.Header().Set("Link", fmt.Sprintf(`</v2/x/referrers/%s?page=%d>; rel="next"`, digest, page))
		}
		_, _ = fmt.Fprintf(w, `{"manifests": [{"digest": "sha256:%064d", "artifactType": "x/y"}]}`, page)
	}))
	found, err := open(t, reach, lifecycle.SourceOCI, host+"/x@"+digest, fetch.Credential{}).
		Referrers(t.Context(), digest)
	require.NoError(t, err)
	require.Len(t, found, 8, "a list without end has one")
	require.EqualValues(t, 8, asked.Load())

	host, reach = serve(t, registry(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", `<http://169.254.169.254/latest>; rel="next"`)
		_, _ = w.Write([]byte(`{"manifests": [{"digest": "` + digest + `"}]}`))
	}))
	found, err = open(t, reach, lifecycle.SourceOCI, host+"/x@"+digest, fetch.Credential{}).
		Referrers(t.Context(), digest)
	require.NoError(t, err)
	require.Len(t, found, 1)
	host, reach = serve(t, registry(http.NotFound))
	session := open(t, reach, lifecycle.SourceOCI, host+"/x:latest", fetch.Credential{})
	_, err = session.Referrers(t.Context(), digest)
	require.ErrorIs(t, err, fetch.ErrNotFound)
	_, err = session.Resolve(t.Context())
	require.ErrorIs(t, err, fetch.ErrNotFound)
}

func TestATagIsResolvedByItsBytesWhereTheRegistryDoesNotSay(t *testing.T) {
	t.Parallel()
	host, reach := serve(t, registry(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/v2/x/manifests/v1", r.URL.Path)
		_, _ = w.Write([]byte("{}"))
	}))
	found, err := open(t, reach, lifecycle.SourceOCI, host+"/x:v1", fetch.Credential{}).Resolve(t.Context())
	require.NoError(t, err)
	require.Equal(t, "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", found)
}

func TestWhatIsToldOfAnErrorNamesNoAddress(t *testing.T) {
	t.Parallel()
	reach := fetch.Reach{Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("10.0.0.7:443 said no")}
	}}
	_, err := reach.Open(t.Context(), lifecycle.SourceOCI, "", "registry.test/x@"+digest, fetch.Credential{})
	require.Error(t, err)
	require.Equal(t, "the source cannot be reached", fetch.Told(err))
}
