package platformtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Refused fails the test unless err carries the code and its reasons name each of the fields at. An empty field is not
// looked for, so that a table may leave it out.
func Refused(t *testing.T, err error, code fault.Code, at ...string) {
	t.Helper()
	refusal, ok := fault.As(err)
	require.True(t, ok, "want %s: %v", code, err)
	require.Equal(t, code, refusal.Code, "%v", err)
	named := []string{""}
	for _, reason := range refusal.Reasons {
		named = append(named, reason.Path)
	}
	require.Subset(t, named, at, "%v", err)
}
