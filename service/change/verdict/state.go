package verdict

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/impact"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// state checks the states of instance, member, open operations, allocations and versions.
func (v *Verdicts) state(ctx context.Context, t *tx.Tx) error {
	for _, rule := range []func() error{v.instanceState, v.inUse, v.scale, v.clash, v.memberState} {
		if err := rule(); err != nil {
			return err
		}
	}
	if v.Hastened != nil {
		return nil
	}
	if v.Rule.Places {
		return v.place(ctx, t)
	}
	if v.Kind == lifecycle.InstanceUpgrade || v.Kind == lifecycle.InstanceRollback {
		return v.chooseVersion(ctx, t)
	}
	return nil
}

func (v *Verdicts) instanceState() error {
	row := v.Instance
	switch {
	case row.ReleasedAt != nil:
		return fault.New(fault.FailedPrecondition, "instance %s was torn down at %s", row.ID,
			row.ReleasedAt.Format("2006-01-02 15:04:05Z")).At(v.SubjectPath())
	case !slices.Contains(v.Rule.Instance, row.Status):
		return fault.New(fault.FailedPrecondition, "the instance is %s, and a %s needs it %s", row.Status, v.Rule.Noun,
			either(v.Rule.Instance)).At(v.SubjectPath())
	}
	return nil
}

// inUse refuses to end a control plane under the projects that are attached to it, unless force was chosen.
func (v *Verdicts) inUse() error {
	if v.Kind != lifecycle.InstanceDecommission || v.Force || len(v.Attached) == 0 {
		return nil
	}
	return impact.InUse(v.Attached, v.SubjectPath())
}

// clash checks the change against the operations that are open on the instance. One that does the same without force is
// hastened by a forced change.
func (v *Verdicts) clash() error {
	inTheWay, superseded := operation.Clash(v.Kind, v.Targets(), v.Open)
	switch {
	case inTheWay != nil && v.Force && !v.Rule.Places && operation.Hastenable(v.Kind, v.Targets(), inTheWay):
		v.Hastened = inTheWay
		return nil
	case inTheWay != nil:
		return operation.InTheWay(inTheWay)
	}
	v.Superseded = superseded
	return nil
}

// Targets returns the members that the operation acts on; empty for the whole instance.
func (v *Verdicts) Targets() []ids.ID {
	switch {
	case v.Kind == lifecycle.MembersAdd:
		return v.Minted.Members
	case v.Kind == lifecycle.MemberRemove:
		return idsOf(v.Going)
	case v.MemberID != "":
		return []ids.ID{v.MemberID}
	}
	return nil
}

func idsOf(members []*db.Member) []ids.ID {
	list := make([]ids.ID, len(members))
	for i, member := range members {
		list[i] = member.ID
	}
	return list
}

func (v *Verdicts) memberState() error {
	for _, member := range v.Going {
		if !slices.Contains(v.Rule.Member, member.Status) {
			return v.wrongState(member)
		}
	}
	if v.Member == nil {
		return nil
	}
	status := v.Member.Status
	switch {
	case !slices.Contains(v.Rule.Member, status):
		return v.wrongState(v.Member)
	case v.Kind == lifecycle.MemberCordon && v.Member.Cordoned:
		return fault.New(fault.FailedPrecondition, "the member is cordoned already").At("input.memberId")
	case v.Kind == lifecycle.MemberUncordon && status == lifecycle.MemberActive && !v.Member.Cordoned:
		return fault.New(fault.FailedPrecondition, "the member is %s and not cordoned: it takes work", status).
			At("input.memberId")
	}
	return nil
}

func (v *Verdicts) wrongState(member *db.Member) error {
	who := "the member"
	if v.Member == nil {
		who = fmt.Sprintf("%s %d", member.ComponentKey, member.Ordinal)
	}
	return fault.New(fault.FailedPrecondition, "%s is %s, and a %s needs it %s", who, member.Status, v.Rule.Noun,
		either(v.Rule.Member)).At(v.MemberPath(member.ID))
}

// either joins states for a sentence.
func either[S ~string](states []S) string {
	names := make([]string, len(states))
	for i, state := range states {
		names[i] = string(state)
	}
	return strings.Join(names, " or ")
}

// sameJSON reports whether two documents mean the same.
func sameJSON(a, b json.RawMessage) bool {
	left, err := Canonical(a)
	right, other := Canonical(b)
	return err == nil && other == nil && bytes.Equal(left, right)
}

// Canonical returns a document with sorted members and no spaces; null for none.
func Canonical(document json.RawMessage) (json.RawMessage, error) {
	if len(document) == 0 {
		return json.RawMessage("null"), nil
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}
