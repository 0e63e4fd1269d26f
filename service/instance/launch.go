package instance

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// LaunchInput is what a launch is made from.
type LaunchInput struct {
	ProjectID     ids.ID
	AppSlug       string
	Version       string // empty for the canary that has chosen the project, or else the active one
	Name          string
	AllocationIDs []ids.ID
	Components    []Component // empty for the manifest's defaults
	Config        json.RawMessage
	// OperatingMode is who runs its control plane, and ControlPlaneScope whom that serves; empty for the tenant's
	// own, and for one project.
	OperatingMode     lifecycle.OperatingMode     `json:",omitempty"`
	ControlPlaneScope lifecycle.ControlPlaneScope `json:",omitempty"`
	DeadlineSeconds   int
	Smoke             bool
	Reason            string
	IdempotencyKey    string
}

// Component is how many members of a component are wanted, and where.
type Component struct {
	Key           string
	Count         int
	AllocationIDs []ids.ID // empty for all of the launch's
}

// Started is an accepted change: the instance and the operation that carries it out.
type Started struct {
	Instance  *View
	Operation *operation.View
}

// made is what an idempotency key remembers of a launch.
type made struct{ Instance, Operation ids.ID }

// Launch accepts a launch: the instance, its members bound to the nodes of their allocations, and
// the operation that brings them up. It asks for <family>.instance.create on the project, for
// manifest.smoke as well when a manifest is being tested, and for control_plane.create on the tenant
// when the control plane serves more than the project or is not the tenant's own.
//
// Faults: NOT_FOUND (project, app, version, allocation), NOT_ENTITLED, FAILED_PRECONDITION (no
// launchable version, with reason NOT_IN_CANARY where a canary has not chosen the project or was halted;
// allocation not ready), CONFLICT (allocation in use, name taken), INCOMPATIBLE,
// CONFIG_INVALID with the config's path, LIMIT_EXCEEDED at input.components beyond the project's quota,
// INVALID_ARGUMENT, IDEMPOTENCY_KEY_REUSED.
func (s *Service) Launch(ctx context.Context, in LaunchInput) (*Started, error) {
	in.settle()
	if err := in.check(); err != nil {
		return nil, err
	}
	var out *Started
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		project, app, err := s.authoriseLaunch(ctx, t, in)
		if err != nil {
			return err
		}
		made := made{Instance: ids.New(ids.Instance), Operation: ids.New(ids.Operation)}
		repeated, err := idem.Claim(ctx, t, idem.Key{
			Verb: "launchInstance", TenantID: project.TenantID, ProjectID: project.ID, Value: in.IdempotencyKey, Input: in,
		}, &made)
		if err != nil {
			return err
		}
		if repeated {
			out, err = s.started(ctx, t, made)
			return err
		}
		plan, err := planLaunch(ctx, t, in, project, app)
		if err != nil {
			return refusedByPolicy(t, project, app, err)
		}
		out, err = plan.write(ctx, t, made)
		return err
	})
	return out, err
}

// settle fills in what was left out.
func (in *LaunchInput) settle() {
	if in.OperatingMode == "" {
		in.OperatingMode = lifecycle.ModeTenantDedicated
	}
	if in.ControlPlaneScope == "" {
		in.ControlPlaneScope = lifecycle.ControlPlaneProject
	}
	if len(in.Components) == 0 { // an empty list and none are one input, so that an idempotency key takes either
		in.Components = nil
	}
}

// check refuses input that is wrong by itself.
func (in *LaunchInput) check() error {
	refused := fault.New(fault.InvalidArgument, "the launch is not valid")
	var reasons []fault.Reason
	bad := func(path, message string) {
		reasons = append(reasons, fault.Reason{Code: fault.BadValue, Message: message, Path: path})
	}
	if !namePattern.MatchString(in.Name) {
		bad("input.name", "2 to 40 lower-case letters, digits and hyphens, starting with a letter and not ending with a hyphen")
	}
	if len(in.AllocationIDs) < 1 || len(in.AllocationIDs) > maxAllocations {
		bad("input.allocationIds", fmt.Sprintf("1 to %d allocations", maxAllocations))
	}
	seen := make(map[ids.ID]bool)
	for i, id := range in.AllocationIDs {
		if seen[id] {
			bad(fmt.Sprintf("input.allocationIds.%d", i), "named twice")
		}
		seen[id] = true
	}
	for i, component := range in.Components {
		for j, id := range component.AllocationIDs {
			if !seen[id] {
				bad(fmt.Sprintf("input.components.%d.allocationIds.%d", i, j), "not among the launch's allocations")
			}
		}
	}
	if len(in.Config) > manifest.MaxConfig {
		bad("input.config", fmt.Sprintf("at most %d bytes", manifest.MaxConfig))
	}
	if len(reasons) > 0 {
		return refused.With(reasons...)
	}
	if err := checkReason(in.Reason); err != nil {
		return err
	}
	return operation.CheckDeadline(in.DeadlineSeconds)
}

