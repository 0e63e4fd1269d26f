package change

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

// maxScale bounds a component's wanted number of members: no dispatch names more.
const maxScale = 1_024

// Scale is a component's wanted number of members.
type Scale struct {
	// To is how many members it is to have.
	To int
	// Preferred are members that the adapter would have leave first, in its order.
	Preferred []ids.ID
	// From is how many are wanted now, as the instance was located; the kind of the change rests on it.
	From int
}

// checkSeveral notes what is wrong with a list of members, or with the number that a component is to have.
func (r *Request) checkSeveral(wrong *check.Input) {
	if r.Scale != nil && (r.Scale.To < 0 || r.Scale.To > maxScale) {
		wrong.Bad("input.count", "must be 0 to %d", maxScale)
	}
	if r.MemberIDs != nil && (len(r.MemberIDs) == 0 || len(r.MemberIDs) > capacity.MaxCount) {
		wrong.Bad("input.memberIds", "name 1 to %d members", capacity.MaxCount)
	}
	seen := make(map[ids.ID]bool, len(r.MemberIDs))
	for i, id := range r.MemberIDs {
		if seen[id] {
			wrong.Bad(fmt.Sprintf("input.memberIds.%d", i), "is named twice")
		}
		seen[id] = true
	}
}

// locateSeveral returns the instance of the members that the request names: NOT_FOUND at the first that is not one of
// the same instance as the first of them.
func (s *Subject) locateSeveral(ctx context.Context, t *tx.Tx, action string) (ids.ID, error) {
	found, err := t.Member.Query().Where(dbmember.IDIn(s.MemberIDs...)).All(ctx)
	if err != nil {
		return "", fmt.Errorf("load members: %w", err)
	}
	instance := make(map[ids.ID]ids.ID, len(found))
	for _, member := range found {
		instance[member.ID] = member.InstanceID
	}
	first := instance[s.MemberIDs[0]]
	for i, id := range s.MemberIDs {
		switch {
		case instance[id] == "":
			return "", audit.Missing(t, action, authz.FamilyKeys(s.Kind.Effects().Permission)[0], id)
		case instance[id] != first:
			return "", fault.New(fault.NotFound,
				"there is no member %s in instance %s: remove members of one instance at a time",
				id, first).At(fmt.Sprintf("input.memberIds.%d", i))
		}
	}
	return first, nil
}

// settleScale settles what the change is: an addition of what is missing, or a removal of what is too many. The request
// itself stays as it is, since it may be tried again.
func (s *Subject) settleScale() error {
	wanted, err := roles.Wanted(s.Instance)
	if err != nil {
		return err
	}
	settled, scale := *s.Request, *s.Scale
	scale.From = wanted[s.ComponentKey]
	settled.Scale, settled.Count = &scale, scale.To-scale.From
	if settled.Kind = lifecycle.MembersAdd; settled.Count < 0 {
		settled.Kind, settled.Count = lifecycle.MemberRemove, -settled.Count
		settled.AllocationIDs, settled.Intent, settled.Conditions.KeepFailed = nil, nil, false
	}
	if scale.To > scale.From && settled.Intent == nil && len(settled.AllocationIDs) == 0 {
		if settled.Intent, err = s.keptIntent(); err != nil {
			return err
		}
	}
	s.Request, s.Rule = &settled, ruleOf(settled.Kind)
	return nil
}

// keptIntent returns the capacity that the instance's launch chose for further members of the component; nil for none.
func (s *Subject) keptIntent() (*capacity.Want, error) {
	if len(s.Instance.CapacityIntent) == 0 {
		return nil, nil
	}
	var kept map[string]*capacity.Want
	if err := json.Unmarshal(s.Instance.CapacityIntent, &kept); err != nil {
		return nil, fmt.Errorf("read the capacity intent of %s: %w", s.Instance.ID, err)
	}
	return kept[s.ComponentKey], nil
}

// CheckScale refuses an addition by scaling whose places or conditions are wrong by themselves, as that of a mutation
// of its own would be: INVALID_ARGUMENT with the paths.
func (r *Request) CheckScale() error {
	if r.Kind != lifecycle.MembersAdd {
		return nil
	}
	wrong := &check.Input{}
	r.checkAdd(wrong)
	if err := wrong.Err(); err != nil {
		return err
	}
	return r.checkConditions()
}

// loadGoing finds the members that a removal names, by id.
func (f *Facts) loadGoing(ctx context.Context, t *tx.Tx) error {
	if f.Kind != lifecycle.MemberRemove {
		return nil
	}
	if f.Member != nil {
		f.Going = []*db.Member{f.Member}
	}
	for _, id := range f.MemberIDs {
		member, err := f.member(ctx, t, id)
		if err != nil {
			return err
		}
		f.Going = append(f.Going, member)
	}
	slices.SortFunc(f.Going, func(a, b *db.Member) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return nil
}

// MemberPath returns the input field that names a member which is changed.
func (r *Request) MemberPath(id ids.ID) string {
	switch at := slices.Index(r.MemberIDs, id); {
	case at >= 0:
		return fmt.Sprintf("input.memberIds.%d", at)
	case r.Scale != nil:
		return "input.count"
	}
	return "input.memberId"
}
