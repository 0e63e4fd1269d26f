package agent

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func TestTheVolumesOfABindingAreRead(t *testing.T) {
	t.Parallel()
	type member struct {
		ID        string  `json:"id"`
		Storage   string  `json:"storage"`
		Path      string  `json:"path"`
		ReadOnly  bool    `json:"readOnly"`
		SizeBytes float64 `json:"sizeBytes"`
	}
	told := struct {
		gql.MemberBinding
		Volumes []member `json:"volumes"`
	}{Volumes: []member{{ID: "vol_a", Storage: "files", Path: "/home", ReadOnly: true, SizeBytes: 1 << 40}}}
	require.Equal(t, []volume.Volume{{ID: "vol_a", Storage: "files", Path: "/home", ReadOnly: true, SizeBytes: 1 << 40}},
		volumesOf(told))
	require.Empty(t, volumesOf(&gql.MemberBinding{}))
	require.Empty(t, wallsOf(nil).Volumes)
}
