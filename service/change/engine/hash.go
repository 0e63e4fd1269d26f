package engine

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
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/change/verdict"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/tariff"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// basis is everything that a plan rests on; its digest is the plan's hash. It leaves out revision and progress, which
// move all the time and change nothing that was shown.
type basis struct {
	Kind        lifecycle.OperationKind
	Asked       askedBasis
	Instance    instanceBasis
	Target      *versionBasis
	Members     []memberBasis
	Allocations []allocationBasis
	Open        []ids.ID
	Verdicts    []verdictBasis
	Adapter     *operation.PlannedAnswer
	AtDeadline  *operation.PlannedAnswer `json:",omitempty"`
	// Spoke is which adapter answered: its address and its description.
	Spoke  spokeBasis
	Placed []placedBasis `json:",omitempty"`
	// Cost is the change's effect on the price of an hour, as it is shown.
	Cost *tariff.Cost `json:",omitempty"`
	// Walls are those of the members that come, as they are shown.
	Walls []verdict.Walls `json:",omitempty"`
	// Attached are the other projects that it would touch.
	Attached []ids.ID `json:",omitempty"`
	// Going are the members that a scaling has chosen.
	Going []ids.ID `json:",omitempty"`
}

type askedBasis struct {
	InstanceID, MemberID ids.ID
	MemberIDs            []ids.ID `json:",omitempty"`
	ScaleTo              *int     `json:",omitempty"`
	ComponentKey         string
	Count                int
	AllocationIDs        []ids.ID
	Intent               *capacity.Want
	Force                bool
	Version              string
	Config               json.RawMessage
	Generation           *int
	DeadlineSeconds      int
	OnDeadline           lifecycle.DeadlineOutcome
	KeepFailed           bool
	Launch               *change.Launch `json:",omitempty"`
}

// placedBasis is what was chosen for an allocation that the change requests. Its node is never shown.
type placedBasis struct {
	Shape       lifecycle.CapacityShape
	GPUs        int
	SKU, Region string
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

// requestDigits are the hash's first digits, which are of the request alone; the others are of everything.
const requestDigits = sha256.Size

// hashOf returns the digest of the judged change and of what it rests on, with the adapter's answers.
func hashOf(v *verdict.Verdicts, said *answers) (string, error) {
	on := basis{
		Kind: v.Kind, Open: []ids.ID{}, Adapter: operation.PlannedOf(said.now),
		AtDeadline: operation.PlannedOf(said.atDeadline), Spoke: spoke(v), Placed: placedBasisOf(v), Cost: v.Cost,
	}
	var err error
	if on.Asked, err = askedBasisOf(v); err != nil {
		return "", err
	}
	if on.Instance, err = instanceBasisOf(v); err != nil {
		return "", err
	}
	if v.To != nil {
		if on.Target, err = versionBasisOf(v.Target, v.To.Config); err != nil {
			return "", err
		}
	}
	on.Members, on.Allocations = memberBasisOf(v), allocationBasisOf(v)
	for _, op := range v.Open {
		on.Open = append(on.Open, op.ID)
	}
	for _, one := range v.List {
		basis := verdictBasis{Source: one.Source, Outcome: one.Outcome}
		if one.Refusal != nil && (one.Source == lifecycle.VerdictQuota || one.Source == lifecycle.VerdictPolicy) {
			basis.Reasons = one.Refusal.Reasons
		}
		on.Verdicts = append(on.Verdicts, basis)
	}
	for _, seat := range v.Seats {
		on.Walls = append(on.Walls, v.WallsOf(seat))
	}
	for _, one := range v.Attached {
		on.Attached = append(on.Attached, one.ProjectID)
	}
	if v.Scale != nil && v.Kind == lifecycle.MemberRemove {
		on.Going = v.Targets()
	}
	request, err := digest(requestOf(v, on.Asked))
	if err != nil {
		return "", err
	}
	all, err := digest(on)
	return request[:requestDigits] + all[:requestDigits], err
}

// requestOf returns what of the basis is the request alone. The kind and the difference of a scaling follow from what
// there is.
func requestOf(v *verdict.Verdicts, asked askedBasis) any {
	kind := v.Kind
	if v.Scale != nil {
		kind, asked.Count = "", 0
		asked.AllocationIDs, asked.Intent, asked.KeepFailed = nil, nil, false
	}
	return struct {
		Kind  lifecycle.OperationKind
		Asked askedBasis
	}{kind, asked}
}

func digest(of any) (string, error) {
	encoded, err := json.Marshal(of)
	if err != nil {
		return "", fmt.Errorf("encode what a plan rests on: %w", err)
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:]), nil
}

