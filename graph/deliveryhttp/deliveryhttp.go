// Package deliveryhttp serves the parts of artifacts to nodes, by GET and HEAD. What may be fetched, and from where, is
// for service/delivery; here are the request, the answer and its bytes.
package deliveryhttp

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/internal/edge"
	"github.com/gpuaas/app-platform/service/delivery"
	"github.com/gpuaas/app-platform/transport"
)

// Path is where parts are served: the path of delivery.Service.URL.
const Path = "/v1/artifacts/"

// Handler serves the parts of artifacts. Fields are set before it is used and not changed.
type Handler struct {
	// Deliveries verifies tokens and finds parts. Required.
	Deliveries *delivery.Service
	// Log takes what must not be answered; nil for none.
	Log *slog.Logger
	// Stats counts; nil for none.
	Stats *Stats
}

// Stats counts what one process delivers.
type Stats struct {
	// Bytes were delivered, and Parts to their end. UnderWay are being delivered now. Broken ended early, by the source
	// or the node.
	Bytes, Parts, UnderWay, Broken atomic.Int64
}

// ServeHTTP answers GET and HEAD of one part below Path: the digest is the rest of the path, and the Authorization
// header holds the token of the delivery. A request may name one range of bytes. A refusal is answered in the
// platform's envelope; an answer that cannot be completed is cut off, so that no client takes it for whole.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := transport.RequestCorrelationID(r)
	header := w.Header()
	header.Set(transport.CorrelationHeader, id)
	header.Set("Cache-Control", "no-store")
	info := authz.RequestInfo{CorrelationID: id, Origin: edge.Address(r)}
	ctx := authz.WithRequest(transport.WithCorrelationID(r.Context(), id), info)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		refused := fault.New(fault.RequestInvalid, "parts are fetched by GET or HEAD")
		h.refuse(ctx, w, refused, http.StatusMethodNotAllowed)
		return
	}
	if err := h.serve(ctx, w, r); err != nil {
		h.refuse(ctx, w, err, 0)
	}
}

// serve answers a part. It returns an error only where nothing has been answered yet.
func (h *Handler) serve(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	part, leave, err := h.Deliveries.Part(ctx, bearer(r), strings.TrimPrefix(r.URL.Path, Path))
	if err != nil {
		return err
	}
	defer leave()
	wanted, err := rangeOf(r, part)
	if err != nil {
		w.Header().Set("Content-Range", "bytes */"+strconv.FormatInt(part.Size, 10))
		h.refuse(ctx, w, err, http.StatusRequestedRangeNotSatisfiable)
		return nil
	}
	if r.Method == http.MethodHead {
		wanted.head(w, part)
		return nil
	}
	body, done, err := h.Deliveries.Body(ctx, part, wanted.from)
	if err != nil {
		return err
	}
	defer done()
	h.stream(ctx, w, part, wanted, body)
	return nil
}

// bearer returns the token that the request shows.
func bearer(r *http.Request) string {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(text)
}

// refuse answers a fault in the platform's envelope; status 0 means the fault's own.
func (h *Handler) refuse(ctx context.Context, w http.ResponseWriter, err error, status int) {
	refused := fault.From(err)
	if refused.Code == fault.Internal {
		h.note(ctx, slog.LevelError, "a part of an artifact could not be delivered", err)
	}
	denial.Answer(ctx, w, refused, status)
}

// note logs what must not be answered.
func (h *Handler) note(ctx context.Context, level slog.Level, message string, err error) {
	if h.Log != nil {
		h.Log.Log(ctx, level, message, "error", err, "correlation_id", transport.CorrelationID(ctx))
	}
}
