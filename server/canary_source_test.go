package server

import (
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// credential gives a source a credential, in all the ways that are taken and refused.
func (a *aviary) credential(w *world) {
	a.t.Helper()
	ctx, value := a.t.Context(), "canary-of-a-source-of-artifacts"
	a.canaries["a source's credential"] = value
	operator := a.client(w.operator)
	made, err := gql.CreateArtifactSource(ctx, operator,
		gql.CreateArtifactSourceInput{Name: "canary", Kind: gql.SourceKindOci, Location: "registry.test/canary",
			SignaturePolicy: gql.SignaturePolicyOptional, IdempotencyKey: "canary"})
	require.NoError(a.t, err)
	in := gql.SetSourceCredentialInput{SourceId: made.CreateArtifactSource.Id, User: "robot", Secret: value}
	_, err = gql.SetSourceCredential(ctx, operator, in)
	require.NoError(a.t, err)
	_, err = gql.SetSourceCredential(ctx, a.client(w.admin), in)
	require.Equal(a.t, client.CodeForbidden, client.CodeOf(err))
	in.User, in.Secret = value, "" // in the wrong field, and refused for it
	_, err = gql.SetSourceCredential(ctx, operator, in)
	require.Equal(a.t, client.CodeInvalidArgument, client.CodeOf(err))
	require.Equal(a.t, 1, a.Count("artifact_source", "credential_user = 'robot' AND credential IS NOT NULL"))
}
