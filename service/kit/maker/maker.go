// Package maker says on whose rights a created thing rests: who answers for it, until when they can, and which
// emergency grant it could not have been created without.
package maker

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbbinding "github.com/gpuaas/app-platform/ent/generated/db/rolebinding"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// maxBindings bounds the bindings of one person.
const maxBindings = 1_000

// Source is what a thing rests on; the zero Source is nothing, as for what the platform makes itself.
type Source struct {
	// Maker is the person or service account that answers for it; nil for no one.
	Maker *ids.ID
	// Under is the break-glass binding without which it could not be created; nil for none.
	Under *ids.ID
	// Ends is when the maker can first not create it any more, by the bindings of now; zero for never.
	Ends time.Time
}

// Of returns what a thing rests on that the caller creates: can reports whether an actor may, and the caller may now.
func Of(ctx context.Context, t *tx.Tx, can func(*authz.Actor) bool) (Source, error) {
	switch t.Actor.Kind {
	case authz.KindServiceAccount:
		return Source{Maker: &t.Actor.ID, Ends: t.Actor.ExpiresAt}, nil
	case authz.KindUser:
	default:
		return Source{}, nil
	}
	held, err := t.RoleBinding.Query().Where(dbbinding.UserID(t.Actor.ID), dbbinding.RevokedAtIsNil(),
		dbbinding.Or(dbbinding.ExpiresAtIsNil(),
			dbbinding.ExpiresAtGT(t.Now))).Order(dbbinding.ByExpiresAt()).Limit(maxBindings).All(ctx)
	if err != nil {
		return Source{}, fmt.Errorf("load the roles of %s: %w", t.Actor.ID, err)
	}
	out := Source{Maker: &t.Actor.ID}
	var used []authz.Binding
	used, out.Under = rests(t, held, can)
	out.Ends = authz.Lasts(t.Actor.Subject, used, t.Now, can)
	return out, nil
}

// rests chooses the bindings that are enough: the ordinary ones, or with one of break-glass, the first to end that
// does, or with all of them.
func rests(t *tx.Tx, held []*db.RoleBinding, can func(*authz.Actor) bool) (used []authz.Binding, under *ids.ID) {
	var ordinary, all []authz.Binding
	for _, row := range held {
		all = append(all, binding(row))
		if !emergency(row) {
			ordinary = append(ordinary, binding(row))
		}
	}
	enough := func(bindings []authz.Binding) bool { return can(authz.NewActor(t.Actor.Subject, bindings, nil, t.Now)) }
	if enough(ordinary) {
		return ordinary, nil
	}
	for _, row := range held {
		if with := append(ordinary[:len(ordinary):len(ordinary)], binding(row)); emergency(row) && enough(with) {
			return with, source(row)
		}
		if emergency(row) && under == nil {
			under = source(row)
		}
	}
	return all, under
}

// emergency reports whether a binding was given under break-glass, or by a person who could give it only under one.
func emergency(row *db.RoleBinding) bool { return row.BreakGlass || row.MadeUnder != nil }

// source is the break-glass binding itself.
func source(row *db.RoleBinding) *ids.ID {
	if row.MadeUnder != nil {
		return row.MadeUnder
	}
	return &row.ID
}

func binding(row *db.RoleBinding) authz.Binding {
	return authz.Binding{Role: authz.Role(row.Role), TenantID: rows.Value(row.TenantID),
		ProjectID: rows.Value(row.ProjectID), ExpiresAt: rows.Value(row.ExpiresAt)}
}
