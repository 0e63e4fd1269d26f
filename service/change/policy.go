package change

import (
	"context"
	"slices"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// ruled says whether policy and entitlement have a say: where members come or another version is led to. Taking
// away, mending and going back are never theirs to refuse.
func (c *Change) ruled() bool { return c.Rule.Places || c.Kind == lifecycle.InstanceUpgrade }

// moves says whether an upgrade leads to another version; a change of config alone leaves the app as it is.
func (c *Change) moves() bool {
	return c.Kind == lifecycle.InstanceUpgrade && c.target != nil && c.target.ID != c.Stored.ID
}

// judgePolicy asks policy once the state allows the change; before that there is nothing that it could judge
// when members come or versions change.
func (c *Change) judgePolicy(ctx context.Context, t *tx.Tx) error {
	switch {
	case c.Terms == nil:
		return c.say(lifecycle.VerdictPolicy, nil)
	case c.verdicts[0].outcome == lifecycle.VerdictRefused:
		c.unasked(lifecycle.VerdictPolicy)
		return nil
	case c.Kind == lifecycle.InstanceUpgrade:
		return c.say(lifecycle.VerdictPolicy, c.versionPermitted())
	}
	usage := &overlay.Usage{}
	if c.Terms.Policy.Counts() {
		var err error
		if usage, err = overlay.Count(ctx, t, c.Project.ID, c.Instance.AppSlug, false); err != nil {
			return err
		}
	}
	return c.say(lifecycle.VerdictPolicy, c.membersPermitted(usage))
}

// versionPermitted asks for the version that an upgrade leads to, and where its artifacts come from.
func (c *Change) versionPermitted() error {
	if !c.moves() {
		return nil
	}
	rules := c.Terms.Policy
	answers := []error{rules.App(c.Instance.AppSlug, "input.instanceId"), rules.Version(c.Instance.AppSlug, c.target.Version, "input.version")}
	for _, artifact := range c.next.Artifacts {
		answers = append(answers, rules.Source(artifact.Ref, "input.version"))
	}
	return policy.Join(answers...)
}

// membersPermitted asks for the members that come and for what they stand on. What was placed for the change is
// among what the project uses already.
func (c *Change) membersPermitted(usage *overlay.Usage) error {
	rules := c.Terms.Policy
	var answers []error
	if c.Kind == lifecycle.MembersAdd {
		answers = append(answers, rules.App(c.Instance.AppSlug, "input.instanceId"),
			rules.MembersOfInstance(len(c.Members)+c.Count, "input.count"), rules.Members(usage.Members+c.Count, "input.count"))
	}
	for i, allocation := range c.comeTo() {
		region, sku := c.allocationPath(i), c.allocationPath(i)
		if c.Intent != nil {
			region, sku = "input.intent.region", "input.intent.sku"
		}
		answers = append(answers, rules.Region(allocation.Region, region), rules.SKU(allocation.Sku, sku))
	}
	if len(c.created) > 0 {
		answers = append(answers, rules.GPUs(usage.GPUs, "input.intent"), rules.HourlyCost(usage.Spending, "input.intent"))
	}
	return policy.Join(answers...)
}

// comeTo are the allocations that the members come to, each once, in the order in which they were named. Of
// several that were placed alike the first stands for all that are of its region and SKU.
func (c *Change) comeTo() (list []*db.Allocation) {
	for _, seat := range c.Seats {
		if !slices.ContainsFunc(list, func(a *db.Allocation) bool {
			return a.ID == seat.Allocation.ID || (c.Intent != nil && a.Region == seat.Allocation.Region && a.Sku == seat.Allocation.Sku)
		}) {
			list = append(list, seat.Allocation)
		}
	}
	return list
}

// entitled holds what the instance would be against the project's entitlement to the app. Without one it
// neither grows nor moves on to another version; a member may always be replaced by one that takes no more.
func (c *Change) entitled() error {
	grows := c.Kind == lifecycle.MembersAdd
	if c.Terms == nil {
		return nil
	}
	if grows || c.moves() {
		if err := c.Terms.Entitled("input.instanceId"); err != nil {
			return err
		}
	}
	want := overlay.Wanted{VersionPath: "input.version", MembersPath: "input.count", GPUsPath: "input." + c.capacityField()}
	if c.moves() {
		want.Version = c.target.Version
	}
	if grows {
		want.Members = len(c.Members) + c.Count
	}
	if more := gpusOf(c.afterwards()); c.Rule.Places && more > c.gpusNow() {
		want.GPUs = more
	}
	return c.Terms.Entitlement.Within(want)
}

// gpusNow are those of the allocations that the instance uses before the change.
func (c *Change) gpusNow() int {
	var used []*db.Allocation
	for _, allocation := range c.Allocations {
		if allocation.InstanceID != nil && *allocation.InstanceID == c.Instance.ID {
			used = append(used, allocation)
		}
	}
	return gpusOf(used)
}

func gpusOf(allocations []*db.Allocation) (n int) {
	for _, allocation := range allocations {
		n += allocation.GpuCount
	}
	return n
}

// capacityField is the input field that names or asks for allocations.
func (c *Change) capacityField() string {
	switch {
	case c.Intent != nil:
		return "intent"
	case c.Kind == lifecycle.MemberReplace:
		return "allocationId"
	}
	return "allocationIds"
}

// refusedByPolicy records that policy or entitlement refused the change, and passes every error on.
func (c *Change) refusedByPolicy(t *tx.Tx, err error) error {
	key, unknown := c.key()
	if unknown != nil {
		return unknown
	}
	return audit.RefusedByPolicy(t, c.idemVerb(), key, object(c.Instance), c.subjectID(), err)
}
