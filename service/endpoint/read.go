package endpoint

import (
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
