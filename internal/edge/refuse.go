package edge

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/gpuaas/app-platform/transport"
)

// Refuse answers a request that does not reach the API, in the platform's envelope. The connection
// is closed where a body would have to be read to go on with it.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	refused := &transport.Error{Code: transport.CodeInternal, Message: "internal error"}
	errors.As(err, &refused)
	id := transport.RequestCorrelationID(r)
	header := w.Header()
	header.Set(transport.CorrelationHeader, id)
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	if r.ContentLength != 0 {
		header.Set("Connection", "close")
	}
	refused.SetRetryAfter(header)
	w.WriteHeader(statusOf(refused.Code))
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{ // the caller may have gone
		"message": refused.Message,
		"extensions": map[string]any{
			"code": refused.Code, "correlation_id": id, "retryable": refused.Retryable, "reasons": []any{},
		},
	}}})
}

func statusOf(code string) int {
	if code == transport.CodeRateLimited {
		return http.StatusTooManyRequests
	}
	return http.StatusInternalServerError
}
