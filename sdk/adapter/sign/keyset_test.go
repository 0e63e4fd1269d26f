package sign

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

func TestKeySetFollowsARotationAndBoundsItsFetches(t *testing.T) {
	t.Parallel()
	one, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	two, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	var fetches atomic.Int32
	var answer atomic.Value
	answer.Store(keySetJSON(t, "k1", one))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetches.Add(1)
		_, _ = io.WriteString(w, answer.Load().(string))
	}))
	t.Cleanup(server.Close)
	now := time.Now()
	keys := NewKeySet(server.URL, nil)
	keys.now = func() time.Time { return now }
	ctx := context.Background()

	got, err := keys.Key(ctx, "k1")
	require.NoError(t, err)
	require.Equal(t, one, got)
	for range 20 {
		_, err = keys.Key(ctx, "invented")
		require.Error(t, err)
	}
	require.EqualValues(t, 1, fetches.Load(), "invented key ids must not cause fetches without pause")

	answer.Store(keySetJSON(t, "k2", two))
	now = now.Add(keySetPause)
	got, err = keys.Key(ctx, "k2")
	require.NoError(t, err)
	require.Equal(t, two, got)
	_, err = keys.Key(ctx, "k1")
	require.Error(t, err, "a key that was withdrawn must be gone")

	answer.Store("nonsense")
	now = now.Add(keySetLife)
	_, err = keys.Key(ctx, "k2")
	require.NoError(t, err, "while the platform cannot be read the keys serve on")
	now = now.Add(keySetStale)
	_, err = keys.Key(ctx, "k2")
	require.ErrorContains(t, err, "not available")
	answer.Store(strings.Repeat("x", maxKeySet+1))
	now = now.Add(keySetPause)
	_, err = keys.Key(ctx, "k2")
	require.ErrorContains(t, err, "bytes")
}

func keySetJSON(t *testing.T, kid string, key ed25519.PublicKey) string {
	t.Helper()
	raw, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key, KeyID: kid, Algorithm: "EdDSA"}}})
	require.NoError(t, err)
	return string(raw)
}
