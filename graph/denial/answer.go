package denial

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/transport"
)

// retryAfter is how long a caller waits after an answer that says try again.
const retryAfter = 2 * time.Second

// Answer writes a fault in the platform's envelope, to a request that is not GraphQL; status 0 means the fault's own.
func Answer(ctx context.Context, w http.ResponseWriter, err error, status int) {
	refused := fault.From(err)
	if status == 0 {
		status = refused.HTTPStatus()
	}
	header := w.Header()
	header.Set("Content-Type", "application/json; charset=utf-8")
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		header.Set("Retry-After", strconv.Itoa(int(retryAfter/time.Second)))
	case http.StatusUnauthorized:
		header.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Envelope(ctx, refused)) // the caller may have disconnected
}

// Envelope is a fault as every answer of the platform carries it, for encoding/json.
func Envelope(ctx context.Context, err error) any {
	refused := fault.From(err)
	reasons := refused.Reasons
	if reasons == nil {
		reasons = []fault.Reason{}
	}
	return map[string]any{"errors": []any{map[string]any{
		"message": refused.Message,
		"extensions": map[string]any{
			"code": refused.Code, "correlation_id": transport.CorrelationID(ctx), "retryable": refused.CanRetry(),
			"reasons": reasons,
		},
	}}}
}
