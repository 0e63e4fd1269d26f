package manifest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A browser can open what speaks HTTP; the others are reached by a tunnel.
func TestAWebEndpointIsOneThatABrowserCanOpen(t *testing.T) {
	t.Parallel()
	for protocol, web := range map[string]bool{
		ProtocolHTTP: true, ProtocolHTTPS: true, ProtocolTCP: false, ProtocolSSH: false,
	} {
		require.Equal(t, web, (&Endpoint{Protocol: protocol}).Web(), protocol)
	}
}

func TestAnEndpointIsFoundByItsName(t *testing.T) {
	t.Parallel()
	m := &Manifest{Endpoints: []Endpoint{{Name: "shell", Port: 22}, {Name: "web", Port: 80}}}
	found, ok := m.Endpoint("web")
	require.True(t, ok)
	require.Same(t, &m.Endpoints[1], found)
	_, ok = m.Endpoint("we")
	require.False(t, ok)
}

func TestAnEndpointFitsItsManifest(t *testing.T) {
	t.Parallel()
	const web = `{"name": "web", "title": "Web", "componentKey": "head", "port": 80, "protocol": "http",
		"permissionKey": "scheduler.queue.read", "healthPath": "/healthz"}`
	but := func(changes ...string) string { return strings.NewReplacer(changes...).Replace(web) }
	for endpoints, want := range map[string][]string{
		web:                      nil,
		but(`"http"`, `"https"`): nil,
		but(`"http"`, `"ssh"`, `, "healthPath": "/healthz"`, ``): nil,
		but(`"http"`, `"tcp"`):       {"BAD_VALUE endpoints.0.healthPath"},
		but(`"http"`, `"ssh"`):       {"BAD_VALUE endpoints.0.healthPath"},
		web + `, ` + web:             {"DUPLICATE endpoints.1.name"},
		but(`"head"`, `"tail"`):      {"UNKNOWN_COMPONENT endpoints.0.componentKey"},
		but(`scheduler.`, `apps.`):   {"KEY_OUTSIDE_FAMILY endpoints.0.permissionKey"},
		but(`"web"`, `"two--parts"`): {"BAD_VALUE endpoints.0.name"}, // they separate the parts of a host name
	} {
		_, err := Parse(changed(t, `"docs":`, `"endpoints": [`+endpoints+`], "docs":`))
		require.Equal(t, want, reasonsOf(t, err), endpoints)
	}
}
