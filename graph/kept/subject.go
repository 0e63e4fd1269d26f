package kept

import (
	"cmp"

	"github.com/gpuaas/app-platform/graph/plain"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
)

// covered are the fields that lead to objects whose every plain field is in the rows that a proof is about, or in
// the object above.
var covered = map[string]bool{
	"Query.instance": true, "Query.instances": true,
	"InstanceConnection.edges": true, "InstanceConnection.pageInfo": true, "InstanceEdge.node": true,
	"Instance.failure": true, "Instance.drift": true, "Instance.roles": true, "Instance.repair": true,
	"Instance.members": true, "Instance.lastOperation": true, "Instance.events": true,
	"ComponentRole.runtimeState": true, "ComponentRole.capacityIntent": true,
	"MemberConnection.edges": true, "MemberConnection.pageInfo": true, "MemberEdge.node": true,
	"EventConnection.edges": true, "EventConnection.pageInfo": true, "EventEdge.node": true,
	"Operation.requester": true, "Operation.waitsFor": true, "Operation.error": true, "Operation.steps": true,
}

// subject returns what proves the answer of a plan; not ok where nothing does.
func subject(plan *plain.Plan, variables map[string]any) (tx.Subject, bool) {
	if plan.Gathers() { // a tx.Proving accompanies the reads of one goroutine
		return tx.Subject{}, false
	}
	for _, edge := range plan.Edges() {
		if !covered[edge] {
			return tx.Subject{}, false
		}
	}
	name, args, ok := plan.Sole(variables)
	if !ok {
		return tx.Subject{}, false
	}
	in := plain.Read(args)
	switch name {
	case "instance":
		id := in.ID("id")
		return tx.InstanceSubject(id), in.Err == nil
	case "instances":
		return listed(in)
	}
	return tx.Subject{}, false
}

// listed returns the subject of a page of a project's instances, as its resolver reads it: one row more than it shows.
func listed(in *plain.Reader) (tx.Subject, bool) {
	project := in.ID("projectId")
	filter := cmp.Or(plain.Input[instance.Filter](in, "filter"), &instance.Filter{})
	args, err := page.Of(in.OptionalInt("first"), in.OptionalText("after"), read.StandardPage, page.Max)
	if err != nil || in.Err != nil {
		return tx.Subject{}, false
	}
	after, err := instance.After(args)
	if err != nil {
		return tx.Subject{}, false
	}
	about := tx.Listed{Project: project, After: after, Most: args.First + 1, App: filter.AppSlug, Search: filter.Search,
		System: filter.System}
	for _, status := range filter.Statuses {
		about.Statuses = append(about.Statuses, string(status))
	}
	return tx.InstancesSubject(about), true
}
