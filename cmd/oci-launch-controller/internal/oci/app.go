package oci

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
)

// component is the only kind of member: what is launched n times.
const component = "replica"

// App returns what runs every launchable app that is published for this adapter. The manifest of the reference app
// gives the bounds and the actions that others may declare too. The directory keeps what is metered.
func App(manifest []byte, dir string) (adapter.App, error) {
	m, err := newMeter(dir)
	if err != nil {
		return adapter.App{}, err
	}
	app, err := adapter.FromManifest(manifest, map[string]adapter.ActionFunc{"logs.read": readLogs,
		"container.restart": m.restart})
	app.Slug = adapter.AnyApp
	// each manifest has its own, which the platform holds it against
	app.ConfigSchema = json.RawMessage(`{"type":"object"}`)
	app.Operations = map[adapter.Kind]adapter.OperationFunc{
		adapter.InstanceCreate:       create,
		adapter.InstanceUpgrade:      change,
		adapter.InstanceRollback:     change,
		adapter.InstanceDecommission: decommission,
		adapter.MembersAdd:           add,
		adapter.MemberDrain:          drain,
		adapter.MemberUncordon:       uncordon,
		adapter.MemberRemove:         remove,
		adapter.MemberReplace:        replace,
		adapter.MemberRecover:        recoverMembers,
	}
	for _, kind := range ending {
		app.Operations[kind] = m.before(app.Operations[kind])
	}
	app.Usage = m.page
	bounds := app.Components
	app.Check = func(_ context.Context, d adapter.Dispatch) error { return check(bounds, d) }
	app.Plan = plan
	app.Observe = observe
	return app, err
}

// starts are the operations that start containers from the manifest.
var starts = []adapter.Kind{
	adapter.InstanceCreate, adapter.InstanceUpgrade, adapter.InstanceRollback, adapter.MembersAdd,
	adapter.MemberReplace,
	adapter.MemberRecover,
}

// check refuses what could not run or could not survive, before anything is done.
func check(bounds []adapter.Component, d adapter.Dispatch) error {
	for i, member := range d.Members {
		if member.ComponentKey != component {
			return adapter.Reject("UNKNOWN_COMPONENT", fmt.Sprintf("members[%d].componentKey", i),
				"a launched app has no component %q", member.ComponentKey)
		}
	}
	if d.Kind != adapter.InstanceDecommission {
		if err := controller.CheckCounts("a launched app", "replicas", bounds, d.Instance.Components); err != nil {
			return err
		}
	}
	if err := d.CheckChange(); err != nil || !slices.Contains(starts, d.Kind) {
		return err
	}
	profile, err := profileOf(d.Instance)
	if err != nil {
		return err
	}
	for i, member := range d.Members {
		if member.Node.GPUs < profile.Resources.GPUs {
			return adapter.Reject("GPUS_MISSING", fmt.Sprintf("members[%d].node.gpus", i),
				"%d GPUs are %d fewer than the %d that a container needs",
				member.Node.GPUs, profile.Resources.GPUs-member.Node.GPUs, profile.Resources.GPUs)
		}
	}
	return nil
}

func name(member adapter.Member) string { return fmt.Sprintf("%s-%d", component, member.Index) }

func names(members []adapter.Member) string {
	var list []string
	for _, member := range members {
		list = append(list, name(member))
	}
	return strings.Join(list, ", ")
}

// settled leaves out members that have failed: they get what is new when they are recovered.
func settled(members []adapter.Member) []adapter.Member {
	return slices.DeleteFunc(slices.Clone(members), func(m adapter.Member) bool {
		return m.Status == string(adapter.MemberFailed)
	})
}
