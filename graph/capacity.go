package graph

import (
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
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
