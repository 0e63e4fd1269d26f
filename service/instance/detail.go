package instance

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// The detail's queries. Each finds its rows from the instance's id alone, so that all of them go
// out in one pipeline before any has answered.
const (
	fromInstance = ` FROM instance WHERE id = $1`
	fromMembers  = ` FROM member WHERE instance_id = $1 AND id > $2 ORDER BY id LIMIT $3`
	fromLast     = ` FROM operation WHERE id = (SELECT last_operation_id FROM instance WHERE id = $1)`
	fromSteps    = ` FROM operation_step
		WHERE operation_id = (SELECT last_operation_id FROM instance WHERE id = $1) ORDER BY ordinal`
	instanceSQL = `SELECT ` + rows.InstanceColumns + fromInstance
	nodesSQL    = `SELECT ` + rows.ComputeNodeColumns + ` FROM compute_node
		WHERE id IN (SELECT node_id FROM member WHERE instance_id = $1) LIMIT 256`
	allocationsSQL = `SELECT ` + rows.AllocationColumns + ` FROM allocation
		WHERE id IN (SELECT allocation_id FROM member WHERE instance_id = $1 AND (status <> 'REMOVED'
			OR EXISTS (SELECT FROM instance WHERE id = $1 AND released_at IS NOT NULL))) ORDER BY id LIMIT 256`
	manifestSQL = `SELECT ` + rows.ManifestColumns + ` FROM manifest
		WHERE id = (SELECT manifest_id FROM instance WHERE id = $1)`
)

// The same of parts of rows; see Brief.
var (
	onPageSQL       = `SELECT ` + onPage.Columns + fromInstance
	briefMembersSQL = `SELECT ` + briefMember.Columns + fromMembers
	briefLastSQL    = `SELECT ` + operation.Brief.Columns + fromLast
	briefStepsSQL   = `SELECT ` + operation.BriefStep.Columns + fromSteps
)

// detail is one read of an instance with its neighbours.
type detail struct {
	id          ids.ID
	want        Want
	view        *View
	members     []*db.Member
	events      []*event.Event
	lost        bool // the events' cursor is of a past that the database does not have
	last        *operation.View
	steps       []*db.OperationStep
	nodes       []*db.ComputeNode
	allocations []*db.Allocation
	manifest    *db.Manifest
}

func (d *detail) queries() ([]tx.Query, error) {
	queries := []tx.Query{d.itself()}
	if args := d.want.Members; args != nil {
		var after ids.ID
		if err := args.Decode(members, &after); err != nil {
			return nil, err
		}
		queries = append(queries, d.itsMembers(after, args.First+1))
	}
	if args := d.want.Events; args != nil {
		after, err := event.ParseInstanceCursor(args.After)
		if err != nil {
			return nil, err
		}
		timeline := event.Timeline
		if d.want.Brief.Events {
			timeline = event.BriefTimeline
		}
		queries = append(queries, timeline(&d.events, &d.lost, d.id, after, args.First+1)...)
	}
	return append(queries, d.others()...), nil
}

func (d *detail) itself() tx.Query {
	if d.want.Brief.Instance {
		return tx.Row(&d.view, scanOnPage, onPageSQL, d.id)
	}
	return tx.Row(&d.view, scan, instanceSQL, d.id)
}

func (d *detail) itsMembers(after ids.ID, limit int) tx.Query {
	if d.want.Brief.Members {
		return tx.Rows(&d.members, briefMember.Scan, briefMembersSQL, d.id, after, limit)
	}
	return tx.Rows(&d.members, rows.Member, `SELECT `+rows.MemberColumns+fromMembers, d.id, after, limit)
}

