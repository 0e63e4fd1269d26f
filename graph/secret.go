package graph

import (
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/secret"
)

func secretEdge(cursor string, row *secret.View) *model.RuntimeSecretEdge {
	return &model.RuntimeSecretEdge{Cursor: cursor, Node: row}
}
