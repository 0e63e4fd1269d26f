// Package policy holds the verbs on policy overlays: write, preview, and what they leave of a project's choices.
// Other verbs read what they leave through service/kit/overlay.
package policy

import (
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Service holds the verbs.
type Service struct{ DB *tx.DB }

// EffectiveView is what policy leaves of a project's choices.
type EffectiveView struct {
	ProjectID ids.ID
	Hash      string
	Rules     []*policy.Rule
}

// Impact is something that an overlay would newly deny.
type Impact struct {
	ProjectID ids.ID
	ObjectID  *ids.ID
	Name      string
	Reasons   []*fault.Reason
}

// Preview is what writing an overlay would do.
type Preview struct {
	Problems          []*fault.Reason
	NewlyDenied       []*Impact
	NewlyDeniedTotal  int
	NewlyAllowedTotal int
}
