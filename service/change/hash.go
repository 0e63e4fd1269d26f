package change

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/kit/capacity"
)

// basis is everything that a plan rests on; its digest is the plan's hash. Revision and progress are
// not among it: they move all the time and change nothing that was shown.
type basis struct {
	Kind        lifecycle.OperationKind
	Asked       askedBasis
	Instance    instanceBasis
	Target      *versionBasis
	Members     []memberBasis
	Allocations []allocationBasis
	Open        []ids.ID
	Verdicts    []verdictBasis
	Adapter     *adapterBasis
	// Attached are the other projects that it would touch.
	Attached []ids.ID `json:",omitempty"`
}

type askedBasis struct {
	InstanceID, MemberID ids.ID
	ComponentKey         string
	Count                int
	AllocationIDs        []ids.ID
	Intent               *capacity.Want
	Force                bool
	Version              string
	Config               json.RawMessage
	Generation           *int
}

type instanceBasis struct {
	ID         ids.ID
	Status     lifecycle.InstanceStatus
	Version    versionBasis
	Generation int
	Wanted     map[string]int
}

type versionBasis struct {
	ManifestID ids.ID
	Stage      lifecycle.Stage
	Digest     string
	Config     json.RawMessage
}

type memberBasis struct {
	ID               ids.ID
	Status           lifecycle.MemberStatus
	Cordoned         bool
	Healthy          bool
	Allocation, Node *ids.ID
	NodeStatus       lifecycle.NodeStatus
}

type allocationBasis struct {
	ID         ids.ID
	Status     lifecycle.AllocationStatus
	Instance   *ids.ID
	NodeStatus lifecycle.NodeStatus
}

type verdictBasis struct {
	Source  lifecycle.VerdictSource
	Outcome lifecycle.VerdictOutcome
	// Reasons are those of a refusal by quota or policy: another rule is another plan.
	Reasons []fault.Reason
}

type adapterBasis struct {
	Verdict adapter.Verdict
	Total   int
	Work    []string
}

// hash is the digest of what the judged change rests on, with the adapter's word.
func (c *Change) hash(said *adapter.PlanAnswer) (string, error) {
	on := basis{Kind: c.Kind, Open: []ids.ID{}, Adapter: wordOf(said)}
	var err error
	if on.Asked, err = c.askedBasis(); err != nil {
		return "", err
	}
	if on.Instance, err = c.instanceBasis(); err != nil {
		return "", err
	}
	if c.To != nil {
		if on.Target, err = versionBasisOf(c.target, c.To.Config); err != nil {
			return "", err
		}
	}
	on.Members, on.Allocations = c.memberBasis(), c.allocationBasis()
	for _, op := range c.Open {
		on.Open = append(on.Open, op.ID)
	}
	for _, v := range c.verdicts {
		one := verdictBasis{Source: v.source, Outcome: v.outcome}
		if v.refusal != nil && (v.source == lifecycle.VerdictQuota || v.source == lifecycle.VerdictPolicy) {
			one.Reasons = v.refusal.Reasons
		}
		on.Verdicts = append(on.Verdicts, one)
	}
	for _, one := range c.Attached {
		on.Attached = append(on.Attached, one.ProjectID)
	}
	encoded, err := json.Marshal(on)
	if err != nil {
		return "", fmt.Errorf("encode what a plan rests on: %w", err)
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:]), nil
}

func (c *Change) askedBasis() (askedBasis, error) {
	config, err := canonical(c.Config)
	return askedBasis{
		InstanceID: c.InstanceID, MemberID: c.MemberID, ComponentKey: c.ComponentKey, Count: c.Count, AllocationIDs: c.AllocationIDs,
		Intent: c.Intent, Force: c.Force, Version: c.Version, Config: config, Generation: c.Generation,
	}, err
}

func (c *Change) instanceBasis() (instanceBasis, error) {
	version, err := versionBasisOf(c.Stored, c.Instance.Config)
	if err != nil {
		return instanceBasis{}, err
	}
	return instanceBasis{ID: c.Instance.ID, Status: c.Instance.Status, Version: *version, Generation: c.Instance.Generation, Wanted: c.Wanted}, nil
}

func versionBasisOf(stored *db.Manifest, config json.RawMessage) (*versionBasis, error) {
	config, err := canonical(config)
	if err != nil {
		return nil, fmt.Errorf("read a config: %w", err)
	}
	return &versionBasis{ManifestID: stored.ID, Stage: stored.Stage, Digest: stored.Digest, Config: config}, nil
}

func (c *Change) memberBasis() []memberBasis {
	list := []memberBasis{}
	for _, member := range c.Members {
		list = append(list, memberBasis{
			ID: member.ID, Status: member.Status, Cordoned: member.Cordoned, Healthy: member.Health == lifecycle.HealthHealthy,
			Allocation: member.AllocationID, Node: member.NodeID, NodeStatus: c.nodeStatus(member.NodeID),
		})
	}
	return list
}

// allocationBasis leaves out what was placed for the plan alone.
func (c *Change) allocationBasis() []allocationBasis {
	list := []allocationBasis{}
	for _, allocation := range c.Allocations {
		list = append(list, allocationBasis{
			ID: allocation.ID, Status: allocation.Status, Instance: allocation.InstanceID, NodeStatus: c.nodeStatus(allocation.NodeID),
		})
	}
	slices.SortFunc(list, func(a, b allocationBasis) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return list
}

func (c *Change) nodeStatus(id *ids.ID) lifecycle.NodeStatus {
	if id == nil || c.Nodes[*id] == nil {
		return ""
	}
	return c.Nodes[*id].Status
}

// wordOf is the adapter's verdict and the work that would be lost, however it is ordered or described.
func wordOf(said *adapter.PlanAnswer) *adapterBasis {
	if said == nil {
		return nil
	}
	out := &adapterBasis{Verdict: said.Verdict, Total: said.WorkTotal, Work: []string{}}
	for _, work := range said.WorkLost {
		out.Work = append(out.Work, work.Kind+"/"+work.ID)
	}
	slices.Sort(out.Work)
	return out
}
