package signature_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/signature"
	"github.com/gpuaas/app-platform/sdk/publish"
	"github.com/gpuaas/app-platform/sdk/signing"
)

// repository asks a real registry, as the platform does.
type repository struct {
	name.Repository
	lists bool // whether the registry lists referrers
}

func gone(err error) error {
	var answer *transport.Error
	if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
		return signature.ErrNotFound
	}
	return err
}

func (r repository) Manifest(ctx context.Context, reference string) ([]byte, string, error) {
	var target name.Reference = r.Tag(reference)
	if strings.HasPrefix(reference, "sha256:") {
		target = r.Digest(reference)
	}
	found, err := remote.Get(target, remote.WithContext(ctx))
	if err != nil {
		return nil, "", gone(err)
	}
	return found.Manifest, string(found.MediaType), nil
}

func (r repository) Blob(ctx context.Context, digest string, limit int64) ([]byte, error) {
	layer, err := remote.Layer(r.Digest(digest), remote.WithContext(ctx))
	if err != nil {
		return nil, gone(err)
	}
	content, err := layer.Compressed()
	if err != nil {
		return nil, gone(err)
	}
	defer func() { _ = content.Close() }()
	return io.ReadAll(io.LimitReader(content, limit+1))
}

func (r repository) Referrers(ctx context.Context, digest string) ([]signature.Descriptor, error) {
	if !r.lists {
		return nil, signature.ErrNotFound
	}
	listed, err := remote.Referrers(r.Digest(digest), remote.WithContext(ctx))
	if err != nil {
		return nil, gone(err)
	}
	index, err := listed.IndexManifest()
	if err != nil {
		return nil, err
	}
	var found []signature.Descriptor
	for _, one := range index.Manifests {
		found = append(found, signature.Descriptor{Digest: one.Digest.String(), MediaType: string(one.MediaType),
			ArtifactType: one.ArtifactType, Size: one.Size, Annotations: one.Annotations})
	}
	return found, nil
}

func TestWhatThePublisherSignsInARegistryIsVerifiedThere(t *testing.T) {
	t.Parallel()
	for name, lists := range map[string]bool{"that lists referrers": true, "that keeps them under a tag": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(registry.New(registry.WithReferrersSupport(lists),
				registry.Logger(log.New(io.Discard, "", 0))))
			t.Cleanup(server.Close)
			host := strings.TrimPrefix(server.URL, "http://")
			pushes := publish.Registry{PlainHTTP: true}
			dir := t.TempDir()
			program := filepath.Join(dir, "program")
			require.NoError(t, os.WriteFile(program, []byte("\x7fELF"), 0o755))
			private, key := newKey(t, signing.ECDSA, "publisher")
			edwards, edwardsKey := newKey(t, signing.Ed25519, "edwards")
			stranger, _ := newKey(t, signing.ECDSA, "stranger")
			both := []signature.Key{key, edwardsKey}
			digest, err := publish.Build(filepath.Join(dir, "out"),
				publish.Image{Files: []publish.File{{From: program}}, Platform: "linux/amd64"})
			require.NoError(t, err)
			pushed, err := pushes.PushLayout(t.Context(), filepath.Join(dir, "out"), host+"/team/app:1")
			require.NoError(t, err)
			require.Equal(t, digest, pushed.Digest)
			in := repository{target(t, host+"/team/app"), lists}
			look := func(keys []signature.Key) lifecycle.SignatureState {
				found, err := signature.Image(t.Context(), in, digest, keys)
				require.NoError(t, err)
				return found.State
			}
			require.Equal(t, missing, look(both))
			for _, classic := range []bool{false, true} {
				_, err = pushes.Sign(t.Context(), pushed.Ref, stranger, classic)
				require.NoError(t, err)
				require.Equal(t, untrusted, look(both))
			}
			_, err = pushes.Sign(t.Context(), pushed.Ref, edwards, false)
			require.NoError(t, err)
			require.Equal(t, verified, look([]signature.Key{edwardsKey}))
			require.Equal(t, untrusted, look([]signature.Key{key}))
			_, err = pushes.Sign(t.Context(), host+"/team/app:1", private, true)
			require.NoError(t, err)
			require.Equal(t, verified, look([]signature.Key{key}))
		})
	}
}

func target(t *testing.T, text string) name.Repository {
	t.Helper()
	parsed, err := name.NewRepository(text, name.Insecure)
	require.NoError(t, err)
	return parsed
}
