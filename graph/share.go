package graph

import (
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
)

func shareEdge(cursor string, row *db.ControlPlaneShare) *model.ControlPlaneShareEdge {
	return &model.ControlPlaneShareEdge{Cursor: cursor, Node: row}
}
