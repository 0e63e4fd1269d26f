package manifest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

func TestExactlyTheMinimumOfGPUsFits(t *testing.T) {
	t.Parallel()
	gate := anyShape(SpanAllocation)
	gate.MinGPUCount = 2
	for gpus, fits := range map[int]bool{0: false, 1: false, 2: true, 3: true} {
		verdict := Compatible(needing(gate), []AllocationShape{{Shape: lifecycle.ShapeGPUSlice, GPUs: gpus}}, nil)
		require.Equal(t, fits, verdict.OK, "%d GPUs", gpus)
		if fits {
			require.NoError(t, verdict.Err())
			continue
		}
		require.Equal(t, []fault.Reason{{
			Code: fault.GPUCountTooLow, Path: "allocations.0",
			Message: verdict.Reasons[0].Message,
		}}, verdict.Reasons)
	}
}

func TestAKeyIsTheFamilysOnlyWhenTheFamilyHasIt(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"scheduler.node.reboot", "scheduler.", "scheduler", "scheduler.queue", "scheduler.queue.submit.all",
		"scheduler.scheduler.queue.submit",
		"queue.submit", "schedulerqueue.submit", "apps.queue.read", "xscheduler.queue.read", "",
	} {
		require.False(t, inFamily("scheduler", key), key)
	}
	for _, family := range Families() {
		for _, suffix := range FamilySuffixes() {
			require.True(t, inFamily(family, family+"."+suffix))
		}
	}
	_, err := Parse(changed(t, `"permissionKey": "scheduler.queue.submit"`, `"permissionKey": "scheduler.node.reboot"`))
	found, _ := fault.As(err)
	require.Len(t, found.Reasons, 1)
	require.Equal(t, fault.KeyOutsideFamily, found.Reasons[0].Code)
	require.Equal(t, "actions.0.permissionKey", found.Reasons[0].Path)
	for _, suffix := range FamilySuffixes() {
		require.Contains(t, found.Reasons[0].Message, "scheduler."+suffix, "the keys that are allowed are listed")
	}
}

func TestDefaultsBehindReferencesFill(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type": "object", "$defs": {
			"size": {"type": "integer", "default": 3}, "same": {"$ref": "#/$defs/size"},
			"disk": {"type": "object", "default": {},
				"properties": {"size": {"$ref": "#/$defs/same"}, "kind": {"default": "ssd"}}}
		}, "properties": {
			"direct": {"$ref": "#/$defs/size"}, "twice": {"$ref": "#/$defs/same"}, "disk": {"$ref": "#/$defs/disk"},
			"own": {"$ref": "#/$defs/size", "default": 7}, "none": {"$ref": "#/$defs/nothing"}, "any": true
		}}`)
	for config, want := range map[string]string{
		``: `{"direct":3,"disk":{"kind":"ssd","size":3},"own":7,"twice":3}`,
		`{"direct": 1, "disk": {"size": 2}, "own": null}`: `{"direct":1,"disk":{"kind":"ssd","size":2},"own":null,"twice":3}`,
	} {
		got, err := ApplyDefaults(schema, json.RawMessage(config))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	referring := json.RawMessage(`{"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {"default": 1}}}}}`)
	root, err := ApplyDefaults(referring, nil)
	require.NoError(t, err)
	require.Equal(t, `{"x":1}`, string(root), "the reference of the schema itself is followed")
}
