package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/felixge/httpsnoop"
	"go.opentelemetry.io/otel/trace"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/transport"
)

// Log writes one line for each request. A line has no arguments, headers or bodies, so it holds no secret.
type Log struct {
	// To takes the lines. Required.
	To *slog.Logger
	// Caller returns the request's caller, or nil when the credential named none. Operation needs it.
	Caller func(ctx context.Context) *authz.Actor
	// Metrics counts requests, logged or not; nil for none.
	Metrics *metrics.Set
}

// Operation writes the line of a GraphQL operation. It is a Config.Ended of the transport. What the platform itself
// failed at is a warning.
func (l *Log) Operation(ctx context.Context, ended *transport.Ended) {
	l.Metrics.Request(ctx, ended.Kind, ended.Verbs, ended.Code, ended.Took)
	level := slog.LevelInfo
	if own(ended.Code) {
		level = slog.LevelWarn
	}
	if !l.To.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs, slog.String("correlation_id", transport.CorrelationID(ctx)), TraceID(ctx))
	attrs = append(attrs, slog.String("kind", ended.Kind), slog.String("verb", strings.Join(ended.Verbs, " ")),
		slog.String("code", ended.Code), Milliseconds(ended.Took), slog.Int64("cost", ended.Cost))
	actor := l.Caller(ctx)
	attrs = append(append(attrs, caller(actor)...), about(authz.AboutOf(ctx), actor)...)
	l.To.LogAttrs(ctx, level, "request", attrs...)
}

// caller returns the fields of the caller, and of what it belongs to.
func caller(actor *authz.Actor) []slog.Attr {
	if actor == nil {
		return nil
	}
	return append([]slog.Attr{slog.String("actor_kind", string(actor.Kind)), slog.String("actor_id", string(actor.ID))},
		named("caller_org_id", string(actor.TenantID), "caller_project_id", string(actor.ProjectID))...)
}

// about returns what a request turned out to be about: the object of its first permission. Without an object, a token's
// or a node's request is about what the credential is confined to.
func about(object authz.Object, actor *authz.Actor) []slog.Attr {
	if actor != nil && object == (authz.Object{}) && actor.InstanceID != "" {
		object = authz.Object{TenantID: actor.TenantID, ProjectID: actor.ProjectID, InstanceID: actor.InstanceID}
	}
	if actor != nil && object.NodeID == "" {
		object.NodeID = actor.NodeID
	}
	return append(Context(string(object.TenantID), string(object.ProjectID), object.AppSlug, string(object.InstanceID)),
		named("node_id", string(object.NodeID))...)
}

// Context returns the fields that name whose a line is and what it is about, spelled as everywhere; what is empty is
// left out.
func Context(org, project, app, instance string) []slog.Attr {
	return named("org_id", org, "project_id", project, "app_slug", app, "app_instance_id", instance)
}

// named returns the pairs of name and value that have a value.
func named(pairs ...string) []slog.Attr {
	var attrs []slog.Attr
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			attrs = append(attrs, slog.String(pairs[i], pairs[i+1]))
		}
	}
	return attrs
}

// TraceID returns the id of what is traced in ctx, for a line of a log; empty, and so left out, when nothing is.
func TraceID(ctx context.Context) slog.Attr {
	if at := trace.SpanContextFromContext(ctx); at.IsValid() {
		return slog.String("trace_id", at.TraceID().String())
	}
	return slog.Attr{}
}

// Milliseconds returns a duration to the microsecond, for a line of a log.
func Milliseconds(took time.Duration) slog.Attr {
	return slog.Float64("duration_ms", float64(took.Microseconds())/1000)
}

// Plain writes the line of each request that next answers, by the pattern that served it; except is the pattern whose
// operations have lines of their own. Pages, probes of health and public keys are lines for debugging.
func (l *Log) Plain(next http.Handler, except string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answered := httpsnoop.CaptureMetrics(next, w, r)
		if r.Pattern == except {
			return
		}
		l.Metrics.HTTP(r.Pattern, answered.Code)
		level := slog.LevelDebug
		if strings.Contains(r.Pattern, "/auth/") || strings.Contains(r.Pattern, "/v1/") {
			level = slog.LevelInfo
		}
		l.To.LogAttrs(r.Context(), level, "request",
			slog.String("correlation_id", w.Header().Get(transport.CorrelationHeader)), slog.String("kind", "http"),
			slog.String("verb", r.Pattern), slog.Int("status", answered.Code), Milliseconds(answered.Duration))
	})
}
