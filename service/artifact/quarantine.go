package artifact

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// Filter narrows a list of artifacts.
type Filter struct {
	Search      string
	Stages      []lifecycle.Stage
	Quarantined *bool
}

// Verify looks at an artifact again.
func (s *Service) Verify(ctx context.Context, id ids.ID) (*db.Artifact, error) {
	panic("not implemented")
}

// Quarantine puts an artifact in quarantine.
func (s *Service) Quarantine(ctx context.Context, id ids.ID, reason string) (*db.Artifact, error) {
	panic("not implemented")
}

// Release lets an artifact out of quarantine.
func (s *Service) Release(ctx context.Context, id ids.ID, reason string) (*db.Artifact, error) {
	panic("not implemented")
}

// ByDigest reads the artifact of a digest.
func (s *Service) ByDigest(ctx context.Context, digest string, tenantID *ids.ID) (*db.Artifact, error) {
	panic("not implemented")
}

// PartsOf reads what artifacts are made of.
func (s *Service) PartsOf(ctx context.Context, artifacts []ids.ID) (map[ids.ID][]*db.ArtifactPart, error) {
	panic("not implemented")
}
