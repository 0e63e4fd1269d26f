package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/capacity"
)

func TestALaunchKeepsWhatFurtherMembersAreToLiveIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	two := 2
	want := &capacity.Want{Shape: lifecycle.ShapeGPUSlice, GPUCount: &two, SKU: "large"}
	in := b.launch(func(in *instance.LaunchInput) {
		in.Components = []instance.Component{{Key: "worker", Count: 1, Intent: want}}
	})
	started, err := b.service.Launch(b.ctx, in)
	require.NoError(t, err)
	row := b.Ent.Instance.GetX(t.Context(), started.Instance.ID)
	counts, err := (&instance.View{Instance: row}).Roles()
	require.NoError(t, err)
	require.Equal(t, []*capacity.Want{nil, want}, []*capacity.Want{counts[0].Intent, counts[1].Intent})

	in.IdempotencyKey = "wrong"
	in.Components[0].Intent = &capacity.Want{Shape: lifecycle.ShapeGPUSlice}
	_, err = b.service.Launch(b.ctx, in)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.components.0.intent.gpuCount")
}
