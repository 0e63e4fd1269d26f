// Package wire translates the platform's rows into the types of the adapter contract.
package wire

import (
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/nodenet"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Instance returns the instance with the desired member counts, which it reads from the roles.
func Instance(row *db.Instance) (adapter.Instance, error) {
	var roles []struct {
		ComponentKey string `json:"componentKey"`
		Desired      int    `json:"desired"`
	}
	if len(row.Roles) > 0 {
		if err := json.Unmarshal(row.Roles, &roles); err != nil {
			return adapter.Instance{}, fmt.Errorf("read the roles of %s: %w", row.ID, err)
		}
	}
	out := adapter.Instance{
		ID: string(row.ID), Name: row.Name, TenantID: string(row.TenantID), ProjectID: string(row.ProjectID),
		App: row.AppSlug, Version: row.AppVersion, Config: row.Config, Components: []adapter.ComponentCount{},
		OperatingMode:     lifecycle.Wire(lifecycle.OperatingMode(row.OperatingMode)),
		ControlPlaneScope: lifecycle.Wire(lifecycle.ControlPlaneScope(row.ControlPlaneScope)),
	}
	for _, role := range roles {
		out.Components = append(out.Components, adapter.ComponentCount{Key: role.ComponentKey, Count: role.Desired})
	}
	return out, nil
}

// Pinned adds what the manifest of the instance's version states for its adapter: the runtime profile, which the
// platform does not interpret, and the artifacts that the adapter may have its nodes fetch.
func Pinned(instance *adapter.Instance, m *manifest.Manifest) {
	if m == nil {
		return
	}
	instance.RuntimeProfile = m.RuntimeProfile
	instance.Artifacts = make([]adapter.Artifact, len(m.Artifacts))
	for i, artifact := range m.Artifacts {
		instance.Artifacts[i] = adapter.Artifact{Name: artifact.Name, Digest: artifact.Digest,
			MediaType: artifact.MediaType}
	}
}

// Members returns the members of an instance with the nodes, allocations and volumes that they are bound to; without a
// known node the node is empty.
func Members(
	of *db.Instance, rows []*db.Member, nodes map[ids.ID]*db.ComputeNode, allocations map[ids.ID]*db.Allocation,
) []adapter.Member {
	out := make([]adapter.Member, 0, len(rows))
	for _, row := range rows {
		member := adapter.Member{
			ID: string(row.ID), ComponentKey: row.ComponentKey, Index: row.Ordinal, Status: lifecycle.Wire(row.Status),
			Cordoned: row.Cordoned, Labels: labels(row), Address: row.Address, Ranges: ranges(row.Ranges),
		}
		for _, bound := range volume.Of(of.Volumes, row.ComponentKey) {
			member.Volumes = append(member.Volumes, adapter.MemberVolume{
				Slot: bound.Slot, ID: string(bound.VolumeID), Path: bound.Path, ReadOnly: bound.ReadOnly,
			})
		}
		if row.NodeID != nil && nodes[*row.NodeID] != nil {
			var allocation *db.Allocation
			if row.AllocationID != nil {
				allocation = allocations[*row.AllocationID]
			}
			member.Node = node(nodes[*row.NodeID], allocation)
		}
		out = append(out, member)
	}
	return out
}

// ranges returns the blocks by their names, or nil for none.
func ranges(given []nodenet.Range) map[string]string {
	if len(given) == 0 {
		return nil
	}
	out := make(map[string]string, len(given))
	for _, block := range given {
		out[block.Name] = block.CIDR
	}
	return out
}

// labels returns a member's labels, or nil for none. The verb that stores them accepts only text.
func labels(row *db.Member) map[string]string {
	var out map[string]string
	if len(row.Labels) > 0 && json.Unmarshal(row.Labels, &out) != nil {
		return nil
	}
	return out
}

func node(row *db.ComputeNode, allocation *db.Allocation) adapter.Node {
	out := adapter.Node{
		ID: string(row.ID), Name: row.Name, Address: row.Address, SealingKey: row.SealingKey,
		GPUs: row.Gpus, CPUs: row.Cpus, MemoryMiB: row.MemoryMib,
	}
	if row.Status != lifecycle.NodeOnline {
		out.Reachable = new(bool)
	}
	if allocation == nil {
		return out
	}
	out.AllocationID, out.Shape, out.GPUs = string(allocation.ID), lifecycle.Wire(allocation.Shape), allocation.GpuCount
	if allocation.Shape == lifecycle.ShapeBaremetal {
		out.GPUs = row.Gpus
	} else if allocation.CPUMillis != nil && allocation.MemoryMib != nil { // a slice has its part of the whole node
		out.CPUs, out.MemoryMiB = max(*allocation.CPUMillis/1_000, 1), *allocation.MemoryMib
	}
	return out
}
