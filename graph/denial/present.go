package denial

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Present turns a verb's refusal into the one error envelope. It is the only place that creates a
// GraphQL error; what is not a fault is INTERNAL, with nothing of its text. A database that cannot be reached
// is UNAVAILABLE: clients try again, and a credential that could not be read is not reported as expired.
func Present(ctx context.Context, err error) *gqlerror.Error {
	var path ast.Path
	if graphql.HasOperationContext(ctx) {
		path = graphql.GetPath(ctx)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fault.New(fault.DeadlineExceeded, "the request took too long").Because(err)
	}
	refused, known := fault.As(err)
	// canceled by a server that stops; a caller who left reads nothing
	if !known && (tx.Away(err) || errors.Is(err, context.Canceled)) {
		refused, known = fault.New(fault.Unavailable, "a part of the platform cannot be reached just now").
			Because(err), true
	}
	if !known {
		return nil // the transport makes it INTERNAL and logs it
	}
	out := &gqlerror.Error{Err: err, Message: refused.Message, Path: path, Extensions: map[string]any{
		"code":           string(refused.Code),
		"correlation_id": authz.Request(ctx).CorrelationID,
		"retryable":      refused.CanRetry(),
		"reasons":        reasonsOf(refused),
	}}
	return out
}

func reasonsOf(refused *fault.Fault) []map[string]any {
	reasons := make([]map[string]any, len(refused.Reasons))
	for i, reason := range refused.Reasons {
		reasons[i] = map[string]any{"code": string(reason.Code), "message": reason.Message, "path": reason.Path}
	}
	return reasons
}
