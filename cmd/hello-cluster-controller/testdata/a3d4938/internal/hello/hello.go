// Package hello is the app hello-cluster: one process for each member, kept alive by the node's
// agent, work that members do beside it, and everything that can be done to a cluster while it
// works: it grows, drains, loses and replaces members, and changes its version one member at a time.
package hello

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// component is the only kind of member; process is what runs in each.
const (
	component = "peer"
	process   = "peer"
)

// Config is an instance's configuration.
type Config struct {
	// Greeting is what a peer says before a name.
	Greeting string `json:"greeting"`
}

// App returns the app described by this manifest.
func App(manifest []byte) (adapter.App, error) {
	app, err := adapter.FromManifest(manifest, map[string]adapter.ActionFunc{
		"hello.say": say, "hello.list": list, "work.start": startWork, "work.list": listWork,
	})
	app.Operations = map[adapter.Kind]adapter.OperationFunc{
		adapter.InstanceCreate:       create,
		adapter.InstanceUpgrade:      change,
		adapter.InstanceRollback:     change,
		adapter.InstanceDecommission: decommission,
		adapter.MembersAdd:           add,
		adapter.MemberDrain:          drain,
		adapter.MemberCordon:         cordon,
		adapter.MemberUncordon:       uncordon,
		adapter.MemberLabel:          label,
		adapter.MemberRemove:         remove,
		adapter.MemberReplace:        replace,
		adapter.MemberRecover:        recoverMembers,
	}
	app.Check = func(_ context.Context, d adapter.Dispatch) error { return check(app.Components, d) }
	app.Plan = plan
	app.Observe = observe
	return app, err
}

// check refuses what the app does not know or could not survive, before anything is done.
func check(components []adapter.Component, d adapter.Dispatch) error {
	for i, member := range d.Members {
		if member.ComponentKey != component {
			return adapter.Reject("UNKNOWN_COMPONENT", fmt.Sprintf("members[%d].componentKey", i), "hello-cluster has no component %q", member.ComponentKey)
		}
	}
	if d.Kind != adapter.InstanceDecommission {
		if err := checkCounts(components, d.Instance.Components); err != nil {
			return err
		}
	}
	return d.CheckChange()
}

// checkCounts holds the counts after the change against the bounds.
func checkCounts(components []adapter.Component, counts []adapter.ComponentCount) error {
	for i, count := range counts {
		path := fmt.Sprintf("instance.components[%d]", i)
		at := slices.IndexFunc(components, func(c adapter.Component) bool { return c.Key == count.Key })
		switch {
		case at < 0:
			return adapter.Reject("UNKNOWN_COMPONENT", path+".key", "hello-cluster has no component %q", count.Key)
		case count.Count < components[at].Min:
			return adapter.Reject("BELOW_MINIMUM", path+".count", "%d peers would be left, and %d are needed", count.Count, components[at].Min)
		case count.Count > components[at].Max:
			return adapter.Reject("ABOVE_MAXIMUM", path+".count", "%d peers are more than %d", count.Count, components[at].Max)
		}
	}
	return nil
}

func name(peer adapter.Member) string { return fmt.Sprintf("peer-%d", peer.Index) }

func names(peers []adapter.Member) string {
	var list []string
	for _, peer := range peers {
		list = append(list, name(peer))
	}
	return strings.Join(list, ", ")
}

// without returns the peers that are not among those left out.
func without(peers, out []adapter.Member) []adapter.Member {
	return slices.DeleteFunc(slices.Clone(peers), func(m adapter.Member) bool {
		return slices.ContainsFunc(out, func(o adapter.Member) bool { return o.ID == m.ID })
	})
}
