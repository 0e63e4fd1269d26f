package source

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/page"
)

// CreateInput is what a new source is made from.
type CreateInput struct {
	TenantID        *ids.ID // nil for the platform's
	Name            string
	Kind            lifecycle.SourceKind
	Location        string
	Region          string
	SignaturePolicy lifecycle.SignaturePolicy
	IdempotencyKey  string
}

// UpdateInput is what changes of a source; nil stays.
type UpdateInput struct {
	SourceID        ids.ID
	Name            *string
	SignaturePolicy *lifecycle.SignaturePolicy
	Disabled        *bool
	Reason          string
}

// CredentialInput is a source's credential; both empty takes it away.
type CredentialInput struct {
	SourceID     ids.ID
	User, Secret string
	Reason       string
}

// KeyInput is a public key to be trusted.
type KeyInput struct {
	SourceID   ids.ID
	Name       string
	PublicKey  string
	ValidFrom  *time.Time
	ValidUntil *time.Time
	Reason     string
}

// Create adds a source.
func (s *Service) Create(ctx context.Context, in CreateInput) (*db.ArtifactSource, error) {
	panic("not implemented")
}

// Update changes a source.
func (s *Service) Update(ctx context.Context, in UpdateInput) (*db.ArtifactSource, error) {
	panic("not implemented")
}

// SetCredential sets or takes away a credential.
func (s *Service) SetCredential(ctx context.Context, in CredentialInput) (*db.ArtifactSource, error) {
	panic("not implemented")
}

// AddKey trusts a key.
func (s *Service) AddKey(ctx context.Context, in KeyInput) (*db.SignerKey, error) {
	panic("not implemented")
}

// RevokeKey trusts a key no longer.
func (s *Service) RevokeKey(ctx context.Context, id ids.ID, reason string) (*db.SignerKey, error) {
	panic("not implemented")
}

// List lists sources.
func (s *Service) List(ctx context.Context, tenantID *ids.ID, args page.Args) (*page.Page[*db.ArtifactSource], error) {
	panic("not implemented")
}

// Get reads a source.
func (s *Service) Get(ctx context.Context, id ids.ID) (*db.ArtifactSource, error) {
	panic("not implemented")
}

// Many reads sources.
func (s *Service) Many(ctx context.Context, wanted []ids.ID) (map[ids.ID]*db.ArtifactSource, error) {
	panic("not implemented")
}

// KeysOf reads the keys of sources.
func (s *Service) KeysOf(ctx context.Context, sources []ids.ID) (map[ids.ID][]*db.SignerKey, error) {
	panic("not implemented")
}

// Keys reads keys.
func (s *Service) Keys(ctx context.Context, wanted []ids.ID) (map[ids.ID]*db.SignerKey, error) {
	panic("not implemented")
}
