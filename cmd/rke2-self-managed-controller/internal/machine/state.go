package machine

import (
	"regexp"
	"strings"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/release"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// State is what the API says of a Node.
type State struct{ Ready, Reason, Cordoned, Version string }

// NodesCommand lists all Nodes.
func NodesCommand() adapter.RunCommand {
	return Kubectl("get", "nodes", "-o", "go-template="+NodesTemplate)
}

// NodesOf reads what NodesCommand prints.
func NodesOf(text string) map[string]State {
	list := map[string]State{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(strings.ReplaceAll(line, "<no value>", "false")); len(f) >= 5 {
			list[f[0]] = State{Ready: f[1], Reason: f[2], Cordoned: f[3], Version: f[4]}
		}
	}
	return list
}

// StepOf returns the release that the cluster runs, and the step from it: the lowest for an upgrade, and the highest of
// its servers where the target lies below it.
func StepOf(seen map[string]State, to release.Release) (from release.Release, step release.Step, err error) {
	low, high := to, to
	for _, node := range seen {
		runs, ok := release.Find(node.Version)
		switch {
		case !ok:
		case runs.Less(low):
			low = runs
		case high.Less(runs):
			high = runs
		}
	}
	if high != to {
		return high, release.Back, nil
	}
	if step = low.StepTo(to); step == release.Skips {
		err = adapter.Fail("MINOR_SKIPPED", adapter.OwnerUser, false,
			"the cluster runs %s, and Kubernetes upgrades by one minor version at a time: upgrade to %s first, "+
				"then to %s", low, low.Next(), to)
	}
	return low, step, err
}

// Voter is a member of etcd, as etcdctl lists it.
type Voter struct {
	ID, Name, Peer string
	// Votes is true when it has started and is not a learner.
	Votes bool
}

// VotersOf reads etcdctl's list of members.
func VotersOf(text string) (list []Voter) {
	for line := range strings.Lines(text) {
		if f := strings.Split(strings.TrimSpace(line), ", "); len(f) >= 4 {
			list = append(list, Voter{ID: f[0], Name: f[2], Peer: f[3],
				Votes: f[1] == "started" && f[len(f)-1] == "false"})
		}
	}
	return list
}

// suffix is what RKE2 puts behind a node's name for its etcd.
var suffix = regexp.MustCompile(`^-[0-9a-f]{8}$`)

// Of reports whether it is, or was to be, that of a member: one that never started has no name, but an address.
func (v Voter) Of(member adapter.Member) bool {
	rest, ok := strings.CutPrefix(v.Name, Name(member))
	return ok && suffix.MatchString(rest) || v.Name == "" && v.Peer == "https://"+member.Host()+":2380"
}
