// Package capacity is what all verbs that request capacity have in common: what may be requested, its placement on
// nodes, and the quotas of a project.
package capacity

import (
	"encoding/json"
	"regexp"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/kit/check"
)

// Bounds of one request.
const (
	MaxCount = 64
	maxGPUs  = 64
)

// placePattern is a region, a SKU or a scheduler's name.
var placePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Want is what each of some allocations consists of.
type Want struct {
	Shape       lifecycle.CapacityShape
	GPUCount    *int   // for GPU_SLICE only
	SKU, Region string // empty for any
	// Class is the weakest isolation class that the allocations' members may have; empty for any.
	Class isolation.Class `json:",omitempty"`
	// Profile is one that their nodes must offer; empty for any.
	Profile isolation.Profile `json:",omitempty"`
}

// IsolationClass is the weakest class that the allocations' members may have; nil for any.
func (w *Want) IsolationClass() *isolation.Class {
	if w.Class == "" {
		return nil
	}
	return &w.Class
}

// Check notes what is wrong with it, below the path of the input that holds it.
func (w *Want) Check(wrong *check.Input, path string) {
	switch w.Shape {
	case lifecycle.ShapeBaremetal:
		if w.GPUCount != nil {
			wrong.Bad(path+".gpuCount", "must be left out for BAREMETAL, which takes all GPUs of a node")
		}
	case lifecycle.ShapeGPUSlice:
		if w.GPUCount == nil || *w.GPUCount < 1 || *w.GPUCount > maxGPUs {
			wrong.Bad(path+".gpuCount", "must be 1 to %d for GPU_SLICE", maxGPUs)
		}
	default:
		wrong.Bad(path+".shape", "must be BAREMETAL or GPU_SLICE")
	}
	CheckName(wrong, path+".sku", w.SKU)
	CheckName(wrong, path+".region", w.Region)
}

// Permitted checks against policy the region and the SKU that are named, at the path of the input that names them.
func (w *Want) Permitted(rules *policy.Effective, path string) error {
	var answers []error
	if w.Region != "" {
		answers = append(answers, rules.Region(w.Region, path+".region"))
	}
	if w.SKU != "" {
		answers = append(answers, rules.SKU(w.SKU, path+".sku"))
	}
	return policy.Join(answers...)
}

// CheckName notes what is wrong with the name of a region, a SKU or a scheduler; empty is fine.
func CheckName(wrong *check.Input, path, value string) {
	if value != "" && !placePattern.MatchString(value) {
		wrong.Bad(path, "must be letters, digits, dot, dash and underscore, at most 64")
	}
}

// Draft is an allocation before it has its node.
type Draft struct {
	ID      ids.ID
	Project *db.Project
	Want    Want
	// Name is empty for one derived from the id.
	Name          string
	SchedulerType string
	Metadata      json.RawMessage
	// Policy chooses among regions and SKUs where none is named. A caller that names one checks it against policy.
	Policy *policy.Effective
	// Lodging is what the node must serve.
	Lodging Lodging
	// CreatedBy is the operation that requests it along with a change; empty for none.
	CreatedBy ids.ID
}

// choices are the SKUs and regions to pick among; one that is named leaves no choice.
func (d *Draft) choices() (skus, regions policy.Choice) {
	if d.Want.SKU == "" {
		skus = d.Policy.SKUs()
	}
	if d.Want.Region == "" {
		regions = d.Policy.Regions()
	}
	return skus, regions
}

func (d *Draft) name() string {
	short := string(d.ID[len(d.ID)-6:])
	switch {
	case d.Name != "":
		return d.Name
	case d.Want.Shape == lifecycle.ShapeGPUSlice:
		return "slice-" + short
	}
	return "node-" + short
}
