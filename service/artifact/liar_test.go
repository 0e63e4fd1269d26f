package artifact_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// lie is what a registry does of which it should be found out.
type lie struct {
	manifest, blob http.HandlerFunc // nil for the truth
	code           fault.Code
	says           string
}

// cut answers half of the body and ends the connection, though it announced all of it.
func cut(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body[:len(body)/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// chunked answers a body without saying how long it is.
func chunked(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		_, _ = w.Write(body)
	}
}

func exactly(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to+r.URL.Path, http.StatusTemporaryRedirect)
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// silent says nothing, or half of something and nothing more, until the asker gives up.
func silent(of []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if of != nil {
			w.Header().Set("Content-Length", strconv.Itoa(len(of)))
			_, _ = w.Write(of[:len(of)/2])
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
}

func lies(t *testing.T, image v1.Image, elsewhere string) map[string]lie {
	raw, err := image.RawManifest()
	require.NoError(t, err)
	parsed, err := image.Manifest()
	require.NoError(t, err)
	layer := make([]byte, parsed.Layers[0].Size)
	config, err := image.RawConfigFile()
	require.NoError(t, err)
	only := func(digest fmt.Stringer, do http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, digest.String()) {
				do(w, r)
				return
			}
			status(http.StatusTeapot)(w, r)
		}
	}
	first := parsed.Layers[0].Digest
	return map[string]lie{
		"other bytes for a manifest": {exactly(append(bytes.Clone(raw), ' ')), nil, fault.DigestMismatch,
			"other bytes"},
		"a manifest without end":    {exactly(make([]byte, 5<<20)), nil, fault.ArtifactUnavailable, "does not give"},
		"a manifest cut off":        {cut(raw), nil, fault.ArtifactUnavailable, "broke off"},
		"a manifest elsewhere":      {redirect(elsewhere), nil, fault.DialRefused, "does not allow"},
		"a manifest never":          {silent(nil), nil, fault.ArtifactUnavailable, "silent"},
		"a manifest refused":        {status(http.StatusForbidden), nil, fault.ArtifactUnavailable, "refuses access"},
		"a registry that is broken": {status(http.StatusBadGateway), nil, fault.ArtifactUnavailable, "502"},
		"no layer": {nil, only(first, http.NotFound), fault.ArtifactUnavailable,
			"does not have part"},
		"a layer of other bytes":          {nil, only(first, exactly(layer)), fault.DigestMismatch, "other bytes"},
		"a layer of other bytes, chunked": {nil, only(first, chunked(layer)), fault.DigestMismatch, "other bytes"},
		"a layer too short":               {nil, only(first, exactly(layer[1:])), fault.DigestMismatch, "should have"},
		"a layer too short, chunked":      {nil, only(first, chunked(layer[1:])), fault.DigestMismatch, "should have"},
		"a layer too long": {nil, only(first, exactly(append(layer, 0))), fault.DigestMismatch,
			"should have"},
		"a layer too long, chunked": {nil, only(first, chunked(append(layer, 0))), fault.DigestMismatch,
			"more than"},
		"a layer cut off, again and again": {nil, only(first, cut(layer)), fault.ArtifactUnavailable, "broke off"},
		"a layer elsewhere": {nil, only(first, redirect(elsewhere)), fault.DialRefused,
			"does not allow"},
		"a layer that stops": {nil, only(first, silent(layer)), fault.ArtifactUnavailable, "silent"},
		"another config": {nil, only(parsed.Config.Digest, exactly(bytes.ToUpper(config))),
			fault.DigestMismatch, "other bytes"},
	}
}

func TestALyingRegistryIsFoundOutAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.verbs.Reach.Patience = 300 * time.Millisecond
	ref, image := b.push()
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(elsewhere.Close)
	for name, test := range lies(t, image, elsewhere.URL) {
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tell := test.manifest
			if strings.Contains(r.URL.Path, "/blobs/") {
				tell = test.blob
			}
			if tell == nil {
				b.honest.ServeHTTP(w, r)
				return
			}
			told := httptest.NewRecorder()
			tell(&probe{w, told}, r)
			if told.Code == http.StatusTeapot {
				b.honest.ServeHTTP(w, r)
			}
		})
		b.lie.Store(&handler)
		err := b.publish(ref, "k")
		require.ErrorContains(t, err, test.says, name)
		platformtest.Refused(t, err, test.code, "input.ref")
		for _, reason := range fault.From(err).Reasons {
			require.NotContains(t, reason.Message, elsewhere.URL, name)
		}
		b.nothing()
	}
	b.lie.Store(nil)
	require.NoError(t, b.publish(ref, "k"))
}

// probe passes on all but a teapot's status, which means that the honest registry answers.
type probe struct {
	http.ResponseWriter
	told *httptest.ResponseRecorder
}

func (p *probe) WriteHeader(code int) {
	if code == http.StatusTeapot {
		p.told.Code = code
		return
	}
	p.ResponseWriter.WriteHeader(code)
}

func (p *probe) Flush() { p.ResponseWriter.(http.Flusher).Flush() }

func TestATransferThatBreaksOffGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	broken := make(chan struct{}, 1)
	once := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/blobs/") && r.Method == http.MethodGet {
			select {
			case broken <- struct{}{}:
				whole := httptest.NewRecorder()
				b.honest.ServeHTTP(whole, r)
				cut(whole.Body.Bytes())(w, r)
			default:
			}
		}
		b.honest.ServeHTTP(w, r)
	})
	b.lie.Store(&once)
	require.NoError(t, b.publish(ref, "k"))
	require.Len(t, broken, 1)
}

func TestManifestsThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	part := descriptor("x/y", []byte("x"))
	with := func(key string, value any) object {
		out := object{}
		for k, v := range part {
			out[k] = v
		}
		out[key] = value
		return out
	}
	many := make([]object, 2_049)
	for i := range many {
		many[i] = part
	}
	for name, document := range map[string]any{
		"no manifest":         "x",
		"nothing in it":       object{"schemaVersion": 2},
		"an empty index":      object{"manifests": []object{}},
		"both":                object{"manifests": []object{part}, "layers": []object{part}},
		"another hash":        object{"layers": []object{with("digest", "sha512:00")}},
		"a path for a digest": object{"layers": []object{with("digest", "sha256:../../../x")}},
		"a negative size":     object{"layers": []object{with("size", -1)}},
		"too large a size":    object{"layers": []object{with("size", int64(1)<<45)}},
		"a NUL in a title": object{"layers": []object{with("annotations",
			object{"org.opencontainers.image.title": "a\x00b"})}},
		"two sizes":      object{"layers": []object{part, with("size", 2)}},
		"too many":       object{"layers": many},
		"a foreign word": object{"artifactType": "x y", "layers": []object{part}},
	} {
		data, err := json.Marshal(document)
		require.NoError(t, err)
		tell := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/manifests/") {
				exactly(data)(w, r)
				return
			}
			b.honest.ServeHTTP(w, r)
		})
		b.put(mediaType, "", encode(t, object{"layers": []object{part}}), []byte("x"))
		b.lie.Store(&tell)
		platformtest.Refused(t, b.publish(b.at("sha256:"+sumHex(data)), "k"), fault.ArtifactUnavailable, "input.ref")
		require.NotEmpty(t, name)
		b.nothing()
	}
}
