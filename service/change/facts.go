package change

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbadapter "github.com/gpuaas/app-platform/ent/generated/db/adapter"
	dballocation "github.com/gpuaas/app-platform/ent/generated/db/allocation"
	dbnode "github.com/gpuaas/app-platform/ent/generated/db/computenode"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/impact"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Change is a request with the facts that it rests on, what the rules say to it, and, once it was
// accepted, what was made of it.
type Change struct {
	*Request
	Rule Rule

	Project *db.Project
	// Terms are what policy and entitlement leave of the change; nil for kinds that they have no say in.
	Terms    *overlay.Terms
	Instance *db.Instance
	// Stored is the manifest that the instance runs.
	Stored   *db.Manifest
	Manifest *manifest.Manifest
	// Member is the one that is named; nil when none is.
	Member *db.Member
	// Members are all that are not removed, by component and number.
	Members     []*db.Member
	Allocations map[ids.ID]*db.Allocation
	Nodes       map[ids.ID]*db.ComputeNode
	Open        []*db.Operation
	Adapter     *db.Adapter
	// Wanted is how many members are asked for now, by component.
	Wanted map[string]int
	// Attached are the other projects that use its control plane.
	Attached []impact.Attached
	// Impact is whom it would touch; nil unless a plan shows it.
	Impact *impact.Impact

	// Seats are the members that come, in order.
	Seats []Seat
	// From and To are the versions of an upgrade or a rollback.
	From, To *operation.Version
	// target is what To names.
	target *db.Manifest
	next   *manifest.Manifest
	// misfit is why the config does not fit what To names; nil when it does.
	misfit error
	// created are allocations that were placed for it.
	created []*db.Allocation
	// superseded are open operations that make way.
	superseded []*db.Operation
	verdicts   []verdict

	// Made are the ids that were minted for it, and Operation is what carries it out.
	Made      Made
	Operation *db.Operation
}

// Seat is a member before it exists.
type Seat struct {
	ID           ids.ID
	ComponentKey string
	Ordinal      int
	Allocation   *db.Allocation
}

// Made is what an idempotency key remembers of a change.
type Made struct {
	Operation ids.ID
	Members   []ids.ID
}

// object is what authorisation looks at in an instance.
func object(row *db.Instance) authz.Object {
	return authz.Object{TenantID: row.TenantID, ProjectID: row.ProjectID, InstanceID: row.ID}
}

// key is the permission key that the change asks for.
func (c *Change) key() (authz.Key, error) {
	return authz.FamilyKey(c.Instance.PermissionFamily, c.Kind.Effects().Permission)
}

// subjectID is the id of what is changed.
func (r *Request) subjectID() ids.ID {
	if r.MemberID != "" {
		return r.MemberID
	}
	return r.InstanceID
}

// find loads what is changed, without a lock, and asks for the keys.
func (c *Change) find(ctx context.Context, t *tx.Tx, action string) error {
	instanceID, suffix := c.InstanceID, c.Kind.Effects().Permission
	var err error
	if c.MemberID != "" {
		c.Member, err = t.Member.Query().Where(dbmember.ID(c.MemberID)).Only(ctx)
		if db.IsNotFound(err) {
			return audit.Missing(t, action, authz.FamilyKeys(suffix)[0], c.MemberID)
		}
		if err != nil {
			return fmt.Errorf("load member %s: %w", c.MemberID, err)
		}
		instanceID = c.Member.InstanceID
	}
	c.Instance, err = t.Instance.Query().Where(dbinstance.ID(instanceID)).Only(ctx)
	if db.IsNotFound(err) {
		return audit.Missing(t, action, authz.FamilyKeys(suffix)[0], c.subjectID())
	}
	if err != nil {
		return fmt.Errorf("load instance %s: %w", instanceID, err)
	}
	return c.authorise(t, action)
}

func (c *Change) authorise(t *tx.Tx, action string) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	if err := audit.Require(t, action, key, object(c.Instance), c.subjectID()); err != nil || c.Intent == nil {
		return err
	}
	where := authz.Object{TenantID: c.Instance.TenantID, ProjectID: c.Instance.ProjectID}
	return audit.Require(t, action, authz.AllocationCreate, where, c.Instance.ProjectID)
}

