package apphttp

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/endpoint"
	"github.com/gpuaas/app-platform/transport"
)

// key is who has a grant, and of what.
type key struct {
	credential string // its fingerprint
	instance   ids.ID
	endpoint   string
}

// grant is what somebody may reach now. It ends, with every request that uses it, when the right does.
type grant struct {
	target *endpoint.Target
	bearer bool // by a program's own credential
	ctx    context.Context
	end    context.CancelCauseFunc
	forget func()
	idle   *time.Timer
	users  int
}

// grants remembers grants. It is safe for concurrent use.
type grants struct {
	mu    sync.Mutex
	known map[key]*grant
}

// enter returns the caller's grant, and a function that gives it back.
func (h *Handler) enter(r *http.Request, name string, instance ids.ID) (*grant, func(), error) {
	credentials, bearer, err := h.credentials(r, name, instance)
	if err != nil {
		return nil, nil, err
	}
	for _, ctx := range credentials {
		var found *grant
		if found, err = h.grant(ctx, name, instance, bearer); err == nil {
			return found, func() { h.grants.leave(found) }, nil
		}
	}
	return nil, nil, err
}

// credentials reads who calls: a program by its bearer, where that seems to be the platform's, and so never reaches the
// app; else a browser by its cookie. Any other bearer is between the browser and the app.
func (h *Handler) credentials(r *http.Request, name string, instance ids.ID) (all []context.Context, bearer bool,
	err error) {
	if text, ok := transport.Bearer(r.Header.Get("Authorization")); ok && h.Keys.Seems(text) {
		ctx, err := h.Authenticate(r.Context(), transport.Credential{Raw: text, Source: transport.SourceBearer}, r)
		return []context.Context{ctx}, true, err
	}
	openings := h.openings(r)
	if len(openings) == 0 {
		return nil, false, fault.New(fault.Unauthenticated,
			"open this endpoint from the console, or show an access token")
	}
	if err := foreign(r, h.Endpoints.Origin(name, instance)); err != nil {
		return nil, false, err
	}
	for _, secret := range openings {
		all = append(all, tx.WithCredential(r.Context(), tx.OpeningCredential(secret)))
	}
	return all, false, nil
}

// grant returns a remembered grant, or finds out whether there is one.
func (h *Handler) grant(ctx context.Context, name string, instance ids.ID, bearer bool) (*grant, error) {
	credential, _ := tx.CredentialFrom(ctx)
	at := key{credential.Fingerprint(), instance, name}
	if known := h.grants.use(at); known != nil {
		return known, nil
	}
	wanted := endpoint.Wanted{InstanceID: instance, Endpoint: name, Spread: credential.ID()}
	target, err := h.Endpoints.Find(ctx, wanted)
	if err != nil {
		denial.Note(ctx, h.Endpoints.DB, err, endpoint.ConnectAction, string(instance))
		return nil, err
	}
	if !target.Endpoint.Web() {
		return nil, fault.New(fault.NotFound, "endpoint %q speaks %s: use `appctl forward`", name,
			target.Endpoint.Protocol)
	}
	if bearer {
		if err := h.Endpoints.Note(ctx, target, "http"); err != nil {
			return nil, err
		}
	}
	live, end := context.WithCancelCause(context.WithoutCancel(ctx))
	fresh := &grant{target: target, bearer: bearer, ctx: live, end: end, users: 1}
	fresh.forget = h.Sentinel.Watch(ctx, "endpoint "+string(instance)+" "+name, func(ctx context.Context) error {
		again, err := h.Endpoints.Find(ctx, wanted)
		if err == nil && (again.MemberID != target.MemberID || again.NodeID != target.NodeID) {
			h.grants.drop(at, fresh, nil) // it is served elsewhere now; what is open may end by itself
		}
		return err
	}, func(err error) { h.grants.drop(at, fresh, err) })
	return h.grants.add(at, fresh), nil
}

// use returns a remembered grant for one more request; nil for none.
func (g *grants) use(at key) *grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.known[at]
	if known != nil {
		known.users++
		known.rest(nil)
	}
	return known
}

// add remembers a grant that is in use. One that was remembered meanwhile is forgotten: its requests go on.
func (g *grants) add(at key, fresh *grant) *grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	for other, one := range g.known { // any will do: it is found out again
		if len(g.known) < maxGrants {
			break
		}
		if one.users == 0 {
			delete(g.known, other)
			one.forget()
		}
	}
	if fresh.ctx.Err() == nil {
		g.known[at] = fresh
	}
	return fresh
}

// leave notes that a request has ended. A grant that is not used for grantLife is forgotten.
func (g *grants) leave(one *grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one.users--; one.users == 0 {
		one.rest(time.AfterFunc(grantLife, func() { g.retire(one) }))
	}
}

// rest sets the timer that forgets a grant; nil keeps the grant.
func (g *grant) rest(timer *time.Timer) {
	if g.idle != nil {
		g.idle.Stop()
	}
	g.idle = timer
}

// retire forgets a grant unless it is in use.
func (g *grants) retire(one *grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one.users > 0 {
		return
	}
	for at, known := range g.known {
		if known == one {
			delete(g.known, at)
		}
	}
	one.forget()
	one.end(nil)
}

// drop forgets a grant; with an error it has ended, and takes its requests along.
func (g *grants) drop(at key, one *grant, ended error) {
	g.mu.Lock()
	if g.known[at] == one {
		delete(g.known, at)
	}
	g.mu.Unlock()
	if ended != nil {
		one.end(ended)
	}
}
