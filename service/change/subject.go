package change

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Subject is a request with what it is about: located and authorised, not yet locked.
type Subject struct {
	*Request
	Rule Rule
	// Instance is what is changed. That of a launch is a draft without an id until the launch is committed.
	Instance *db.Instance
	// Member is the named one; nil when the request names an instance or several members.
	Member *db.Member

	project *db.Project // of a launch: its permission is that of the project
}

// Minted holds the ids that a change creates. An idempotency key stores them for repeats of the request.
type Minted struct {
	Instance  ids.ID `json:",omitempty"` // of a launch
	Operation ids.ID
	Members   []ids.ID // of an addition or a replacement
}

// Mint returns the ids that the request needs.
func (r *Request) Mint() Minted {
	minted := Minted{Operation: ids.New(ids.Operation)}
	count := 0
	switch r.Kind {
	case lifecycle.InstanceCreate:
		minted.Instance = ids.New(ids.Instance)
	case lifecycle.MembersAdd:
		count = r.Count
	case lifecycle.MemberReplace:
		count = 1
	}
	for range count {
		minted.Members = append(minted.Members, ids.New(ids.Member))
	}
	return minted
}

// Object returns what authorisation decides on: the instance, or the project of an instance that does not exist yet.
func (s *Subject) Object() authz.Object {
	return authz.Object{TenantID: s.Instance.TenantID, ProjectID: s.Instance.ProjectID, InstanceID: s.Instance.ID,
		AppSlug: s.Instance.AppSlug}
}

// Key returns the permission key that the change requires.
func (s *Subject) Key() (authz.Key, error) {
	return authz.FamilyKey(s.Instance.PermissionFamily, s.Kind.Effects().Permission)
}

// SubjectID returns the id of what is changed: a member, an instance, or the project of a launch.
func (s *Subject) SubjectID() ids.ID {
	switch {
	case s.MemberID != "":
		return s.MemberID
	case len(s.MemberIDs) > 0:
		return s.Instance.ID
	case s.Launch == nil:
		return s.InstanceID
	case s.Instance.ID == "":
		return s.Launch.ProjectID
	}
	return s.Instance.ID
}

// Locate loads what the request is about, without a lock, and requires its keys. A refusal is audited under the action.
// Faults: NOT_FOUND, FORBIDDEN.
func Locate(ctx context.Context, t *tx.Tx, request *Request, action string) (*Subject, error) {
	s := &Subject{Request: request, Rule: ruleOf(request.Kind)}
	if request.Launch != nil {
		return s, s.locateLaunch(ctx, t, action)
	}
	if err := s.locate(ctx, t, action); err != nil {
		return nil, err
	}
	if s.Scale != nil {
		if err := s.settleScale(); err != nil {
			return nil, err
		}
	}
	return s, s.authorise(t, action)
}

func (s *Subject) locate(ctx context.Context, t *tx.Tx, action string) (err error) {
	instanceID, suffix := s.InstanceID, s.Kind.Effects().Permission
	if len(s.MemberIDs) > 0 {
		if instanceID, err = s.locateSeveral(ctx, t, action); err != nil {
			return err
		}
	}
	if s.MemberID != "" {
		s.Member, err = t.Member.Query().Where(dbmember.ID(s.MemberID)).Only(ctx)
		if db.IsNotFound(err) {
			return audit.Missing(t, action, authz.FamilyKeys(suffix)[0], s.MemberID)
		}
		if err != nil {
			return fmt.Errorf("load member %s: %w", s.MemberID, err)
		}
		instanceID = s.Member.InstanceID
	}
	s.Instance, err = t.Instance.Query().Where(dbinstance.ID(instanceID)).Only(ctx)
	if db.IsNotFound(err) {
		return audit.Missing(t, action, authz.FamilyKeys(suffix)[0], s.SubjectID())
	}
	if err != nil {
		return fmt.Errorf("load instance %s: %w", instanceID, err)
	}
	return nil
}

func (s *Subject) authorise(t *tx.Tx, action string) error {
	key, err := s.Key()
	if err != nil {
		return err
	}
	if err := audit.Require(t, action, key, s.Object(), s.SubjectID()); err != nil || s.Intent == nil {
		return err
	}
	where := authz.Object{TenantID: s.Instance.TenantID, ProjectID: s.Instance.ProjectID}
	return audit.Require(t, action, authz.AllocationCreate, where, s.Instance.ProjectID)
}