type spokeBasis struct {
	URL         string
	Description json.RawMessage
}

func spoke(v *verdict.Verdicts) spokeBasis {
	if v.Adapter == nil {
		return spokeBasis{}
	}
	return spokeBasis{URL: v.Adapter.URL, Description: v.Adapter.Description}
}

// placedBasisOf returns what was placed for the change, in the order of the members that come.
func placedBasisOf(v *verdict.Verdicts) (list []placedBasis) {
	for _, row := range v.Created {
		list = append(list, placedBasis{Shape: row.Shape, GPUs: row.GpuCount, SKU: row.Sku, Region: row.Region})
	}
	return list
}

func askedBasisOf(v *verdict.Verdicts) (askedBasis, error) {
	config, err := verdict.Canonical(v.Config)
	var scaleTo *int
	if v.Scale != nil {
		scaleTo = &v.Scale.To
	}
	return askedBasis{
		InstanceID: v.InstanceID, MemberID: v.MemberID, MemberIDs: v.MemberIDs, ScaleTo: scaleTo,
		ComponentKey: v.ComponentKey, Count: v.Count,
		AllocationIDs: v.AllocationIDs, Intent: v.Intent, Force: v.Force, Version: v.Version, Config: config,
		Generation: v.Generation, DeadlineSeconds: v.Conditions.DeadlineSeconds, OnDeadline: v.Conditions.Outcome(),
		KeepFailed: v.Conditions.KeepFailed, Launch: v.Launch,
	}, err
}

// instanceBasisOf is that of an instance that exists; a launch has none.
func instanceBasisOf(v *verdict.Verdicts) (instanceBasis, error) {
	if v.Launch != nil {
		return instanceBasis{}, nil
	}
	version, err := versionBasisOf(v.Stored, v.Instance.Config)
	if err != nil {
		return instanceBasis{}, err
	}
	return instanceBasis{
		ID: v.Instance.ID, Status: v.Instance.Status, Version: *version, Generation: v.Instance.Generation,
		Wanted: v.Wanted,
	}, nil
}

func versionBasisOf(stored *db.Manifest, config json.RawMessage) (*versionBasis, error) {
	config, err := verdict.Canonical(config)
	if err != nil {
		return nil, fmt.Errorf("read a config: %w", err)
	}
	return &versionBasis{ManifestID: stored.ID, Stage: stored.Stage, Digest: stored.Digest, Config: config}, nil
}

func memberBasisOf(v *verdict.Verdicts) []memberBasis {
	list := []memberBasis{}
	for _, member := range v.Members {
		list = append(list, memberBasis{
			ID: member.ID, Status: member.Status, Cordoned: member.Cordoned,
			Healthy:    member.Health == lifecycle.HealthHealthy,
			Allocation: member.AllocationID, Node: member.NodeID, NodeStatus: v.NodeStatus(member.NodeID),
		})
	}
	return list
}

// allocationBasisOf leaves out what was placed for the plan alone.
func allocationBasisOf(v *verdict.Verdicts) []allocationBasis {
	list := []allocationBasis{}
	for _, allocation := range v.Allocations {
		list = append(list, allocationBasis{
			ID: allocation.ID, Status: allocation.Status, Instance: allocation.InstanceID,
			NodeStatus: v.NodeStatus(allocation.NodeID),
		})
	}
	slices.SortFunc(list, func(a, b allocationBasis) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return list
}
