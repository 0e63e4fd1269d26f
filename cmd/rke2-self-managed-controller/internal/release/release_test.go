package release

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStepsFollowKubernetes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		want     Step
	}{
		{"v1.35.2+rke2r1", "v1.35.2+rke2r1", Stays},
		{"v1.35.2+rke2r1", "v1.35.2+rke2r2", Forward},
		{"v1.35.9+rke2r1", "v1.35.10+rke2r1", Forward},
		{"v1.35.2+rke2r1", "v1.36.0+rke2r1", Forward},
		{"v1.34.2+rke2r1", "v1.36.0+rke2r1", Skips},
		{"v1.36.2+rke2r1", "v2.0.0+rke2r1", Skips},
		{"v1.36.2+rke2r2", "v1.36.2+rke2r1", Back},
		{"v1.36.0+rke2r1", "v1.35.9+rke2r1", Back},
	} {
		from, ok := Find(c.from)
		require.True(t, ok)
		to, ok := Find("rke2 version " + c.to + " (a stand-in)")
		require.True(t, ok)
		require.Equal(t, c.want, from.StepTo(to), "%s to %s", from, to)
		require.Equal(t, c.to, to.String())
	}
	for _, none := range []string{"", "v1.36.3", "1.36.3+rke2r1", "v1.36.3-rc1+rke2r1",
		"v1.36.3+rke2r10000000000000000000"} {
		_, ok := Find(none)
		require.False(t, ok, none)
	}
	one, _ := Find("v1.34.2+rke2r1")
	require.Equal(t, "v1.35", one.Next())
}
