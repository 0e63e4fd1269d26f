package graph

import (
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/secret"
)

func secretInput(in model.IssueRuntimeSecretInput) secret.IssueInput {
	return secret.IssueInput{
		InstanceID: in.InstanceID, Purpose: in.Purpose, Audience: in.Audience, MemberID: in.MemberID, ArtifactDigest: value(in.ArtifactDigest),
		TTLSeconds: in.TTLSeconds, Delivery: in.Delivery, Reason: value(in.Reason), IdempotencyKey: in.IdempotencyKey,
	}
}

func secretEdge(cursor string, row *secret.View) *model.RuntimeSecretEdge {
	return &model.RuntimeSecretEdge{Cursor: cursor, Node: row}
}
