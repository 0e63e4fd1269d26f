package change

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/impact"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// state asks what the states of instance, member, open operations, allocations and versions say.
func (c *Change) state(ctx context.Context, t *tx.Tx) error {
	for _, rule := range []func() error{c.instanceState, c.inUse, c.clash, c.memberState} {
		if err := rule(); err != nil {
			return err
		}
	}
	if c.Rule.Places {
		return c.place(ctx, t)
	}
	if c.Kind == lifecycle.InstanceUpgrade || c.Kind == lifecycle.InstanceRollback {
		return c.chooseVersion(ctx, t)
	}
	return nil
}

func (c *Change) instanceState() error {
	row := c.Instance
	switch {
	case row.ReleasedAt != nil:
		return fault.New(fault.FailedPrecondition, "instance %s was torn down at %s", row.ID, row.ReleasedAt.Format("2006-01-02 15:04:05Z")).At(c.subject())
	case !slices.Contains(c.Rule.Instance, row.Status):
		return fault.New(fault.FailedPrecondition, "the instance is %s, and a %s needs it %s", row.Status, c.Rule.Noun, either(c.Rule.Instance)).At(c.subject())
	}
	return nil
}

// inUse refuses to end a control plane under the projects that are attached to it, unless force was chosen.
func (c *Change) inUse() error {
	if c.Kind != lifecycle.InstanceDecommission || c.Force || len(c.Attached) == 0 {
		return nil
	}
	return impact.InUse(c.Attached, c.subject())
}

// clash holds it against the operations that are open on the instance.
func (c *Change) clash() error {
	inTheWay, superseded := operation.Clash(c.Kind, c.targets(), c.Open)
	if inTheWay != nil {
		return operation.InTheWay(inTheWay)
	}
	c.superseded = superseded
	return nil
}

func (c *Change) memberState() error {
	if c.Member == nil {
		return nil
	}
	status := c.Member.Status
	switch {
	case !slices.Contains(c.Rule.Member, status):
		return fault.New(fault.FailedPrecondition, "the member is %s, and a %s needs it %s", status, c.Rule.Noun, either(c.Rule.Member)).At("input.memberId")
	case c.Kind == lifecycle.MemberCordon && c.Member.Cordoned:
		return fault.New(fault.FailedPrecondition, "the member is cordoned already").At("input.memberId")
	case c.Kind == lifecycle.MemberUncordon && status == lifecycle.MemberActive && !c.Member.Cordoned:
		return fault.New(fault.FailedPrecondition, "the member is %s and not cordoned: it takes work", status).At("input.memberId")
	}
	return nil
}

// either lists states for a sentence.
func either[S ~string](states []S) string {
	names := make([]string, len(states))
	for i, state := range states {
		names[i] = string(state)
	}
	return strings.Join(names, " or ")
}

// needsReason says whether the state of things asks for a reason.
func (c *Change) needsReason() bool {
	return c.Rule.Reason != "" && c.Member != nil && c.Member.Status == lifecycle.MemberActive && c.Member.Health == lifecycle.HealthHealthy
}

// sameJSON says whether two documents mean the same.
func sameJSON(a, b json.RawMessage) bool {
	left, err := canonical(a)
	right, other := canonical(b)
	return err == nil && other == nil && bytes.Equal(left, right)
}

// canonical is a document with sorted members and no spaces; null for none.
func canonical(document json.RawMessage) (json.RawMessage, error) {
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
