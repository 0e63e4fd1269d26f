package fetch_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/fetch"
)

const (
	storeUser   = "AKIDEXAMPLE"
	storeSecret = "a secret key"
	storeRegion = "eu-west-7"
)

// store is a stand-in for an object store: it keeps objects by path and refuses a request whose signature differs from
// the one it computes itself. It was written from the description of the signature, not from the signer here.
type store struct {
	objects map[string]string // by decoded path
}

func (s store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", "object-store-stand-in")
	if !s.signed(r) {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	body, ok := s.objects[r.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusForbidden) // as to those who may not list
		return
	}
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(body))
}

// signed works the signature out from what came over the wire.
func (s store) signed(r *http.Request) bool {
	algorithm, fields, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	said := map[string]string{}
	for _, field := range strings.Split(fields, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		said[key] = value
	}
	scope := strings.Split(said["Credential"], "/")
	stamp, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if algorithm != "AWS4-HMAC-SHA256" || len(scope) != 5 || err != nil || time.Since(stamp).Abs() > 15*time.Minute ||
		scope[0] != storeUser || scope[1] != stamp.Format("20060102") || scope[2] != storeRegion || scope[3] != "s3" ||
		scope[4] != "aws4_request" {
		return false
	}
	path, _, _ := strings.Cut(r.RequestURI, "?")
	request := r.Method + "\n" + path + "\n" + r.URL.RawQuery + "\n"
	covers := map[string]bool{}
	for _, name := range strings.Split(said["SignedHeaders"], ";") {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		covers[name], request = true, request+name+":"+strings.TrimSpace(value)+"\n"
	}
	request += "\n" + said["SignedHeaders"] + "\n" + r.Header.Get("X-Amz-Content-Sha256")
	hash := sha256.Sum256([]byte(request))
	text := strings.Join([]string{algorithm, r.Header.Get("X-Amz-Date"), strings.Join(scope[1:], "/"),
		hex.EncodeToString(hash[:])}, "\n")
	key := []byte("AWS4" + storeSecret)
	for _, part := range append(scope[1:], text) {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	want, err := hex.DecodeString(said["Signature"])
	return err == nil && covers["host"] && covers["x-amz-date"] && hmac.Equal(want, key)
}

func openStore(t *testing.T, region, path string, c fetch.Credential) *fetch.Session {
	server := httptest.NewServer(store{objects: map[string]string{"/models/a b+c/ü~(1).bin": "0123456789",
		"/models/a b+c/ü~(1).bin.sig": "signature"}})
	t.Cleanup(server.Close)
	reach := fetch.Reach{Insecure: []string{server.Listener.Addr().String()}}
	session, err := reach.Open(t.Context(), lifecycle.SourceS3, region,
		(&url.URL{Scheme: "https", Host: server.Listener.Addr().String(), Path: path}).String(), c)
	require.NoError(t, err)
	t.Cleanup(session.Close)
	return session
}

func TestAnObjectStoreIsAskedWithASignature(t *testing.T) {
	t.Parallel()
	session := openStore(t, storeRegion, "/models/a b+c/ü~(1).bin",
		fetch.Credential{User: storeUser, Secret: storeSecret})
	body, size, err := session.Blob(t.Context(), "", 4)
	require.NoError(t, err)
	require.EqualValues(t, 10, size)
	data, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Equal(t, "456789", string(data))
	require.NoError(t, body.Close())
	size, err = session.Size(t.Context(), "", lifecycle.PartBlob)
	require.NoError(t, err)
	require.EqualValues(t, 10, size)
	beside, err := session.Beside(t.Context(), ".sig", 100)
	require.NoError(t, err)
	require.Equal(t, "signature", string(beside))
	_, err = session.Beside(t.Context(), ".sigstore.json", 100)
	require.ErrorIs(t, err, fetch.ErrNotFound)
	_, _, err = session.Manifest(t.Context(), "latest")
	require.ErrorIs(t, err, fetch.ErrNotFound)
}

func TestAnObjectStoreRefusesAWrongSignature(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		region string
		fetch.Credential
	}{
		"no credential":  {storeRegion, fetch.Credential{}},
		"another secret": {storeRegion, fetch.Credential{User: storeUser, Secret: "other"}},
		"another user":   {storeRegion, fetch.Credential{User: "other", Secret: storeSecret}},
		"another region": {"us-east-1", fetch.Credential{User: storeUser, Secret: storeSecret}},
	} {
		_, _, err := openStore(t, test.region, "/models/a b+c/ü~(1).bin", test.Credential).Blob(t.Context(), "", 0)
		require.ErrorContains(t, err, "refuses access", name)
		require.Equal(t, "the source refuses access (403)", fetch.Told(err), name)
	}
}

func FuzzPathsAreSignedAsTheyAreSent(f *testing.F) {
	for _, seed := range []string{"/b/x", "/b/a b", "/b/ü%20", "/b/+=&", "/b/\"'()!*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		address := url.URL{Scheme: "https", Host: "store.test", Path: path}
		if _, err := fetch.Parse(address.String()); err != nil {
			return
		}
		var checked bool
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			checked = store{}.signed(r)
			if !checked {
				t.Errorf("%q is sent as %q and signed otherwise", path, r.RequestURI)
			}
		}))
		defer server.Close()
		address.Host = server.Listener.Addr().String()
		session, err := fetch.Reach{Insecure: []string{address.Host}}.Open(t.Context(), lifecycle.SourceS3, storeRegion,
			address.String(), fetch.Credential{User: storeUser, Secret: storeSecret})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		if body, _, err := session.Blob(t.Context(), "", 0); err == nil {
			_ = body.Close()
		}
	})
}
