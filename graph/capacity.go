package graph

import (
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/allocation"
)

func allocationEdge(cursor string, row *db.Allocation) *model.AllocationEdge {
	return &model.AllocationEdge{Cursor: cursor, Node: row}
}

func computeNodeEdge(cursor string, row *db.ComputeNode) *model.ComputeNodeEdge {
	return &model.ComputeNodeEdge{Cursor: cursor, Node: row}
}

func nodeTaskEdge(cursor string, row *db.NodeTask) *model.NodeTaskEdge {
	return &model.NodeTaskEdge{Cursor: cursor, Node: row}
}

func requestInput(in model.RequestAllocationInput) allocation.RequestInput {
	return allocation.RequestInput{
		ProjectID: in.ProjectID, Shape: in.Shape, Count: in.Count, GPUCount: in.GpuCount, SKU: value(in.Sku), Region: value(in.Region),
		Name: value(in.Name), SchedulerType: value(in.SchedulerType), IntegrationMetadata: in.IntegrationMetadata, IdempotencyKey: in.IdempotencyKey,
	}
}