// others are the queries of the neighbours that have no pages.
func (d *detail) others() (queries []tx.Query) {
	switch {
	case d.want.LastOperation && d.want.Brief.LastOperation:
		queries = append(queries, tx.Row(&d.last, operation.ScanBrief, briefLastSQL, d.id))
	case d.want.LastOperation:
		queries = append(queries, tx.Row(&d.last, operation.Scan, `SELECT `+operation.Columns+fromLast, d.id))
	}
	switch {
	case d.want.Steps && d.want.Brief.Steps:
		queries = append(queries, tx.Rows(&d.steps, operation.BriefStep.Scan, briefStepsSQL, d.id))
	case d.want.Steps:
		queries = append(queries, tx.Rows(&d.steps, rows.OperationStep,
			`SELECT `+rows.OperationStepColumns+fromSteps, d.id))
	}
	if d.want.Nodes {
		queries = append(queries, tx.Rows(&d.nodes, rows.ComputeNode, nodesSQL, d.id))
	}
	if d.want.Allocations {
		queries = append(queries, tx.Rows(&d.allocations, rows.Allocation, allocationsSQL, d.id))
	}
	if d.want.Manifest {
		queries = append(queries, tx.Row(&d.manifest, rows.Manifest, manifestSQL, d.id))
	}
	return queries
}

func (d *detail) loaded() *Loaded {
	loaded := &Loaded{Brief: d.want.Brief}
	if args := d.want.Members; args != nil {
		loaded.Members, loaded.MembersArgs = cutMembers(*args, d.members), *args
	}
	if args := d.want.Events; args != nil {
		loaded.Events, loaded.EventsArgs = cutEvents(*args, d.events), *args
	}
	if d.want.LastOperation && d.last != nil {
		loaded.LastOperation = d.last
		if d.want.Steps {
			d.last.Loaded = orEmpty(d.steps)
		}
	}
	if d.want.Manifest {
		loaded.Manifest = d.manifest
	}
	if d.want.Nodes {
		loaded.Nodes = make(map[ids.ID]*db.ComputeNode, len(d.nodes))
		for _, node := range d.nodes {
			loaded.Nodes[node.ID] = node
		}
	}
	if d.want.Allocations {
		loaded.Allocations = orEmpty(d.allocations)
	}
	return loaded
}

// permitted returns which of the wanted neighbours the actor may read: each requires the same key here as when it is
// read by itself.
func permitted(actor *authz.Actor, row *db.Instance, want Want) Want {
	where := object(row)
	operations, allocations := actor.AllowsOn(authz.OperationRead, where), actor.AllowsOn(authz.AllocationRead, where)
	if seesMembers(actor, row) != nil {
		want.Members = nil
	}
	want.LastOperation = want.LastOperation && operations
	want.Steps = want.Steps && operations
	want.Allocations = want.Allocations && allocations
	want.Nodes = want.Nodes && (allocations || actor.AllowsOn(authz.NodeRead, authz.Object{}))
	want.Manifest = want.Manifest && actor.AllowsAnywhere(authz.ManifestRead)
	return want
}

func orEmpty[T any](rows []T) []T {
	if rows == nil {
		return []T{}
	}
	return rows
}

func cutMembers(args page.Args, found []*db.Member) *page.Page[*db.Member] {
	return page.Cut(args, found, func(m *db.Member) string { return page.Cursor(members, m.ID) })
}

func cutEvents(args page.Args, found []*event.Event) *page.Page[*event.Event] {
	return page.Cut(args, found, func(e *event.Event) string { return e.Cursor })
}

// Members reads the members of an instance by id, which is the order of their creation. It requires
// <family>.instance.read, and <family>.node.read as each member by itself does.
func (s *Service) Members(ctx context.Context, id ids.ID, args page.Args) (*page.Page[*db.Member], error) {
	d := detail{id: id, want: Want{Members: &args}}
	actor, err := s.read(ctx, &d)
	if err != nil {
		return nil, err
	}
	return cutMembers(args, d.members), seesMembers(actor, d.view.Instance)
}

// Events reads the timeline of an instance, oldest first. It requires <family>.instance.read.
func (s *Service) Events(ctx context.Context, id ids.ID, args page.Args) (*page.Page[*event.Event], error) {
	view, err := s.Get(ctx, id, Want{Events: &args})
	if err != nil {
		return nil, err
	}
	return view.Loaded.Events, nil
}

