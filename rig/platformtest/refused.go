package platformtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Refused fails the test unless err carries the code and its first reasons name the fields at, in their order. An empty
// field is not looked for, so that a table may leave it out.
func Refused(t *testing.T, err error, code fault.Code, at ...string) {
	t.Helper()
	named := pathsOf(t, err, code)
	for i, path := range at {
		if path != "" {
			require.Greater(t, len(named), i, "no reason names the field %s: %v", path, err)
			require.Equal(t, path, named[i], "%v", err)
		}
	}
}

// RefusedAlso fails the test unless err carries the code and one of its reasons, not always the first, names the field
// at.
func RefusedAlso(t *testing.T, err error, code fault.Code, at string) {
	t.Helper()
	require.Contains(t, pathsOf(t, err, code), at, "%v", err)
}

func pathsOf(t *testing.T, err error, code fault.Code) (named []string) {
	t.Helper()
	refusal, ok := fault.As(err)
	require.True(t, ok, "want %s: %v", code, err)
	require.Equal(t, code, refusal.Code, "%v", err)
	for _, reason := range refusal.Reasons {
		named = append(named, reason.Path)
	}
	return named
}
