package manifest

import "github.com/gpuaas/app-platform/domain/fault"

// Network is what an app declares of its members' network.
type Network struct {
	// Ranges are blocks of addresses that each member gets, beside its own address: unique in the installation, routed
	// to the member, and open to the members of its instance. What runs inside of a member has addresses of them.
	Ranges []NetworkRange `json:"ranges,omitempty"`
	// Endpoints are ports that may be reached by others than the members of the instance.
	Endpoints []OpenPort `json:"endpoints,omitempty"`
}

// NetworkRange is a block for each member.
type NetworkRange struct {
	// Name is unique in the manifest.
	Name string `json:"name"`
	// ComponentKey is the component whose members get one; empty for all.
	ComponentKey string `json:"componentKey,omitempty"`
	// Bits is the length of the block's prefix, 20 to 28.
	Bits int `json:"bits"`
}

// OpenPort is a port that is open on the members' network.
type OpenPort struct {
	// Name is unique in the manifest.
	Name string `json:"name"`
	// ComponentKey is the component whose members have it; empty for all.
	ComponentKey string `json:"componentKey,omitempty"`
	// Protocol is "tcp", which is the default, or "udp".
	Protocol string `json:"protocol,omitempty"`
	Port     int    `json:"port"`
}

// network checks names and components against each other.
func (l *linter) network(m *Manifest) {
	if m.Network == nil {
		return
	}
	ranges, endpoints := m.Network.Ranges, m.Network.Endpoints
	l.unique(len(ranges), func(i int) string { return ranges[i].Name }, at("network.ranges", "name"))
	l.unique(len(endpoints), func(i int) string { return endpoints[i].Name }, at("network.endpoints", "name"))
	for i, declared := range ranges {
		l.known(m, declared.ComponentKey, at("network.ranges", "componentKey")(i))
	}
	for i, declared := range endpoints {
		l.known(m, declared.ComponentKey, at("network.endpoints", "componentKey")(i))
	}
}

// known reports a component that the manifest does not have; an empty key means all components.
func (l *linter) known(m *Manifest, key, path string) {
	for _, component := range m.Components {
		if key == component.Key {
			return
		}
	}
	if key != "" {
		l.add(fault.UnknownComponent, path, "is not a component of this manifest")
	}
}
