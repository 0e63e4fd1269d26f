package policy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

func TestFilesAndWholeSourcesEndAtTheSameBoundaries(t *testing.T) {
	t.Parallel()
	e := platform(t,
		`{"artifactSources":{"allow":["files.example/pub","files.example:8443"],"deny":["files.example/pub/old"]}}`)
	for ref, ok := range map[string]bool{
		"https://files.example/pub/Model%20(1).bin": true,
		"https://files.example:443/pub/a/b@c.bin":   true,
		"https://FILES.example/pub/a":               true,
		"https://files.example:8443/a":              true,
		"http://files.example:8443/a":               true,
		"ftp://files.example:8443/a":                false,
		"https://files.example/pub/old/x":           false,
		"https://files.example/pub/OLD/x":           false,
		"https://files.example/public/x":            false,
		"https://files.example/x":                   false,
		"https://files.example/pub/../x":            false,
		"https://files.example/pub/%2e%2E/x":        false,
		"https://files.example/pub/..%2Fx":          false,
		`https://files.example/pub/..\x`:            false,
		"https://files.example/pub//x":              false,
		"https://files.example:8443":                false,
		"https://user@files.example/pub/x":          false,
		"https://files.example/pub/x?y":             false,
	} {
		err := e.Source(ref, "input.ref")
		require.Equal(t, ok, err == nil, "%s: %v", ref, err)
		if err != nil {
			denied(t, err, fault.SourceDenied, "input.ref")
		}
	}
	for location, ok := range map[string]bool{
		"https://files.example/pub/": true, "https://files.example/pub/a/": true, "https://files.example:8443/": true,
		"files.example/pub": true, "files.example:8443": true,
		"https://files.example/": false, "files.example": false, "https://files.example/pub/old/": false,
		"files.example/pub/old": false, "https://": false, "": false, "a b": false,
	} {
		err := e.Location(location, "input.location")
		require.Equal(t, ok, err == nil, "%s: %v", location, err)
		if err != nil {
			denied(t, err, fault.SourceDenied, "input.location")
		}
	}
}
