package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/edge"
	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/transport"
)

// ServeHTTP answers GET and HEAD of one part below Path: the digest is the rest of the path, the token of the delivery
// stands in Authorization. One range of bytes may be asked for. What is refused is answered in the platform's envelope;
// an answer that cannot be ended is cut off, so that nobody takes it for whole.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := transport.RequestCorrelationID(r)
	header := w.Header()
	header.Set(transport.CorrelationHeader, id)
	header.Set("Cache-Control", "no-store")
	ctx := authz.WithRequest(transport.WithCorrelationID(r.Context(), id), authz.RequestInfo{CorrelationID: id, Origin: edge.Address(r)})
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		s.refuse(ctx, w, fault.New(fault.RequestInvalid, "parts are fetched by GET or HEAD"), http.StatusMethodNotAllowed)
		return
	}
	if err := s.serve(ctx, w, r); err != nil {
		s.refuse(ctx, w, err, 0)
	}
}

// serve answers a part. An error is one from before anything was answered.
func (s *Service) serve(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	of, err := s.Keys.VerifyDelivery(bearer(r), s.DB.Now())
	if err != nil {
		s.DB.Deny(tx.Denial{Request: authz.Request(ctx), Action: "fetchArtifactPart", Key: authz.TaskExecute.String(),
			Code: string(fault.From(err).Code), At: s.DB.Now()})
		return err
	}
	asked := strings.TrimPrefix(r.URL.Path, Path)
	if !digest.Valid(asked) {
		return fault.New(fault.NotFound, "the address must end with sha256: and 64 hexadecimal digits")
	}
	leave, err := s.room.enter(of.Node)
	if err != nil {
		return err
	}
	defer leave()
	p, err := s.find(ctx, of, asked)
	if err != nil {
		return err
	}
	wanted, err := rangeOf(r, p)
	if err != nil {
		w.Header().Set("Content-Range", "bytes */"+strconv.FormatInt(p.size, 10))
		s.refuse(ctx, w, err, http.StatusRequestedRangeNotSatisfiable)
		return nil
	}
	if r.Method == http.MethodHead {
		wanted.head(w, p)
		return nil
	}
	return s.send(ctx, w, p, wanted)
}

// bearer is the token that the request shows.
func bearer(r *http.Request) string {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(text)
}

// send asks the source and passes on what it gives.
func (s *Service) send(ctx context.Context, w http.ResponseWriter, p *part, wanted span) error {
	credential, err := s.credential(ctx, &p.from)
	if err != nil {
		return err
	}
	session, err := s.Reach.Open(ctx, p.from.Kind, p.from.Region, p.ref, credential)
	if err != nil {
		return s.sourceFailed(ctx, err)
	}
	defer session.Close()
	body, done, err := s.body(ctx, session, p, wanted.from)
	if err != nil {
		return err
	}
	defer done()
	s.stream(ctx, w, p, wanted, body)
	return nil
}

// sourceFailed is what a node is told of a source that does not give what it should. Which source it is, and what it said,
// is for the log.
func (s *Service) sourceFailed(ctx context.Context, err error) error {
	if fault.Is(err, fault.DialRefused) {
		s.note(ctx, slog.LevelWarn, "an artifact's source may not be reached", err)
		return fault.New(fault.DialRefused, "the operator does not allow the platform to reach the artifact's source")
	}
	if errors.Is(err, fetch.ErrNotFound) {
		return fault.New(fault.ArtifactUnavailable, "the artifact's source does not have this part any more").Because(err)
	}
	s.note(ctx, slog.LevelWarn, "an artifact's source does not answer as it should", err)
	return fault.New(fault.Unavailable, "the artifact's source does not give it just now; try again").Because(err)
}

// refuse answers a fault in the platform's envelope; status 0 is the fault's own.
func (s *Service) refuse(ctx context.Context, w http.ResponseWriter, err error, status int) {
	refused := fault.From(err)
	if refused.Code == fault.Internal {
		s.note(ctx, slog.LevelError, "a part of an artifact could not be delivered", err)
	}
	if status == 0 {
		status = refused.HTTPStatus()
	}
	header := w.Header()
	header.Set("Content-Type", "application/json; charset=utf-8")
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		header.Set("Retry-After", strconv.Itoa(int(comeBack/time.Second)))
	case http.StatusUnauthorized:
		header.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(status)
	reasons := refused.Reasons
	if reasons == nil {
		reasons = []fault.Reason{}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{ // the caller may have gone
		"message": refused.Message,
		"extensions": map[string]any{
			"code": refused.Code, "correlation_id": transport.CorrelationID(ctx), "retryable": refused.CanRetry(), "reasons": reasons,
		},
	}}})
}

func (s *Service) note(ctx context.Context, level slog.Level, message string, err error) {
	if s.Log != nil {
		s.Log.Log(ctx, level, message, "error", err, "correlation_id", transport.CorrelationID(ctx))
	}
}
