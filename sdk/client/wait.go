package client

import (
	"context"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Ended reports whether an operation in this state has ended.
func Ended(state gql.OperationState) bool {
	switch state {
	case gql.OperationStateSucceeded, gql.OperationStateFailed, gql.OperationStateCanceled:
		return true
	case gql.OperationStatePending, gql.OperationStateRunning, gql.OperationStateCanceling,
		gql.OperationStateCompensating:
		return false
	}
	return false
}

// WaitOperation follows an operation to its end and returns it, whether it succeeded or not: read its State.
// observe, which may be nil, is called for every change. The error says why the operation could not be followed.
func (c *Client) WaitOperation(ctx context.Context, id string,
	observe func(*gql.OperationDetail)) (*gql.OperationDetail, error) {
	for op, err := range c.OperationProgress(ctx, id) {
		if err != nil {
			return nil, err
		}
		if observe != nil {
			observe(op)
		}
		if Ended(op.State) {
			return op, nil
		}
	}
	// A feed that completed before it showed the end: the operation itself is the truth.
	answer, err := gql.GetOperation(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if !Ended(answer.Operation.State) {
		return nil, &Error{Code: CodeUnavailable, Message: "the server ended the feed before the operation ended",
			Retryable: true}
	}
	return &answer.Operation, nil
}
