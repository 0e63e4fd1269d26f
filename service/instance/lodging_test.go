package instance_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/instance"
)

// offering is a free node of so many GPUs that serves storages.
func (b *bundle) offering(gpus int, storages ...volume.Storage) *db.ComputeNode {
	b.t.Helper()
	node, _ := b.Node(gpus)
	text, err := json.Marshal(storages)
	require.NoError(b.t, err)
	b.SQL(`UPDATE compute_node SET storage = $2 WHERE id = $1`, node.ID, text)
	return node
}

// placed are the nodes of an instance's members, by component.
func (b *bundle) placed(of *instance.View) map[string][]ids.ID {
	out := make(map[string][]ids.ID)
	for _, one := range b.Ent.Member.Query().Order(db.Asc("component_key", "ordinal")).AllX(b.ctx) {
		if one.InstanceID == of.ID {
			out[one.ComponentKey] = append(out[one.ComponentKey], *one.NodeID)
		}
	}
	return out
}

// only leaves none of the bundle's own nodes to place on.
func (b *bundle) only() { b.SQL(`UPDATE compute_node SET cordoned = true`) }

func TestRequestedCapacityIsPlacedWhereItsVolumesAreServed(t *testing.T) {
	t.Parallel()
	b := filed(t)
	b.only()
	b.offering(4) // which would be the first choice: it is the fullest that fits
	serving := b.offering(8, volume.Storage{Name: "shared", Kind: volume.Shared})
	b.offering(4, volume.Storage{Name: "shared", Kind: volume.Shared, Reason: "it takes no id-mapped mounts"})
	b.offering(4, volume.Storage{Name: "shared", Kind: volume.Local})
	data := b.volume(b.class("shared", volume.Shared), "data")
	in := b.housed(using(change.VolumeChoice{Slot: "data", VolumeID: data}), func(in *instance.LaunchInput) {
		in.Components = []instance.Component{{Key: "head", Count: 1, Intent: slice(1)},
			{Key: "worker", Count: 1, Intent: slice(4)}}
	})
	started, err := b.service.Launch(b.ctx, in)
	require.NoError(t, err)
	at := b.placed(started.Instance)
	require.Equal(t, []ids.ID{serving.ID}, at["head"], "which has the volume")
	require.NotEqual(t, []ids.ID{serving.ID}, at["worker"], "which has none, and fits best elsewhere")
}

func TestALocalVolumesMembersAreRequestedOnItsNode(t *testing.T) {
	t.Parallel()
	b := filed(t)
	b.only()
	fast := volume.Storage{Name: "fast", Kind: volume.Local}
	b.offering(2, fast) // it has room for one of them, not for all
	large := b.offering(4, fast)
	home := b.volume(b.class("fast", volume.Local), "home")
	data := b.volume(b.class("shared", volume.Shared), "data")
	b.SQL(`UPDATE compute_node SET storage = storage || '[{"name": "shared", "kind": "SHARED", "reason": ""}]'`)
	chosen := using(change.VolumeChoice{Slot: "home", VolumeID: home},
		change.VolumeChoice{Slot: "data", VolumeID: data})
	three := func(in *instance.LaunchInput) {
		in.Components = []instance.Component{{Key: "head", Count: 1, Intent: slice(1)},
			{Key: "worker", Count: 2, Intent: slice(1)}}
	}
	b.SQL(`UPDATE volume SET node_id = $2 WHERE id = $1`, home, large.ID)
	started, err := b.service.Launch(b.ctx, b.housed(chosen, three))
	require.NoError(t, err)
	require.Equal(t, map[string][]ids.ID{"head": {large.ID}, "worker": {large.ID, large.ID}},
		b.placed(started.Instance))

	before := b.written()
	_, err = b.service.Launch(b.ctx, b.housed(chosen, three, func(in *instance.LaunchInput) {
		in.Name, in.IdempotencyKey = "more", "k2"
	}))
	require.Equal(t, fault.Incompatible, fault.From(err).Code, "another node has room, and not the volume")
	require.Equal(t, []any{fault.VolumeUnavailable, "input.components.1.intent"},
		[]any{fault.From(err).Reasons[0].Code, fault.From(err).Reasons[0].Path})
	require.Contains(t, fault.From(err).Reasons[0].Message, "home of class fast")
	require.Equal(t, before, b.written())
}

// Where a local volume is on no node yet, its members are placed on one that has capacity for all of a component.
func TestANewLocalVolumeComesToBeWhereAllItsMembersFit(t *testing.T) {
	t.Parallel()
	b := filed(t)
	b.only()
	both := []volume.Storage{{Name: "fast", Kind: volume.Local}, {Name: "shared", Kind: volume.Shared}}
	b.offering(2, both...)
	large := b.offering(4, both...)
	home := b.volume(b.class("fast", volume.Local), "home")
	data := b.volume(b.class("shared", volume.Shared), "data")
	chosen := using(change.VolumeChoice{Slot: "home", VolumeID: home},
		change.VolumeChoice{Slot: "data", VolumeID: data})
	of := func(workers, gpus int) func(in *instance.LaunchInput) {
		return func(in *instance.LaunchInput) {
			in.Components = []instance.Component{{Key: "worker", Count: workers, Intent: slice(gpus)},
				{Key: "head", Count: 1, Intent: slice(1)}}
		}
	}
	_, err := b.service.Launch(b.ctx, b.housed(chosen, of(3, 2)))
	require.Equal(t, fault.CapacityUnavailable, fault.From(err).Code)
	require.Contains(t, fault.From(err).Reasons[0].Message, "a share of 6 GPUs is requested")
	started, err := b.service.Launch(b.ctx, b.housed(chosen, of(3, 1)))
	require.NoError(t, err)
	require.Equal(t, map[string][]ids.ID{"head": {large.ID}, "worker": {large.ID, large.ID, large.ID}},
		b.placed(started.Instance))
}

func TestCapacityThatNoNodeWithTheVolumeHasIsRefusedWithWhatWouldFit(t *testing.T) {
	t.Parallel()
	b := filed(t)
	b.only()
	b.offering(8)
	b.offering(2, volume.Storage{Name: "shared", Kind: volume.Shared})
	data := b.volume(b.class("shared", volume.Shared), "data")
	before := b.written()
	_, err := b.service.Launch(b.ctx, b.housed(using(change.VolumeChoice{Slot: "data", VolumeID: data}),
		func(in *instance.LaunchInput) {
			in.Components = []instance.Component{{Key: "head", Count: 1, Intent: slice(4)},
				{Key: "worker", Count: 1, Intent: slice(1)}}
		}))
	refused := fault.From(err)
	require.Equal(t, fault.Incompatible, refused.Code)
	require.Equal(t, []fault.Reason{
		{Code: fault.VolumeUnavailable, Path: "input.components.0.intent",
			Message: "a share of 4 GPUs is free, but on no node that serves the volumes data of class shared"},
		{Code: fault.CapacityFits, Path: "input.components.0.intent", Message: refused.Reasons[1].Message},
	}, refused.Reasons)
	require.Contains(t, refused.Reasons[1].Message, "would fit now: GPU_SLICE of 2 GPUs")
	require.Equal(t, before, b.written())
}
