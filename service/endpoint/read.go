package endpoint

import (
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

// View is an endpoint of an instance, as it is read.
type View struct {
	Name, Title, ComponentKey, Protocol, PermissionKey string
	// Address is the origin at which browsers have it; empty where they have none.
	Address string
	// Serving counts the members in service that serve it.
	Serving int

	instance *db.Instance
	declared *manifest.Endpoint
	member   *db.Member // the only one that is meant; nil for all
}

// At returns the endpoints that a member serves, of those of its instance.
func At(all []*View, member *db.Member) []*View {
	out := make([]*View, 0, len(all))
	for _, one := range all {
		if one.ComponentKey != member.ComponentKey {
			continue
		}
		mine := *one
		mine.member, mine.Serving = member, 0
		if member.Status == lifecycle.MemberActive && member.Health == lifecycle.HealthHealthy {
			mine.Serving = 1
		}
		out = append(out, &mine)
	}
	return out
}

// Of returns the endpoints of an instance, of its manifest and the counts of its components.
func (s *Service) Of(instance *db.Instance, stored *db.Manifest, counts []*roles.Count) ([]*View, error) {
	document, err := manifest.Parse(stored.Document)
	if err != nil {
		return nil, err
	}
	healthy := make(map[string]int, len(counts))
	for _, count := range counts {
		healthy[count.ComponentKey] = count.Healthy
	}
	out := make([]*View, len(document.Endpoints))
	for i := range document.Endpoints {
		one := &document.Endpoints[i]
		out[i] = &View{Name: one.Name, Title: one.Title, ComponentKey: one.ComponentKey, Protocol: one.Protocol,
			PermissionKey: one.PermissionKey, Serving: healthy[one.ComponentKey], instance: instance, declared: one}
		if one.Web() {
			out[i].Address = s.Origin(one.Name, instance.ID)
		}
	}
	return out, nil
}
