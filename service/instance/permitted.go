package instance

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// entitled loads what policy and entitlement leave of the launch, before the project is locked, and what the
// project has where that is counted.
func (p *launchPlan) entitled(ctx context.Context, t *tx.Tx) (err error) {
	if p.terms, err = overlay.LoadTerms(ctx, t, p.project, p.app.Slug); err != nil {
		return err
	}
	if err := p.terms.Entitled("input.appSlug"); err != nil {
		return err
	}
	if p.project, err = capacity.Hold(ctx, t, p.project, false); err != nil {
		return err
	}
	p.usage = &overlay.Usage{}
	if p.terms.Counts() {
		p.usage, err = overlay.Count(ctx, t, p.project.ID, p.app.Slug, true)
	}
	return err
}

// permitted holds the launch against the entitlement's limits, then against policy, every rule of which is
// named that forbids it.
func (p *launchPlan) permitted() error {
	members, gpus := 0, 0
	for _, count := range p.counts {
		members += count
	}
	for _, allocation := range p.allocations {
		gpus += allocation.GpuCount
	}
	err := p.terms.Entitlement.Within(overlay.Wanted{
		Version: p.stored.Version, Instances: p.usage.AppInstances + 1, Members: members, GPUs: gpus,
		VersionPath: "input.version", InstancesPath: "input.appSlug", MembersPath: "input.components", GPUsPath: "input.allocationIds",
	})
	if err != nil {
		return err
	}
	rules := p.terms.Policy
	answers := []error{
		rules.App(p.app.Slug, "input.appSlug"), rules.Version(p.app.Slug, p.stored.Version, "input.version"),
		rules.Mode(p.in.OperatingMode, p.in.ControlPlaneScope, "input.operatingMode"),
		rules.MembersOfInstance(members, "input.components"), rules.Members(p.usage.Members+members, "input.components"),
		rules.Instances(p.usage.Instances+1, "input.projectId"),
		rules.GPUs(p.usage.GPUs, "input.allocationIds"), rules.HourlyCost(p.usage.Spending, "input.allocationIds"),
	}
	for _, artifact := range p.manifest.Artifacts {
		answers = append(answers, rules.Source(artifact.Ref, "input.version"))
	}
	for i, allocation := range p.allocations {
		path := fmt.Sprintf("input.allocationIds.%d", i)
		answers = append(answers, rules.Region(allocation.Region, path), rules.SKU(allocation.Sku, path))
	}
	return policy.Join(answers...)
}

// refusedByPolicy records that policy or entitlement refused a launch, and passes every error on.
func refusedByPolicy(t *tx.Tx, project *db.Project, app *db.App, err error) error {
	key, unknown := authz.FamilyKey(app.PermissionFamily, "instance.create")
	if unknown != nil {
		return unknown
	}
	return audit.RefusedByPolicy(t, "launchInstance", key, authz.Object{TenantID: project.TenantID, ProjectID: project.ID}, project.ID, err)
}
