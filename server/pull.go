package server

import (
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/gpuaas/app-platform/authz/token"
)

// ownPullLife is how long the platform may take to read an artifact itself.
const ownPullLife = time.Minute

// pullKeychain shows registries that take the platform's pull tokens one of its own, for the repository that it reads;
// for all others it is anonymous.
type pullKeychain struct {
	ring  *token.Keyring
	hosts []string
}

// Resolve implements authn.Keychain.
func (k pullKeychain) Resolve(resource authn.Resource) (authn.Authenticator, error) {
	repository, ok := resource.(name.Repository)
	if !ok || !slices.Contains(k.hosts, resource.RegistryStr()) {
		return authn.Anonymous, nil
	}
	now := time.Now()
	text, err := k.ring.SignPull(token.Pull{
		Registry: repository.RegistryStr(), Repository: repository.RepositoryStr(), Subject: "platform",
		ExpiresAt: now.Add(ownPullLife),
	}, now)
	if err != nil {
		return nil, err
	}
	return authn.FromConfig(authn.AuthConfig{RegistryToken: text}), nil
}
