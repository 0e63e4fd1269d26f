// Package hello is the app hello-cluster. Each member runs one process, which the node's agent keeps alive, and work
// beside it. A cluster grows, drains, loses and replaces members, and changes its version one member at a time, all
// while its work goes on.
package hello

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
	"github.com/gpuaas/app-platform/sdk/adapter/usagelog"
)

// component is the only kind of member; process is the name of the process that each member runs.
const (
	component = "peer"
	process   = "peer"
)

// Config is an instance's configuration.
type Config struct {
	// Greeting is what a peer writes before a name.
	Greeting string `json:"greeting"`
}

// App returns the app that the manifest describes. It keeps its usage records under dir.
func App(manifest []byte, dir string) (adapter.App, error) {
	log, err := usagelog.New(filepath.Join(dir, "usage"))
	if err != nil {
		return adapter.App{}, err
	}
	count := counter{log}
	app, err := adapter.FromManifest(manifest, map[string]adapter.ActionFunc{
		"hello.say": count.say, "hello.list": list, "work.start": startWork, "work.list": listWork,
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
	app.Usage = count.usage
	return app, err
}

// check refuses a dispatch that the app does not know or could not survive, before the operation changes anything.
func check(components []adapter.Component, d adapter.Dispatch) error {
	for i, member := range d.Members {
		if member.ComponentKey != component {
			return adapter.Reject("UNKNOWN_COMPONENT", fmt.Sprintf("members[%d].componentKey", i),
				"hello-cluster has no component %q", member.ComponentKey)
		}
	}
	if d.Kind != adapter.InstanceDecommission {
		if err := controller.CheckCounts("hello-cluster", "peers", components, d.Instance.Components); err != nil {
			return err
		}
	}
	return d.CheckChange()
}

func name(peer adapter.Member) string { return fmt.Sprintf("peer-%d", peer.Index) }

func names(peers []adapter.Member) string {
	var list []string
	for _, peer := range peers {
		list = append(list, name(peer))
	}
	return strings.Join(list, ", ")
}

// without returns the peers that are not in out.
func without(peers, out []adapter.Member) []adapter.Member {
	return slices.DeleteFunc(slices.Clone(peers), func(m adapter.Member) bool {
		return slices.ContainsFunc(out, func(o adapter.Member) bool { return o.ID == m.ID })
	})
}
