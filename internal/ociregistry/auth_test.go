package ociregistry_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/ociregistry"
)

const issuer = "https://platform.test"

// guarded is a registry behind its guard, with the key that the platform of the test signs with.
type guarded struct {
	t    *testing.T
	host string
	key  ed25519.PrivateKey
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	handler, err := ociregistry.New(t.TempDir())
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(nil)
	host := server.Listener.Addr().String()
	server.Config.Handler = ociregistry.Auth{Hosts: []string{host}, Issuer: issuer, User: "push", Password: "right",
		Key: func(_ context.Context, kid string) (ed25519.PublicKey, error) {
			if kid != "k1" {
				return nil, errors.New("unknown")
			}
			return public, nil
		}}.Protect(handler)
	server.Start()
	t.Cleanup(server.Close)
	return &guarded{t: t, host: host, key: private}
}

// token signs what the platform would, changed as the test wants.
func (g *guarded) token(repository string, change func(*jwt.Claims, *jose.SigningKey)) string {
	g.t.Helper()
	claims := jwt.Claims{Issuer: issuer, Audience: jwt.Audience{g.host},
		NotBefore: jwt.NewNumericDate(time.Now().Add(-time.Minute)),
		Expiry:    jwt.NewNumericDate(time.Now().Add(time.Minute))}
	with := jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: g.key, KeyID: "k1"}}
	if change != nil {
		change(&claims, &with)
	}
	signer, err := jose.NewSigner(with, nil)
	require.NoError(g.t, err)
	text, err := jwt.Signed(signer).Claims(claims).Claims(map[string]any{"access": []any{
		map[string]any{"type": "repository", "name": repository, "actions": []string{"pull"}}}}).Serialize()
	require.NoError(g.t, err)
	return text
}

func bearer(text string) remote.Option {
	return remote.WithAuth(authn.FromConfig(authn.AuthConfig{RegistryToken: text}))
}

func TestAPullNeedsATokenForItsRepositoryAndAPushThePassword(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	image, err := random.Image(512, 2)
	require.NoError(t, err)
	digest, err := image.Digest()
	require.NoError(t, err)
	push := remote.WithAuth(&authn.Basic{Username: "push", Password: "right"})
	require.NoError(t, remote.Write(reference(t, g.host, "apps/one:v1"), image, push))
	pinned := reference(t, g.host, "apps/one@"+digest.String())
	got, err := remote.Image(pinned, bearer(g.token("apps/one", nil)))
	require.NoError(t, err)
	layers, err := got.Layers()
	require.NoError(t, err)
	for _, layer := range layers {
		content, err := layer.Compressed()
		require.NoError(t, err)
		require.NoError(t, content.Close())
	}
	require.Error(t, remote.Write(reference(t, g.host, "apps/two:v1"), image), "anonymous")
	require.Error(t, remote.Write(reference(t, g.host, "apps/one:v2"), image, bearer(g.token("apps/one", nil))),
		"a token pulls and no more")
	require.Error(t, remote.Write(reference(t, g.host, "apps/two:v1"), image,
		remote.WithAuth(&authn.Basic{Username: "push", Password: "wrong"})))
	for why, option := range map[string]remote.Option{
		"anonymous":          remote.WithAuth(authn.Anonymous),
		"another repository": bearer(g.token("apps/on", nil)),
		"garbage":            bearer("garbage"),
		"endless garbage":    bearer(strings.Repeat("x", 9<<10)),
		"expired": bearer(g.token("apps/one", func(c *jwt.Claims, _ *jose.SigningKey) {
			c.Expiry = jwt.NewNumericDate(time.Now().Add(-time.Second))
		})),
		"endless": bearer(g.token("apps/one", func(c *jwt.Claims, _ *jose.SigningKey) { c.Expiry = nil })),
		"another registry": bearer(g.token("apps/one", func(c *jwt.Claims, _ *jose.SigningKey) {
			c.Audience = jwt.Audience{"other.test"}
		})),
		"another platform": bearer(g.token("apps/one", func(c *jwt.Claims, _ *jose.SigningKey) {
			c.Issuer = "https://other.test"
		})),
		"another key": bearer(g.token("apps/one", func(_ *jwt.Claims, k *jose.SigningKey) {
			_, other, _ := ed25519.GenerateKey(nil)
			k.Key = jose.JSONWebKey{Key: other, KeyID: "k1"}
		})),
		"unpublished key": bearer(g.token("apps/one", func(_ *jwt.Claims, k *jose.SigningKey) {
			k.Key = jose.JSONWebKey{Key: g.key, KeyID: "k2"}
		})),
		"downgraded": bearer(g.token("apps/one", func(_ *jwt.Claims, k *jose.SigningKey) {
			k.Algorithm, k.Key = jose.HS256, jose.JSONWebKey{Key: []byte(g.key.Public().(ed25519.PublicKey)),
				KeyID: "k1"}
		})),
	} {
		_, err := remote.Image(pinned, option)
		require.Error(t, err, why)
	}
	_, err = remote.Image(reference(t, g.host, "apps/one:v1"), bearer(g.token("apps/one", nil)))
	require.Error(t, err, "a tag is not what was pinned")
}

func TestARefusalSaysHowToComeIn(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.host+"/v2/", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	require.NotEmpty(t, answer.Header.Get("WWW-Authenticate"))
}