// lock locks the policy of what it rules, the project when something of it is counted here, and the instance.
func (c *Change) lock(ctx context.Context, t *tx.Tx, locked bool) error {
	project, err := t.Project.Query().Where(dbproject.ID(c.Instance.ProjectID)).Only(ctx)
	if err != nil {
		return fmt.Errorf("load project %s: %w", c.Instance.ProjectID, err)
	}
	c.Project, c.Terms = project, nil
	if c.ruled() {
		if c.Terms, err = overlay.LoadTerms(ctx, t, project, c.Instance.AppSlug); err != nil {
			return err
		}
	}
	if !locked {
		return nil
	}
	if c.Rule.Places {
		if c.Project, err = capacity.Hold(ctx, t, project, c.Terms.Counts()); err != nil {
			return err
		}
	}
	c.Instance, err = t.Instance.Query().Where(dbinstance.ID(c.Instance.ID)).ForUpdate().Only(ctx)
	if err != nil {
		return fmt.Errorf("lock instance %s: %w", c.Instance.ID, err)
	}
	return nil
}

// load loads the rest, locked on request in the order operation, member, allocation.
func (c *Change) load(ctx context.Context, t *tx.Tx, locked bool) (err error) {
	if c.Open, err = operation.AllOpen(ctx, t, c.Instance.ID, locked); err != nil {
		return err
	}
	if c.Wanted, err = operation.Wanted(c.Instance); err != nil {
		return err
	}
	if c.Attached, err = impact.AttachedTo(ctx, t, c.Instance); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *tx.Tx, bool) error{c.loadMembers, c.loadAllocations} {
		if err := step(ctx, t, locked); err != nil {
			return err
		}
	}
	if err := c.loadNodes(ctx, t); err != nil {
		return err
	}
	return c.loadManifest(ctx, t)
}

func (c *Change) loadMembers(ctx context.Context, t *tx.Tx, locked bool) error {
	query := t.Member.Query().Where(dbmember.InstanceID(c.Instance.ID), dbmember.StatusNEQ(lifecycle.MemberRemoved)).
		Order(db.Asc(dbmember.FieldID))
	if locked {
		query.ForUpdate()
	}
	found, err := query.All(ctx)
	if err != nil {
		return fmt.Errorf("load the members of %s: %w", c.Instance.ID, err)
	}
	c.Members = found
	for _, member := range found {
		if member.ID == c.MemberID {
			c.Member = member
			return nil
		}
	}
	if c.MemberID == "" {
		return nil
	}
	c.Member, err = t.Member.Get(ctx, c.MemberID) // removed, perhaps since it was found
	return err
}

func (c *Change) loadAllocations(ctx context.Context, t *tx.Tx, locked bool) error {
	query := t.Allocation.Query().Where(dballocation.ProjectID(c.Instance.ProjectID),
		dballocation.Or(dballocation.InstanceID(c.Instance.ID), dballocation.IDIn(c.AllocationIDs...))).Order(db.Asc(dballocation.FieldID))
	if locked {
		query.ForUpdate()
	}
	found, err := query.All(ctx)
	if err != nil {
		return fmt.Errorf("load the allocations of %s: %w", c.Instance.ID, err)
	}
	c.Allocations = make(map[ids.ID]*db.Allocation, len(found))
	for _, allocation := range found {
		c.Allocations[allocation.ID] = allocation
	}
	return nil
}

// loadNodes loads the nodes of members and allocations.
func (c *Change) loadNodes(ctx context.Context, t *tx.Tx) error {
	var wanted []ids.ID
	for _, member := range c.Members {
		if member.NodeID != nil {
			wanted = append(wanted, *member.NodeID)
		}
	}
	for _, allocation := range c.Allocations {
		if allocation.NodeID != nil {
			wanted = append(wanted, *allocation.NodeID)
		}
	}
	found, err := t.ComputeNode.Query().Where(dbnode.IDIn(wanted...)).All(ctx)
	if err != nil {
		return fmt.Errorf("load the nodes of %s: %w", c.Instance.ID, err)
	}
	c.Nodes = make(map[ids.ID]*db.ComputeNode, len(found))
	for _, node := range found {
		c.Nodes[node.ID] = node
	}
	return nil
}

func (c *Change) loadManifest(ctx context.Context, t *tx.Tx) error {
	var err error
	if c.Stored, err = t.Manifest.Get(ctx, c.Instance.ManifestID); err != nil {
		return fmt.Errorf("load manifest %s: %w", c.Instance.ManifestID, err)
	}
	if c.Manifest, err = manifest.Parse(c.Stored.Document); err != nil {
		return fmt.Errorf("read manifest %s: %w", c.Instance.ManifestID, err)
	}
	c.Adapter, err = t.Adapter.Query().Where(dbadapter.Name(c.Instance.RuntimeBackend)).Only(ctx)
	if err != nil && !db.IsNotFound(err) {
		return fmt.Errorf("load adapter %s: %w", c.Instance.RuntimeBackend, err)
	}
	return nil
}

// reachable says whether a node answers now; one that is not known yet does.
func (c *Change) reachable(node *ids.ID) bool {
	return node == nil || c.Nodes[*node] == nil || c.Nodes[*node].Status == lifecycle.NodeOnline
}
