package authz

import (
	"context"
	"sync"
)

// About collects what a request turns out to be about: the object of the first permission that it needs, and the
// instance where a later one names it. It is for logs, and decides nothing.
type About struct {
	mu     sync.Mutex
	object Object
}

type aboutKey struct{}

// WithAbout returns a context in which actors note the objects that permissions are required on.
func WithAbout(ctx context.Context, about *About) context.Context {
	return context.WithValue(ctx, aboutKey{}, about)
}

// AboutOf returns what the request of ctx was found to be about so far; the zero Object when that is not known.
func AboutOf(ctx context.Context) Object {
	about, ok := ctx.Value(aboutKey{}).(*About)
	if !ok {
		return Object{}
	}
	about.mu.Lock()
	defer about.mu.Unlock()
	return about.object
}

// Noting returns the actor for one request: it notes in ctx's About the objects that permissions are required on. An
// actor is shared by requests, so it is a copy where ctx has an About.
func Noting(ctx context.Context, actor *Actor) *Actor {
	about, ok := ctx.Value(aboutKey{}).(*About)
	if !ok || actor == nil {
		return actor
	}
	noting := *actor
	noting.about = about
	return &noting
}

// Note notes in ctx's About that the request needs a permission on the object, where a kept answer skips Require.
func Note(ctx context.Context, object Object) {
	if about, ok := ctx.Value(aboutKey{}).(*About); ok {
		about.note(object)
	}
}

// note keeps the first object that belongs to a tenant. A later one of the same tenant, and of the project if it is
// known, replaces it if only the later one names a project, an instance or, for the same instance, its app.
func (a *About) note(object Object) {
	if a == nil || object.TenantID == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.object
	within := object.TenantID == known.TenantID && (known.ProjectID == "" || object.ProjectID == known.ProjectID)
	says := known.ProjectID == "" && object.ProjectID != "" || known.InstanceID == "" && object.InstanceID != "" ||
		known.InstanceID == object.InstanceID && known.AppSlug == "" && object.AppSlug != ""
	if known.TenantID == "" || within && says {
		a.object = object
	}
}
