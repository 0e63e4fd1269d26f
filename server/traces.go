package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/transport"
)

// began prepares what is noted of an operation: its span, and what it turns out to be about.
func (p *platform) began(ctx context.Context) context.Context {
	return p.config.traces().Began(authz.WithAbout(ctx, &authz.About{}))
}

// ended writes an operation's line and ends its span.
func (p *platform) ended(log *telemetry.Log) func(context.Context, *transport.Ended) {
	return func(ctx context.Context, ended *transport.Ended) {
		log.Operation(ctx, ended)
		p.config.traces().Ended(ctx, ended)
	}
}

// vouched returns the trace that the platform issued a request's credential in; "" for none. Only a signed token names
// one: the platform itself vouches for it, so the adapter that was called within a trace continues it, and no caller
// can join the trace of another.
func (p *platform) vouched(r *http.Request) string {
	shown, refused := transport.RequestCredential(r)
	if refused != nil || shown.Source != transport.SourceBearer || strings.HasPrefix(shown.Raw, "gpu_") {
		return ""
	}
	credential, err := tx.ParseCredential(shown.Raw, p.ring, p.db.Now())
	if err != nil {
		return "" // it is refused in its turn
	}
	return credential.Trace()
}
