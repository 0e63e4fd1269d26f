// Package volumehttp serves the files of volumes to people and programs, by GET, HEAD, PUT and DELETE. service/volume
// decides who may do what; the bytes come from and go to the agent of a node that serves the volume, over its tunnel,
// one stream for each request. An agent's answer is hostile: only known headers of it pass, each checked.
//
// A browser shows the cookie of its login, from a page of ours alone; a program shows its token. A request ends within
// five seconds of the right's end.
package volumehttp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/graph/reach"
	"github.com/gpuaas/app-platform/internal/places"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
	"github.com/gpuaas/app-platform/service/volume"
	"github.com/gpuaas/app-platform/transport"
)

// MaxPerCaller is how many requests of one credential a process serves at once.
const MaxPerCaller = 16

// Handler serves below volumefiles.Prefix. Its fields are set before it is used and not changed.
type Handler struct {
	// Volumes says who may do what, and where. Required.
	Volumes *volume.Service
	// Relay reaches the agents. Required.
	Relay *reach.Relay
	// Sentinel rechecks rights while bytes pass. Required.
	Sentinel *live.Sentinel
	// Authenticate reads a credential, as for the API. Required.
	Authenticate reach.Authenticate
	// Origins are pages besides our own that may use the cookie of a login.
	Origins []string
	// Log takes what must not be answered. Required.
	Log *slog.Logger

	open places.Counter[string] // requests, by credential
}

// ServeHTTP implements http.Handler. A refusal is in the platform's envelope.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := transport.RequestCorrelationID(r)
	header := w.Header()
	header.Set(transport.CorrelationHeader, id)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	ctx := transport.WithCorrelationID(r.Context(), id)
	ctx, err := h.enter(ctx, r)
	if err == nil {
		err = h.serve(ctx, w, r)
	}
	if err != nil {
		h.refuse(ctx, w, err)
	}
}

// enter reads who calls: a program by its token, a page of ours by the cookie of a login.
func (h *Handler) enter(ctx context.Context, r *http.Request) (context.Context, error) {
	shown, refused := transport.RequestCredential(r)
	if refused != nil {
		return ctx, fault.New(fault.Unauthenticated, "%s", refused.Message)
	}
	if shown.Source == transport.SourceCookie && !transport.SameOrigin(r, h.Origins) {
		return ctx, fault.New(fault.Forbidden, "a page of another origin may not reach files")
	}
	return h.Authenticate(ctx, shown, r)
}

// serve returns an error only where nothing has been answered yet.
func (h *Handler) serve(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	asked, err := parse(r)
	if err != nil {
		return err
	}
	leave, err := h.take(ctx)
	if err != nil {
		return err
	}
	defer leave()
	found, err := h.Volumes.OpenFiles(ctx, asked.FilesInput)
	if err != nil {
		return err
	}
	conn, err := h.dial(ctx, found)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	write := found.Spec.Write
	what := "files " + found.Spec.Volume
	if write {
		what += " to write"
	}
	forget := h.Sentinel.Watch(ctx, what, func(ctx context.Context) error {
		return h.Volumes.MayFiles(ctx, asked.VolumeID, write)
	}, func(err error) { cancel(err) })
	defer forget()
	p := &passage{Handler: h, asked: asked, conn: conn, writer: w}
	p.listen(cancel)
	p.pass(r.WithContext(ctx))
	return nil
}

// take takes a place for a request of a credential, which leave gives back.
func (h *Handler) take(ctx context.Context) (leave func(), err error) {
	credential, _ := tx.CredentialFrom(ctx)
	leave, ok := h.open.Take(credential.Fingerprint(), MaxPerCaller)
	if !ok {
		err = fault.New(fault.RateLimited, "this login has %d requests about files open, and may have no more: "+
			"wait until one has ended", MaxPerCaller)
	}
	return leave, err
}

// dial opens a stream to the first node that takes it of those that serve the volume.
func (h *Handler) dial(ctx context.Context, found *volume.Files) (net.Conn, error) {
	spec, err := json.Marshal(found.Spec)
	if err != nil {
		return nil, err
	}
	open := tunnel.Open{Kind: volumefiles.Kind, Spec: spec}
	var conn net.Conn
	for _, node := range found.Places {
		conn, err = h.Relay.Open(ctx, found.TenantID, node, open)
		if err == nil || !fault.Is(err, fault.NodeUnreachable) && !fault.Is(err, fault.Unavailable) {
			break
		}
	}
	return conn, opened(err)
}

// opened says what a node refuses in the words of volumes.
func opened(err error) error {
	refused, ok := fault.As(err)
	if !ok || refused.Code != fault.Unavailable {
		return err
	}
	return fault.New(fault.Unavailable, "the node does not serve the volume now: %s", refused.Message).Retry(true)
}

// refuse answers a fault.
func (h *Handler) refuse(ctx context.Context, w http.ResponseWriter, err error) {
	refused := fault.From(err)
	if refused.Code == fault.Internal {
		h.Log.ErrorContext(ctx, "files of a volume could not be served", "error", err, "correlation_id",
			transport.CorrelationID(ctx))
	}
	if refused.Code == fault.MethodNotAllowed {
		w.Header().Set("Allow", "GET, HEAD, PUT, DELETE")
	}
	denial.Answer(ctx, w, refused, 0)
}

// asked is a request that was read.
type asked struct {
	volume.FilesInput
	folder bool
	part   volumefiles.Part
	// compared says that the platform compares the digest of what passes.
	compared bool
	// address and header are those of the request to the agent.
	address string
	header  http.Header
}

// idle is how long a caller may send or take nothing before the request is cut.
const idle = time.Minute

// maxID bounds the id of a volume in an address, in bytes.
const maxID = 100

// volumeID checks an id before anything is looked up by it.
func volumeID(text string) (ids.ID, error) {
	if len(text) > maxID || !ids.ID(text).Is(ids.Volume) {
		return "", fault.NoSuch()
	}
	return ids.ID(text), nil
}