// authoriseLaunch loads what the permission hangs on and asks for it.
func (s *Service) authoriseLaunch(ctx context.Context, t *tx.Tx, in LaunchInput) (*db.Project, *db.App, error) {
	const action = "launchInstance"
	project, err := projectOf(ctx, t, in.ProjectID)
	if db.IsNotFound(err) {
		return nil, nil, audit.Missing(t, action, authz.AppsInstanceCreate, in.ProjectID)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("load project %s: %w", in.ProjectID, err)
	}
	where := authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
	app, err := appOf(ctx, t, in.AppSlug)
	if db.IsNotFound(err) {
		if authz.RequireAny(t.Actor, where, authz.FamilyKeys("instance.create")...) != nil {
			return nil, nil, audit.Require(t, action, authz.AppsInstanceCreate, where, project.ID)
		}
		return nil, nil, fault.New(fault.NotFound, "there is no app %q", in.AppSlug).At("input.appSlug")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("load app %s: %w", in.AppSlug, err)
	}
	key, err := authz.FamilyKey(app.PermissionFamily, "instance.create")
	if err != nil {
		return nil, nil, err
	}
	if err := audit.Require(t, action, key, where, project.ID); err != nil {
		return nil, nil, err
	}
	if in.OperatingMode != lifecycle.ModeTenantDedicated || in.ControlPlaneScope != lifecycle.ControlPlaneProject {
		if err := audit.Require(t, action, authz.ControlPlaneCreate, authz.Object{TenantID: project.TenantID}, project.TenantID); err != nil {
			return nil, nil, err
		}
	}
	if in.Smoke {
		return project, app, audit.Require(t, action, authz.ManifestSmoke, tests(app, where), project.ID)
	}
	return project, app, nil
}

// tests is where manifest.smoke is asked for: what is not trusted yet runs in the projects of the tenant that publishes it,
// and wherever the platform's staff wants it to.
func tests(app *db.App, where authz.Object) authz.Object {
	if app.PublisherTenantID == nil || *app.PublisherTenantID != where.TenantID {
		return authz.Object{}
	}
	return where
}

// started loads what an earlier use of the idempotency key made.
func (s *Service) started(ctx context.Context, t *tx.Tx, made made) (*Started, error) {
	row, err := t.Instance.Get(ctx, made.Instance)
	if err != nil {
		return nil, fmt.Errorf("load instance %s: %w", made.Instance, err)
	}
	op, err := t.Operation.Get(ctx, made.Operation)
	if err != nil {
		return nil, fmt.Errorf("load operation %s: %w", made.Operation, err)
	}
	return &Started{Instance: &View{Instance: row}, Operation: &operation.View{Operation: op}}, nil
}

// write stores the planned launch.
func (p *launchPlan) write(ctx context.Context, t *tx.Tx, made made) (*Started, error) {
	row, err := p.createInstance(ctx, t, made)
	if tx.Violates(err, "instance_name_live") {
		return nil, fault.New(fault.Conflict, "a live instance named %q exists in the project", p.in.Name).At("input.name")
	}
	if err != nil {
		return nil, fmt.Errorf("create the instance: %w", err)
	}
	if err := p.bind(ctx, t, row); err != nil {
		return nil, err
	}
	if err := p.firstGeneration(ctx, t, row, made.Operation); err != nil {
		return nil, err
	}
	op, err := operation.Create(ctx, t, operation.Draft{
		ID: made.Operation, Kind: lifecycle.InstanceCreate, TenantID: row.TenantID, ProjectID: row.ProjectID, Instance: row,
		AdapterName: row.RuntimeBackend, DeadlineSeconds: p.in.DeadlineSeconds, Reason: p.in.Reason,
		DesiredChange: map[string]any{"components": p.counts}, CorrelationID: t.Request.CorrelationID,
	})
	if err != nil {
		return nil, err
	}
	if err := p.announce(ctx, t, row, op); err != nil {
		return nil, err
	}
	return &Started{Instance: &View{Instance: row}, Operation: &operation.View{Operation: op}}, nil
}

