package change

import (
	"context"
	"fmt"

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
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

// Locked is a subject that does not move until the transaction ends, unless a plan only reads it.
type Locked struct {
	*Subject
	Project *db.Project
	// Terms are what policy and entitlement leave of the change; nil for kinds that neither restricts.
	Terms *overlay.EffectivePolicy
	// forUpdate locks rows as they are loaded.
	forUpdate bool
}

// Lock locks the policy of what it rules, the project when something of it is counted, and the instance; without
// forUpdate, for a plan, only the policy. Of a launch nothing exists yet: its policy and project are locked after its
// idempotency key is claimed, so that a repeat waits for neither.
func (s *Subject) Lock(ctx context.Context, t *tx.Tx, forUpdate bool) (*Locked, error) {
	if s.Launch != nil {
		return &Locked{Subject: s, Project: s.project, forUpdate: forUpdate}, nil
	}
	project, err := t.Project.Query().Where(dbproject.ID(s.Instance.ProjectID)).Only(ctx)
	if err != nil {
		return nil, fmt.Errorf("load project %s: %w", s.Instance.ProjectID, err)
	}
	l := &Locked{Subject: s, Project: project, forUpdate: forUpdate}
	if s.ruled() {
		if l.Terms, err = overlay.LoadTerms(ctx, t, project, s.Instance.AppSlug); err != nil {
			return nil, err
		}
	}
	if !forUpdate {
		return l, nil
	}
	if s.Rule.Places {
		if l.Project, err = capacity.Hold(ctx, t, project, l.Terms.Counts()); err != nil {
			return nil, err
		}
	}
	// The subject stays as it is when the lock fails: the transaction may be tried again.
	locked, err := t.Instance.Query().Where(dbinstance.ID(s.Instance.ID)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock instance %s: %w", s.Instance.ID, err)
	}
	s.Instance = locked
	return l, nil
}

// Planned reports whether the subject gets a plan, or is checked against one: then all that a plan shows must be known.
func (l *Locked) Planned() bool { return !l.forUpdate || l.Asked.PlanHash != "" }

// ForUpdate reports whether the change is carried out, and not only planned.
func (l *Locked) ForUpdate() bool { return l.forUpdate }

// ruled reports whether policy and entitlement restrict the kind: where members come or another version is chosen.
// They never refuse to take away, to repair or to go back.
func (s *Subject) ruled() bool { return s.Rule.Places || s.Kind == lifecycle.InstanceUpgrade }

// Facts are what a change rests on, read and not yet judged.
type Facts struct {
	*Locked
	// Stored is the manifest that the instance runs.
	Stored   *db.Manifest
	Manifest *manifest.Manifest
	// Members are all that are not removed, by id.
	Members []*db.Member
	// Going are those that a removal takes out, by id; of a scaling they are chosen by its verdicts.
	Going       []*db.Member
	Allocations map[ids.ID]*db.Allocation
	Nodes       map[ids.ID]*db.ComputeNode
	// Open are the instance's operations that have not ended.
	Open    []*db.Operation
	Adapter *db.Adapter // nil when it is not registered
	// Wanted is the desired number of members, by component.
	Wanted map[string]int
	// Volumes are those that the members which come get.
	Volumes map[ids.ID]*Volume
	// Attached are the other projects that use its control plane.
	Attached []impact.Attached
}

// Load loads the rest, locked in the order operation, member, allocation. A launch rests on the terms alone: each of
// its rules loads what only it needs, since a refusal spares the reads of those after it.
func (l *Locked) Load(ctx context.Context, t *tx.Tx) (f *Facts, err error) {
	f = &Facts{Locked: l}
	if l.Launch != nil {
		l.Terms, err = overlay.LoadTerms(ctx, t, l.Project, l.Instance.AppSlug)
		return f, err
	}
	if f.Open, err = operation.AllOpen(ctx, t, f.Instance.ID, l.forUpdate); err != nil {
		return nil, err
	}
	if f.Wanted, err = roles.Wanted(f.Instance); err != nil {
		return nil, err
	}
	if f.Attached, err = impact.AttachedTo(ctx, t, f.Instance); err != nil {
		return nil, err
	}
	rest := []func(context.Context, *tx.Tx) error{f.loadMembers, f.LoadAllocations, f.LoadAllNodes, f.loadManifest}
	for _, load := range rest {
		if err := load(ctx, t); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *Facts) loadMembers(ctx context.Context, t *tx.Tx) error {
	query := t.Member.Query().Where(dbmember.InstanceID(f.Instance.ID), dbmember.StatusNEQ(lifecycle.MemberRemoved)).
		Order(db.Asc(dbmember.FieldID))
	if f.forUpdate {
		query.ForUpdate()
	}
	found, err := query.All(ctx)
	if err != nil {
		return fmt.Errorf("load the members of %s: %w", f.Instance.ID, err)
	}
	f.Members = found
	if f.MemberID != "" {
		if f.Member, err = f.member(ctx, t, f.MemberID); err != nil {
			return err
		}
	}
	return f.loadGoing(ctx, t)
}

// member returns one of the members by its id, or one that was removed, perhaps since it was located.
func (f *Facts) member(ctx context.Context, t *tx.Tx, id ids.ID) (*db.Member, error) {
	for _, member := range f.Members {
		if member.ID == id {
			return member, nil
		}
	}
	return t.Member.Get(ctx, id)
}

// LoadAllocations loads the allocations that the request names and those that the instance uses, in the order of their
// ids, in which every verb locks them.
func (f *Facts) LoadAllocations(ctx context.Context, t *tx.Tx) error {
	which := dballocation.IDIn(f.AllocationIDs...)
	if f.Launch == nil {
		which = dballocation.Or(dballocation.InstanceID(f.Instance.ID), which)
	}
	query := t.Allocation.Query().Where(dballocation.ProjectID(f.Instance.ProjectID), which).
		Order(db.Asc(dballocation.FieldID))
	if f.forUpdate {
		query.ForUpdate()
	}
	found, err := query.All(ctx)
	if err != nil {
		return fmt.Errorf("load the allocations of %s: %w", f.SubjectID(), err)
	}
	f.Allocations = make(map[ids.ID]*db.Allocation, len(found))
	for _, allocation := range found {
		f.Allocations[allocation.ID] = allocation
	}
	return nil
}

// LoadAllNodes loads the nodes of members and allocations.
func (f *Facts) LoadAllNodes(ctx context.Context, t *tx.Tx) error {
	var wanted []ids.ID
	for _, member := range f.Members {
		if member.NodeID != nil {
			wanted = append(wanted, *member.NodeID)
		}
	}
	for _, allocation := range f.Allocations {
		if allocation.NodeID != nil {
			wanted = append(wanted, *allocation.NodeID)
		}
	}
	f.Nodes = make(map[ids.ID]*db.ComputeNode)
	return f.LoadNodes(ctx, t, wanted)
}

// LoadNodes adds nodes to the facts.
func (f *Facts) LoadNodes(ctx context.Context, t *tx.Tx, wanted []ids.ID) error {
	found, err := t.ComputeNode.Query().Where(dbnode.IDIn(wanted...)).All(ctx)
	if err != nil {
		return fmt.Errorf("load the nodes of %s: %w", f.Instance.ID, err)
	}
	for _, node := range found {
		f.Nodes[node.ID] = node
	}
	return nil
}

func (f *Facts) loadManifest(ctx context.Context, t *tx.Tx) error {
	var err error
	if f.Stored, err = t.Manifest.Get(ctx, f.Instance.ManifestID); err != nil {
		return fmt.Errorf("load manifest %s: %w", f.Instance.ManifestID, err)
	}
	if f.Manifest, err = manifest.Parse(f.Stored.Document); err != nil {
		return fmt.Errorf("read manifest %s: %w", f.Instance.ManifestID, err)
	}
	f.Adapter, err = t.Adapter.Query().Where(dbadapter.Name(f.Instance.RuntimeBackend)).Only(ctx)
	if err != nil && !db.IsNotFound(err) {
		return fmt.Errorf("load adapter %s: %w", f.Instance.RuntimeBackend, err)
	}
	return nil
}

// NodeStatus returns a node's status; empty when the node is not known.
func (f *Facts) NodeStatus(id *ids.ID) lifecycle.NodeStatus {
	if id == nil || f.Nodes[*id] == nil {
		return ""
	}
	return f.Nodes[*id].Status
}

// Reachable reports whether a node answers now. One that is not known yet counts as reachable.
func (f *Facts) Reachable(id *ids.ID) bool {
	status := f.NodeStatus(id)
	return status == "" || status == lifecycle.NodeOnline
}
