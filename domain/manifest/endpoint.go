package manifest

import (
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Endpoint is something that people reach of an instance: a port of a component's members, which the platform opens to
// callers that have a permission key. It needs no open port on the members' network.
type Endpoint struct {
	// Name is unique in the manifest, and part of the host name that HTTP endpoints have: at most 35 characters.
	Name string `json:"name"`
	// Title is for people.
	Title string `json:"title"`
	// ComponentKey is the component whose members serve it.
	ComponentKey string `json:"componentKey"`
	// Port is where they listen, 1 to 65535.
	Port int `json:"port"`
	// Protocol is what is spoken there: "http", "https", "tcp" or "ssh".
	Protocol string `json:"protocol"`
	// PermissionKey is the key of the manifest's family that opens it.
	PermissionKey string `json:"permissionKey"`
	// HealthPath is requested by GET to find out whether an HTTP endpoint works; empty to try its port alone.
	HealthPath string `json:"healthPath,omitempty"`
}

// The protocols of endpoints.
const (
	ProtocolHTTP  = "http"
	ProtocolHTTPS = "https"
	ProtocolTCP   = "tcp"
	ProtocolSSH   = "ssh"
)

// Web reports whether a browser can open the endpoint.
func (e *Endpoint) Web() bool { return e.Protocol == ProtocolHTTP || e.Protocol == ProtocolHTTPS }

// Endpoint finds an endpoint by its name.
func (m *Manifest) Endpoint(name string) (*Endpoint, bool) {
	for i := range m.Endpoints {
		if m.Endpoints[i].Name == name {
			return &m.Endpoints[i], true
		}
	}
	return nil, false
}

// endpoints checks each endpoint against the components and the permission family.
func (l *linter) endpoints(m *Manifest) {
	l.unique(len(m.Endpoints), func(i int) string { return m.Endpoints[i].Name }, at("endpoints", "name"))
	for i, endpoint := range m.Endpoints {
		l.known(m, endpoint.ComponentKey, at("endpoints", "componentKey")(i))
		if !inFamily(m.PermissionFamily, endpoint.PermissionKey) {
			l.outside(m, at("endpoints", "permissionKey")(i))
		}
		if strings.Contains(endpoint.Name, "--") {
			l.add(fault.BadValue, at("endpoints", "name")(i), "must not contain two hyphens in a row")
		}
		if endpoint.HealthPath != "" && !endpoint.Web() {
			l.add(fault.BadValue, at("endpoints", "healthPath")(i), "is only for http and https")
		}
	}
}
