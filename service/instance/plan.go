package instance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dballocation "github.com/gpuaas/app-platform/ent/generated/db/allocation"
	dbapp "github.com/gpuaas/app-platform/ent/generated/db/app"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// launchPlan is everything a launch will write, after every rule was asked.
type launchPlan struct {
	in          LaunchInput
	project     *db.Project
	app         *db.App
	terms       *overlay.Terms
	usage       *overlay.Usage // zero when nothing of it is counted
	stored      *db.Manifest
	manifest    *manifest.Manifest
	allocations []*db.Allocation // in the caller's order
	counts      map[string]int
	config      json.RawMessage
	seats       []seat
}

// seat is a member before it has an id.
type seat struct {
	key        string
	ordinal    int
	allocation *db.Allocation
}

func projectOf(ctx context.Context, t *tx.Tx, id ids.ID) (*db.Project, error) {
	return t.Project.Query().Where(dbproject.ID(id)).Only(ctx)
}

func appOf(ctx context.Context, t *tx.Tx, slug string) (*db.App, error) {
	return t.App.Query().Where(dbapp.Slug(slug)).Only(ctx)
}

// planLaunch loads and locks what a launch rests on and asks every rule, in the order in which a
// person would mend things.
func planLaunch(ctx context.Context, t *tx.Tx, in LaunchInput, project *db.Project, app *db.App) (*launchPlan, error) {
	p := &launchPlan{in: in, project: project, app: app}
	for _, step := range []func(context.Context, *tx.Tx) error{p.entitled, p.findManifest, p.lockAllocations} {
		if err := step(ctx, t); err != nil {
			return nil, err
		}
	}
	if err := p.count(); err != nil {
		return nil, err
	}
	if err := p.permitted(); err != nil {
		return nil, err
	}
	if err := fits(manifest.Compatible(p.manifest, shapesOf(p.allocations), p.counts)); err != nil {
		return nil, err
	}
	if err := p.configure(); err != nil {
		return nil, err
	}
	p.place()
	return p, capacity.Members(ctx, t, p.project, len(p.seats), "input.components")
}

// fits is the verdict's refusal with the paths of the launch's own input; the allocations stand in its
// order.
func fits(verdict manifest.Verdict) error {
	for i, reason := range verdict.Reasons {
		if rest, ok := strings.CutPrefix(reason.Path, "allocations"); ok {
			verdict.Reasons[i].Path = "input.allocationIds" + rest
		}
	}
	return verdict.Err()
}

// lockAllocations locks them in the order of their ids, as every verb does, and refuses those that
// cannot be used.
func (p *launchPlan) lockAllocations(ctx context.Context, t *tx.Tx) error {
	locked, err := t.Allocation.Query().Where(dballocation.IDIn(p.in.AllocationIDs...), dballocation.ProjectID(p.project.ID)).
		Order(db.Asc(dballocation.FieldID)).ForUpdate().All(ctx)
	if err != nil {
		return fmt.Errorf("lock the allocations: %w", err)
	}
	found := make(map[ids.ID]*db.Allocation, len(locked))
	for _, allocation := range locked {
		found[allocation.ID] = allocation
	}
	for i, id := range p.in.AllocationIDs {
		allocation := found[id]
		if err := usable(allocation, id, fmt.Sprintf("input.allocationIds.%d", i)); err != nil {
			return err
		}
		p.allocations = append(p.allocations, allocation)
	}
	return nil
}

func usable(allocation *db.Allocation, id ids.ID, path string) error {
	switch {
	case allocation == nil:
		return fault.New(fault.NotFound, "there is no allocation %s in the project", id).At(path)
	case allocation.Status != lifecycle.AllocationReady:
		return fault.New(fault.FailedPrecondition, "allocation %s is %s, not ready", id, strings.ToLower(string(allocation.Status))).At(path)
	case allocation.InstanceID != nil:
		return fault.New(fault.Conflict, "allocation %s is used by instance %s", id, *allocation.InstanceID).At(path)
	}
	return nil
}

func shapesOf(allocations []*db.Allocation) []manifest.AllocationShape {
	shapes := make([]manifest.AllocationShape, len(allocations))
	for i, allocation := range allocations {
		shapes[i] = manifest.AllocationShape{Shape: allocation.Shape, GPUs: allocation.GpuCount}
	}
	return shapes
}

// count is how many members each component gets.
func (p *launchPlan) count() error {
	want := make(map[string]int, len(p.in.Components))
	for i, component := range p.in.Components {
		if _, twice := want[component.Key]; twice {
			return fault.New(fault.InvalidArgument, "component %q is named twice", component.Key).At(fmt.Sprintf("input.components.%d.key", i))
		}
		want[component.Key] = component.Count
	}
	counts, reasons := manifest.Counts(p.manifest, want)
	if len(reasons) > 0 {
		return fault.New(fault.InvalidArgument, "the component counts do not fit the manifest").With(p.in.located(reasons)...)
	}
	p.counts = counts
	return nil
}

// located gives the reasons, which name a component by its key, the path of the input's own list.
func (in *LaunchInput) located(reasons []fault.Reason) []fault.Reason {
	out := fault.Prefixed("input", reasons)
	for i, reason := range reasons {
		at := slices.IndexFunc(in.Components, func(c Component) bool { return reason.Path == "components."+c.Key })
		switch {
		case at < 0:
			out[i].Path = "input.components"
		case reason.Code == fault.UnknownComponent:
			out[i].Path = fmt.Sprintf("input.components.%d.key", at)
		default:
			out[i].Path = fmt.Sprintf("input.components.%d.count", at)
		}
	}
	return out
}

func (p *launchPlan) configure() error {
	config, err := manifest.ApplyDefaults(p.manifest.ConfigSchema, p.in.Config)
	if refused := fault.From(err); err != nil && refused.Code == fault.ConfigInvalid {
		return fault.New(fault.ConfigInvalid, "the configuration does not fit the app's schema").With(fault.Prefixed("input", refused.Reasons)...)
	}
	if err != nil {
		return err
	}
	if reasons := manifest.ValidateConfig(p.manifest.ConfigSchema, config); len(reasons) > 0 {
		return fault.New(fault.ConfigInvalid, "the configuration does not fit the app's schema").With(fault.Prefixed("input", reasons)...)
	}
	p.config = config
	return nil
}

// place spreads each component's members over its allocations in turn, in the manifest's order.
// Where they had better sit is the caller's word; the platform reads no meaning into a component.
func (p *launchPlan) place() {
	chosen := make(map[string][]*db.Allocation)
	for _, component := range p.in.Components {
		for _, id := range component.AllocationIDs {
			at := slices.Index(p.in.AllocationIDs, id)
			chosen[component.Key] = append(chosen[component.Key], p.allocations[at])
		}
	}
	for _, component := range p.manifest.Components {
		allocations := chosen[component.Key]
		if len(allocations) == 0 {
			allocations = p.allocations
		}
		for i := range p.counts[component.Key] {
			p.seats = append(p.seats, seat{key: component.Key, ordinal: i, allocation: allocations[i%len(allocations)]})
		}
	}
}

// roles is the first read model of the components: all asked for, none there.
func (p *launchPlan) roles() (json.RawMessage, error) {
	roles := make([]operation.ComponentCounts, 0, len(p.manifest.Components))
	for _, component := range p.manifest.Components {
		desired := p.counts[component.Key]
		roles = append(roles, operation.ComponentCounts{
			ComponentKey: component.Key, DisplayName: component.DisplayName, Desired: desired,
			Summary: fmt.Sprintf("0 of %d active", desired),
		})
	}
	return json.Marshal(roles)
}
