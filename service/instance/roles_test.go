package instance_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

// FuzzRolesAreReadAsByEncodingJSON holds the reader of stored roles against encoding/json: whatever the platform
// writes is read back as it was.
func FuzzRolesAreReadAsByEncodingJSON(f *testing.F) {
	f.Add("worker", "Worker", 3, 2, 1, `1 of 3 active, "held"`)
	f.Add("", "é\x00<\\", -1, 0, 1<<40, "\n")
	f.Fuzz(func(t *testing.T, key, name string, desired, current, healthy int, summary string) {
		written, err := json.Marshal([]roles.Count{
			{ComponentKey: key, DisplayName: name, Desired: desired, Current: current, Healthy: healthy,
				Summary: summary},
			{ComponentKey: key},
		})
		require.NoError(t, err)
		var want []*roles.Count
		require.NoError(t, json.Unmarshal(written, &want))
		got, err := (&instance.View{Instance: &db.Instance{Roles: written}}).Roles()
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestRolesThatAreNoJSONAreAnError(t *testing.T) {
	t.Parallel()
	_, err := (&instance.View{Instance: &db.Instance{Roles: json.RawMessage(`[{"componentKey":`)}}).Roles()
	require.Error(t, err)
	none, err := (&instance.View{Instance: &db.Instance{}}).Roles()
	require.NoError(t, err)
	require.Empty(t, none)
}
