package sign

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
)

const (
	// keySetLife is how long fetched keys are used before they are fetched again.
	keySetLife = 10 * time.Minute
	// keySetStale is how long fetched keys serve on while the platform cannot be reached.
	keySetStale = time.Hour
	// keySetPause is the shortest time between two fetches, so that tokens with invented key
	// ids cannot make the adapter hammer the platform.
	keySetPause = 5 * time.Second
	// keySetTimeout bounds one fetch.
	keySetTimeout = 5 * time.Second
	// maxKeySet is the largest key set read, in bytes.
	maxKeySet = 64 << 10
	// maxKeys is the most keys used of one set.
	maxKeys = 32
)

// KeySet is the platform's published key set, fetched when first needed, cached, and fetched
// again when a token names a key that is not in it: that is how a rotation is noticed.
type KeySet struct {
	url    string
	client *http.Client
	now    func() time.Time

	mu      sync.Mutex
	keys    map[string]ed25519.PublicKey
	fetched time.Time
	tried   time.Time
	failure error
}

// NewKeySet returns the key set at url, usually the platform's URL and /.well-known/jwks.json.
// Nothing is fetched yet. A nil client means one of its own that follows no redirects.
func NewKeySet(url string, client *http.Client) *KeySet {
	if client == nil {
		client = &http.Client{Timeout: keySetTimeout, CheckRedirect: noRedirect}
	}
	return &KeySet{url: url, client: client, now: time.Now}
}

// Key returns the key published under kid. It may fetch the set, at most once in five seconds.
func (s *KeySet) Key(ctx context.Context, kid string) (ed25519.PublicKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	key, known := s.keys[kid]
	if known && now.Sub(s.fetched) < keySetLife {
		return key, nil
	}
	if s.tried.IsZero() || now.Sub(s.tried) >= keySetPause {
		s.tried = now
		s.failure = s.fetch(ctx, now)
	}
	if now.Sub(s.fetched) >= keySetStale {
		return nil, errors.Join(errors.New("key set is not available"), s.failure)
	}
	if key, known = s.keys[kid]; !known {
		return nil, fmt.Errorf("key id %q is not published", wire.Clip(kid, 64))
	}
	return key, nil
}

// fetch replaces the keys. The mutex is held: one fetch at a time, and the others need its result.
func (s *KeySet) fetch(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keySetTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return fmt.Errorf("fetch key set: %w", err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return fmt.Errorf("fetch key set: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxKeySet+1))
	if err != nil {
		return fmt.Errorf("fetch key set: %w", err)
	}
	if resp.StatusCode != http.StatusOK || len(body) > maxKeySet {
		return fmt.Errorf("fetch key set: status %d, %d bytes", resp.StatusCode, len(body))
	}
	keys, err := parseKeySet(body)
	if err != nil {
		return fmt.Errorf("fetch key set: %w", err)
	}
	s.keys, s.fetched = keys, now
	return nil
}

// parseKeySet keeps the Ed25519 public keys that have an id. Keys of other kinds are for others.
func parseKeySet(body []byte) (map[string]ed25519.PublicKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("not a key set: %w", err)
	}
	keys := make(map[string]ed25519.PublicKey)
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if len(keys) == maxKeys || key.UnmarshalJSON(raw) != nil {
			continue
		}
		if public, ok := key.Key.(ed25519.PublicKey); ok && key.KeyID != "" {
			keys[key.KeyID] = public
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("key set holds no Ed25519 public key with an id")
	}
	return keys, nil
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