func (p *launchPlan) createInstance(ctx context.Context, t *tx.Tx, made made) (*db.Instance, error) {
	roles, err := p.roles()
	if err != nil {
		return nil, err
	}
	return t.Instance.Create().SetID(made.Instance).SetTenantID(p.project.TenantID).SetProjectID(p.project.ID).
		SetName(p.in.Name).SetAppSlug(p.app.Slug).SetAppVersion(p.stored.Version).SetPermissionFamily(p.app.PermissionFamily).
		SetManifestID(p.stored.ID).SetStatus(lifecycle.InstanceCreated).SetConfig(p.config).SetRoles(roles).
		SetBoundCapacityShape(p.allocations[0].Shape).SetRuntimeBackend(p.stored.AdapterName).SetSmoke(p.in.Smoke).
		SetOperatingMode(string(p.in.OperatingMode)).SetControlPlaneScope(string(p.in.ControlPlaneScope)).
		SetCorrelationID(t.Request.CorrelationID).SetCreatedAt(t.Now).SetUpdatedAt(t.Now).Save(ctx)
}

// bind makes the members and marks the allocations as used.
func (p *launchPlan) bind(ctx context.Context, t *tx.Tx, row *db.Instance) error {
	var members []*db.MemberCreate
	for _, seat := range p.seats {
		members = append(members, t.Member.Create().SetID(ids.New(ids.Member)).SetTenantID(row.TenantID).SetProjectID(row.ProjectID).
			SetInstanceID(row.ID).SetComponentKey(seat.key).SetOrdinal(seat.ordinal).SetStatus(lifecycle.MemberPending).
			SetAllocationID(seat.allocation.ID).SetNillableNodeID(seat.allocation.NodeID).
			SetCorrelationID(row.CorrelationID).SetCreatedAt(t.Now).SetUpdatedAt(t.Now))
	}
	// Ent writes 17 columns a member and PostgreSQL takes 65,535 parameters: 1,000 a statement is safe.
	for len(members) > 0 {
		n := min(len(members), 1_000)
		if err := t.Member.CreateBulk(members[:n]...).Exec(ctx); err != nil {
			return fmt.Errorf("create the members: %w", err)
		}
		members = members[n:]
	}
	_, err := t.Exec(ctx, `UPDATE allocation SET instance_id = $1 WHERE id = ANY ($2)`, row.ID, p.in.AllocationIDs)
	if err != nil {
		return fmt.Errorf("bind the allocations: %w", err)
	}
	return nil
}

// firstGeneration notes what the instance runs, for a rollback to come back to.
func (p *launchPlan) firstGeneration(ctx context.Context, t *tx.Tx, row *db.Instance, by ids.ID) error {
	err := t.Generation.Create().SetID(ids.New(ids.Generation)).SetTenantID(row.TenantID).SetProjectID(row.ProjectID).SetInstanceID(row.ID).
		SetNumber(1).SetManifestID(p.stored.ID).SetAppVersion(p.stored.Version).SetConfig(p.config).SetOperationID(by).SetCreatedAt(t.Now).Exec(ctx)
	if err != nil {
		return fmt.Errorf("note the first generation of %s: %w", row.ID, err)
	}
	return nil
}

// announce writes the events and the audit of an accepted launch.
func (p *launchPlan) announce(ctx context.Context, t *tx.Tx, row *db.Instance, op *db.Operation) error {
	err := event.Append(ctx, t, row,
		event.Draft{Type: lifecycle.EventInstanceRequested, OperationID: op.ID, Message: fmt.Sprintf("%s %s requested", row.AppSlug, row.AppVersion),
			Payload: map[string]any{"name": row.Name, "version": row.AppVersion, "members": len(p.seats),
				"operatingMode": row.OperatingMode, "controlPlaneScope": row.ControlPlaneScope}},
		event.Draft{Type: lifecycle.EventOperationAccepted, OperationID: op.ID, Message: "launch accepted",
			Payload: map[string]any{"kind": op.Kind, "deadline": op.Deadline}})
	if err != nil {
		return err
	}
	key, err := authz.FamilyKey(row.PermissionFamily, "instance.create")
	if err != nil {
		return err
	}
	return audit.Write(ctx, t, audit.Entry{
		Action: "launchInstance", Key: key, Object: object(row), ObjectID: row.ID, Reason: p.in.Reason,
		After: map[string]any{"name": row.Name, "app": row.AppSlug, "version": row.AppVersion, "operation": op.ID, "smoke": row.Smoke,
			"operatingMode": row.OperatingMode, "controlPlaneScope": row.ControlPlaneScope},
	})
}
