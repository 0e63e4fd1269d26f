package verdict

import (
	"context"

	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/overlay"
)

// launchEntitled refuses a project without an entitlement, then locks the project and counts what it has, where that is
// limited.
func (v *Verdicts) launchEntitled(ctx context.Context, t *tx.Tx) (err error) {
	if err := v.Terms.Entitled("input.appSlug"); err != nil {
		return err
	}
	if v.Project, err = capacity.Hold(ctx, t, v.Project, false); err != nil {
		return err
	}
	v.usage = &overlay.Usage{}
	if v.Terms.Counts() {
		v.usage, err = overlay.Count(ctx, t, v.Project.ID, v.Instance.AppSlug, v.ForUpdate())
	}
	return err
}

// launchPermitted checks the launch against the entitlement's limits, then against policy; every rule of policy that
// forbids it is named. The budgets come last.
func (v *Verdicts) launchPermitted(ctx context.Context, t *tx.Tx) error {
	app, version := v.Instance.AppSlug, v.Target.Version
	members := 0
	for _, count := range v.Counts {
		members += count
	}
	err := v.Terms.Entitlement.Within(overlay.Wanted{
		Version: version, Instances: v.usage.AppInstances + 1, Members: members, GPUs: gpusOf(v.Afterwards()),
		VersionPath: "input.version", InstancesPath: "input.appSlug", MembersPath: "input.components",
		GPUsPath: v.capacityPath(),
	})
	if err != nil {
		return err
	}
	rules := v.Terms.Policy
	answers := []error{
		rules.App(app, "input.appSlug"), rules.Version(app, version, "input.version"),
		rules.Mode(v.Launch.OperatingMode, v.Launch.ControlPlaneScope, "input.operatingMode"),
		rules.MembersOfInstance(members, "input.components"),
		rules.Members(v.usage.Members+members, "input.components"),
		rules.Instances(v.usage.Instances+1, "input.projectId"),
		rules.GPUs(v.usage.GPUs, v.capacityPath()), rules.HourlyCost(v.usage.Spending, v.capacityPath()),
	}
	answers = append(answers, ofManifest(rules, v.Next, "input.version")...)
	if err := policy.Join(append(answers, v.placesPermitted()...)...); err != nil {
		return err
	}
	return v.affordable(ctx, t, v.capacityPath())
}
