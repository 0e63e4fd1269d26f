package api

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// PurposeArtifactPull is the purpose of a secret that lets its taker pull one artifact of the manifest for some
// minutes. Every instance has it; the manifest and the platform's policy name other purposes.
const PurposeArtifactPull = "artifact_pull"

// SecretRequest requests a runtime secret of an instance. The platform generates the value and keeps it.
type SecretRequest struct {
	// Purpose is what it is for.
	Purpose string
	// ArtifactDigest is what may be pulled, for [PurposeArtifactPull].
	ArtifactDigest string
	// MemberID is the member whose node may receive the secret, by a task's SecretRef; empty for the adapter itself.
	MemberID string
	// Life is how long it can be delivered, 30 seconds to a day, in whole seconds; 0 means five minutes.
	Life time.Duration
	// Again lets it be delivered until it expires, and not only once. A task that must survive a restart of the node's
	// agent needs this.
	Again bool
	// IdempotencyKey makes a repeat harmless: the same key returns the same secret.
	IdempotencyKey string
}

// IssueSecret creates a runtime secret of the instance and returns its id. A purpose that the manifest does not declare
// or policy does not allow is POLICY_DENIED.
func (c *Client) IssueSecret(ctx context.Context, instanceID string, request SecretRequest) (id string, err error) {
	input := gql.IssueRuntimeSecretInput{
		InstanceId: instanceID, Purpose: request.Purpose, Audience: gql.SecretAudienceAdapter,
		ArtifactDigest: request.ArtifactDigest,
		TtlSeconds:     int(request.Life / time.Second), Delivery: gql.SecretDeliveryOnce,
		IdempotencyKey: request.IdempotencyKey,
	}
	if request.MemberID != "" {
		input.Audience, input.MemberId = gql.SecretAudienceNode, request.MemberID
	}
	if request.Again {
		input.Delivery = gql.SecretDeliveryUntilExpiry
	}
	if input.IdempotencyKey == "" {
		input.IdempotencyKey = client.NewKey()
	}
	answer, err := gql.IssueRuntimeSecret(ctx, c, input)
	if err != nil {
		return "", err
	}
	return answer.IssueRuntimeSecret.Id, nil
}

// RedeemSecret takes delivery of a runtime secret that is bound to the adapter. The value is for its use alone: it must
// not be logged, journalled or reported. One that was delivered as often as it may be is SECRET_SPENT.
func (c *Client) RedeemSecret(ctx context.Context, id string) (value string, err error) {
	answer, err := gql.RedeemRuntimeSecret(ctx, c, id)
	if err != nil {
		return "", err
	}
	if answer.RedeemRuntimeSecret.Value == nil {
		return "", &client.Error{Code: client.CodeInternal, Message: "the platform returned no value"}
	}
	return *answer.RedeemRuntimeSecret.Value, nil
}
