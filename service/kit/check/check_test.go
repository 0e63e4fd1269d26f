package check_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/service/kit/check"
)

func TestEveryFieldAtFaultIsNamedInOneAnswer(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var in check.Input
	in.Slug("input.slug", "Bad Name")
	in.Slug("input.other", "x")
	in.Text("input.displayName", "", 1, 100)
	in.Text("input.summary", "a\nb", 1, 100)
	in.Reason("input.reason", strings.Repeat("x", check.MaxReason+1))
	in.Email("input.email", "A Person <person@example.com>")
	in.Future("input.expiresAt", &now, now)
	refused, ok := fault.As(in.Err())
	require.True(t, ok)
	require.Equal(t, fault.InvalidArgument, refused.Code)
	var paths []string
	for _, reason := range refused.Reasons {
		paths = append(paths, reason.Path)
	}
	require.Equal(t, []string{"input.slug", "input.other", "input.displayName", "input.summary", "input.reason",
		"input.email", "input.expiresAt"}, paths)
}

func TestSoundInputPasses(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	var in check.Input
	in.Slug("input.slug", "a-team-2")
	in.Text("input.displayName", "Ä team", 1, 6)
	in.Reason("input.reason", "")
	in.Email("input.email", "person@example.com")
	in.Future("input.expiresAt", &later, time.Now())
	in.Future("input.expiresAt", nil, time.Now())
	require.NoError(t, in.Err())
}