// Allocations reads the allocations of an instance. It requires allocation.read.
func (s *Service) Allocations(ctx context.Context, id ids.ID) ([]*db.Allocation, error) {
	var of *View
	var found []*db.Allocation
	actor, err := s.DB.Read(ctx, tx.Row(&of, scan, instanceSQL, id),
		tx.Rows(&found, rows.Allocation, allocationsSQL, id))
	if err != nil {
		return nil, err
	}
	if of == nil {
		return nil, fault.NoSuch()
	}
	return found, authz.RequireOn(actor, authz.AllocationRead, object(of.Instance))
}

// Member reads a member. It requires <family>.node.read of its instance.
func (s *Service) Member(ctx context.Context, id ids.ID) (*db.Member, error) {
	var member *db.Member
	var of *View
	actor, err := s.DB.Read(ctx,
		tx.Row(&member, rows.Member, `SELECT `+rows.MemberColumns+` FROM member WHERE id = $1`, id),
		tx.Row(&of, scan, `SELECT `+rows.InstanceColumns+
			` FROM instance WHERE id = (SELECT instance_id FROM member WHERE id = $1)`, id))
	if err != nil {
		return nil, err
	}
	if member == nil || of == nil {
		return nil, fault.NoSuch()
	}
	return member, seesMembers(actor, of.Instance)
}

// seesMembers reports whether the actor may read the members of an instance: the one rule of every way to them.
func seesMembers(actor *authz.Actor, row *db.Instance) error {
	key, err := authz.FamilyKey(row.PermissionFamily, "node.read")
	if err != nil {
		return fmt.Errorf("members of instance %s: %w", row.ID, err)
	}
	return authz.RequireOn(actor, key, object(row))
}

// ManyMembers reads members by id; it leaves out those that are missing or hidden. It requires <family>.node.read.
func (s *Service) ManyMembers(ctx context.Context, wanted []ids.ID) (map[ids.ID]*db.Member, error) {
	var found []*db.Member
	var of []*View
	actor, err := s.DB.Read(ctx,
		tx.Rows(&found, rows.Member, `SELECT `+rows.MemberColumns+` FROM member WHERE id = ANY ($1)`, wanted),
		tx.Rows(&of, scan, `SELECT `+rows.InstanceColumns+` FROM instance
			WHERE id IN (SELECT instance_id FROM member WHERE id = ANY ($1))`, wanted))
	if err != nil {
		return nil, err
	}
	readable := make(map[ids.ID]bool, len(of))
	for _, view := range of {
		readable[view.ID] = seesMembers(actor, view.Instance) == nil
	}
	byID := make(map[ids.ID]*db.Member, len(found))
	for _, member := range found {
		if readable[member.InstanceID] {
			byID[member.ID] = member
		}
	}
	return byID, nil
}

// Event reads an event. It requires <family>.instance.read of its instance, or allocation.read for that of an
// allocation that no instance uses.
func (s *Service) Event(ctx context.Context, id ids.ID) (*event.Event, error) {
	var found *event.Event
	var of *View
	actor, err := s.DB.Read(ctx,
		tx.Row(&found, event.Scan, `SELECT `+rows.EventColumns+` FROM app_instance_event WHERE id = $1`, id),
		tx.Row(&of, scan, `SELECT `+rows.InstanceColumns+` FROM instance
			WHERE id = (SELECT instance_id FROM app_instance_event WHERE id = $1)`, id))
	if err != nil {
		return nil, err
	}
	switch {
	case found == nil || found.InstanceID != nil && of == nil:
		return nil, fault.NoSuch()
	case found.InstanceID != nil:
		return found, readable(actor, of.Instance)
	}
	where := authz.Object{TenantID: found.TenantID, ProjectID: found.ProjectID, AllocationID: *found.AllocationID}
	return found, authz.RequireOn(actor, authz.AllocationRead, where)
}
