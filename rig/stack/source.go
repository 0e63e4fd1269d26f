package stack

import (
	"context"
	"crypto"
	"net"
	"path/filepath"

	"github.com/gpuaas/app-platform/rig/stack/keys"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/publish"
	"github.com/gpuaas/app-platform/sdk/signing"
)

// sourceMost bounds the sources that are looked through.
const sourceMost = 2_000

// SigningKeyFile holds the private key that what is published here is signed with; the platform's source trusts its
// public half.
func (s *Stack) SigningKeyFile() string { return filepath.Join(s.config.Dir, "signing.key") }

// registry is how publishers reach the installation's registry.
func (s *Stack) registry() (publish.Registry, error) {
	access, err := s.RegistryPush().Authorization()
	if err != nil {
		return publish.Registry{}, err
	}
	return publish.Registry{User: access.Username, Password: access.Password, PlainHTTP: true}, nil
}

// signingKey returns the key of SigningKeyFile.
func (s *Stack) signingKey() (crypto.Signer, error) {
	return keys.Kept(s.SigningKeyFile(), signing.ECDSA)
}

// seedSource makes the installation's registry a source of the platform's that takes nothing unsigned: with the name
// that opens it, and the key of this folder.
func (s *Stack) seedSource(ctx context.Context) error {
	source, err := s.source(ctx)
	if err != nil {
		return err
	}
	registry, err := s.registry()
	if err != nil {
		return err
	}
	if registry.User != "" {
		_, err := gql.SetSourceCredential(ctx, s.Operator,
			gql.SetSourceCredentialInput{SourceId: source.Id, User: registry.User, Secret: registry.Password})
		if err != nil {
			return err
		}
	}
	key, err := s.signingKey()
	if err != nil {
		return err
	}
	public, err := signing.Describe(key.Public())
	if err != nil {
		return err
	}
	for i := range source.Keys {
		if source.Keys[i].Fingerprint == public.Fingerprint {
			return nil
		}
	}
	text, err := signing.EncodePublic(key.Public())
	if err != nil {
		return err
	}
	_, err = gql.AddSignerKey(ctx, s.Operator, gql.AddSignerKeyInput{SourceId: source.Id, Name: "this installation's",
		PublicKey: string(text)})
	return err
}

// source returns the platform's source for the registry, and creates it when it does not exist.
func (s *Stack) source(ctx context.Context) (*gql.ArtifactSource, error) {
	for source, err := range client.All[gql.ArtifactSource](sourceMost,
		func(first int, after string) (*gql.ArtifactSourcePage, error) {
			answer, err := gql.ListArtifactSources(ctx, s.Operator, "", first, after)
			if err != nil {
				return nil, err
			}
			return &answer.ArtifactSources, nil
		}) {
		if err != nil {
			return nil, err
		}
		if source.TenantId == nil && source.Location == s.RegistryAddr() && source.DisabledAt == nil {
			return &source, nil
		}
	}
	_, port, err := net.SplitHostPort(s.RegistryAddr())
	if err != nil {
		return nil, err
	}
	made, err := gql.CreateArtifactSource(ctx, s.Operator, gql.CreateArtifactSourceInput{
		Name: "registry-" + port, Kind: gql.SourceKindOci, Location: s.RegistryAddr(),
		SignaturePolicy: gql.SignaturePolicyRequired, IdempotencyKey: client.NewKey(),
	})
	if err != nil {
		return nil, err
	}
	return &made.CreateArtifactSource, nil
}

// sign signs what was pushed with this installation's key.
func (s *Stack) sign(ctx context.Context, ref string) error {
	registry, err := s.registry()
	if err != nil {
		return err
	}
	key, err := s.signingKey()
	if err != nil {
		return err
	}
	_, err = registry.Sign(ctx, ref, key, false)
	return err
}
