// Package explain answers who may do what, and why: the rows that give a permission, or the nearest missing one.
package explain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Service explains permissions.
type Service struct{ DB *tx.DB }

// Input is a question: may this subject use this key on this object.
type Input struct {
	// SubjectID is a person, service account, operation or node; nil for the caller.
	SubjectID *ids.ID
	// PermissionKey is the key's name.
	PermissionKey string
	// ObjectID is any typed id; nil for the platform.
	ObjectID *ids.ID
	// Risk is that of the app action that the key is wanted for; nil when the question is not about one.
	Risk *lifecycle.ActionRisk
}

// Explanation is whether a subject may do something, and why.
type Explanation struct {
	// Allowed is what enforcement would say at this moment.
	Allowed bool
	// Subject is the subject of the question.
	Subject authz.Ref
	// PermissionKey and Description name the key.
	PermissionKey, Description string
	// TenantID and ProjectID are the object's; nil where it has none.
	TenantID, ProjectID *ids.ID
	// Because are the rows that give it, at most 100; Missing is what would, at most 20. One of them is empty.
	Because, Missing []*Ground
	// AskWhom are people who can give what is missing, at most 20.
	AskWhom []*authz.Ref
}

// Ground is a row that gives a permission, or comes nearest to giving it.
type Ground struct {
	// ID is unique among all grounds and the same in every answer.
	ID string
	// Kind, RowID, Role and Scope name the row; those that do not apply are empty.
	Kind, RowID, Role, Scope string
	// ExpiresAt is when it ends, or ended; nil for never.
	ExpiresAt *time.Time
	// BreakGlass marks a binding that was given in an emergency.
	BreakGlass bool
	// Message says it to a person.
	Message string
}

// Permission explains whether the subject may use the key on the object, from the rows of this moment, in at most three
// round trips. Every caller may ask about itself; others' rights are shown to holders of identity.binding.read on the
// object's scope. Faults: INVALID_ARGUMENT at input.permissionKey; NOT_FOUND for an object or subject that the caller
// may not know of; FORBIDDEN.
func (s *Service) Permission(ctx context.Context, in Input) (*Explanation, error) {
	key, err := authz.ParseKey(in.PermissionKey)
	if err != nil {
		return nil, fault.From(err).At("input.permissionKey")
	}
	caller, err := s.DB.Read(ctx)
	if err != nil {
		return nil, err
	}
	c := authz.Case{Key: key, Risk: rows.Value(in.Risk), Now: s.DB.Now()}
	who := caller.ID
	if in.SubjectID != nil {
		who = *in.SubjectID
	}
	if err := s.load(ctx, caller, who, rows.Value(in.ObjectID), &c); err != nil {
		return nil, err
	}
	if err := mayAsk(caller, who, &c); err != nil {
		return nil, err
	}
	helpers, err := s.loadBindings(ctx, caller, who, &c)
	if err != nil {
		return nil, err
	}
	return answer(&c, authz.Explain(c), helpers), nil
}

// mayAsk refuses a caller that may not know the answer. About oneself one learns nothing of an object that enforcement
// would hide.
func mayAsk(caller *authz.Actor, who ids.ID, c *authz.Case) error {
	if who != caller.ID {
		return authz.Require(caller, authz.BindingRead, c.Object.TenantID, c.Object.ProjectID)
	}
	own := caller.InstanceID != "" && c.Object.InstanceID == caller.InstanceID || caller.NodeID != "" &&
		c.Object.NodeID == caller.NodeID
	if own || c.Anywhere {
		return nil
	}
	if err := authz.RequireOn(caller, c.Key, c.Object); fault.Is(err, fault.NotFound) {
		return err
	}
	return nil
}

// answer puts a verdict into the words of the contract.
func answer(c *authz.Case, v authz.Verdict, helpers []*authz.Ref) *Explanation {
	out := &Explanation{
		Allowed: v.Allowed(), PermissionKey: c.Key.String(), Description: c.Key.Description(),
		Subject:  authz.Ref{Kind: string(c.Subject.Kind), ID: string(c.Subject.ID), Name: c.Subject.Name},
		TenantID: known(c.Object.TenantID), ProjectID: known(c.Object.ProjectID),
		Because: grounds(c, v.Because), Missing: grounds(c, v.Missing), AskWhom: []*authz.Ref{},
	}
	if !out.Allowed && helpers != nil {
		out.AskWhom = helpers
	}
	return out
}

func grounds(c *authz.Case, from []authz.Ground) []*Ground {
	out := make([]*Ground, len(from))
	for i, g := range from {
		out[i] = &Ground{Kind: string(g.Kind), ID: groundID(c, g), RowID: string(g.ID), Role: string(g.Role),
			Scope: string(g.Scope), Message: g.Message, BreakGlass: g.BreakGlass}
		if !g.ExpiresAt.IsZero() {
			out[i].ExpiresAt = &g.ExpiresAt
		}
	}
	return out
}

// groundID names a ground: a binding's by its row, which is in no other sort of ground; any other by all its fields, as
// one row of a service account gives many keys, and a role that was not given yet has no row.
func groundID(c *authz.Case, g authz.Ground) string {
	if g.Kind == authz.GroundBinding && g.ID != "" {
		return string(g.ID)
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{
		string(g.Kind), string(g.ID), string(g.Role), string(g.Scope), g.Message, string(c.Subject.ID), c.Key.String(),
		string(c.Object.TenantID), string(c.Object.ProjectID), string(c.Object.InstanceID), string(c.Object.NodeID),
	}, "\x00")))
	return "ground-" + hex.EncodeToString(sum[:12])
}

// known is a pointer to an id, nil for the empty one.
func known(id ids.ID) *ids.ID {
	if id == "" {
		return nil
	}
	return &id
}
