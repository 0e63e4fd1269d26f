package instance

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Bounds of what is shown of an instance.
const (
	maxGenerations = 50
	maxDrift       = 256
)

// Generations returns what instances run and have run, newest first, at most 50 each. The caller has authorised the
// instances.
func (s *Service) Generations(ctx context.Context, instances []ids.ID) (map[ids.ID][]*db.Generation, error) {
	var found []*db.Generation
	_, err := s.DB.Read(ctx, tx.Rows(&found, rows.Generation, `SELECT `+rows.GenerationColumns+`
		FROM unnest($1::text[]) AS wanted (id) CROSS JOIN LATERAL (SELECT * FROM instance_generation
			WHERE instance_id = wanted.id ORDER BY number DESC LIMIT $2) instance_generation
		ORDER BY instance_generation.instance_id, instance_generation.number DESC`, instances, maxGenerations))
	if err != nil {
		return nil, err
	}
	byInstance := make(map[ids.ID][]*db.Generation, len(instances))
	for _, one := range found {
		byInstance[one.InstanceID] = append(byInstance[one.InstanceID], one)
	}
	return byInstance, nil
}

// Drift is a difference between the desired state and the one that the adapter observes.
type Drift struct {
	Code     string  `json:"code"`
	Message  string  `json:"message"`
	MemberID *ids.ID `json:"memberId,omitempty"` // nil when it concerns the whole instance
}

// Drift returns the differences between the desired and the observed state, at most 256.
func (v *View) Drift() ([]*Drift, error) {
	list := []*Drift{}
	if len(v.Instance.Drift) == 0 {
		return list, nil
	}
	if err := json.Unmarshal(v.Instance.Drift, &list); err != nil {
		return nil, fmt.Errorf("read the drift of %s: %w", v.ID, err)
	}
	if list == nil { // a stored null
		return []*Drift{}, nil
	}
	return list[:min(len(list), maxDrift)], nil
}
