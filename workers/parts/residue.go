package parts

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers/engine"
)

// The longest that looking for residue, and tearing down, may take on a node, in seconds.
const residueSeconds, teardownSeconds = 60, 180

// left is what an agent finds of a member on its node.
type left struct {
	Sandbox   bool `json:"sandbox"`
	Processes []struct {
		PID     int    `json:"pid"`
		Command string `json:"command"`
	} `json:"processes"`
	Mounts []string `json:"mounts"`
	Files  int      `json:"files"`
	Bytes  int64    `json:"bytes"`
	Names  []string `json:"names"`
	Groups []string `json:"cgroups,omitempty"` // of its limits
	Net    []string `json:"network,omitempty"` // of its network on the node
}

func (l left) empty() bool {
	return !l.Sandbox && len(l.Processes)+len(l.Mounts)+l.Files+len(l.Groups)+len(l.Net) == 0
}

// String says in a few words what is left.
func (l left) String() string {
	text := fmt.Sprintf("%d processes, %d mounts, %d files", len(l.Processes), len(l.Mounts), l.Files)
	if len(l.Processes) > 0 {
		text += fmt.Sprintf(" (process %d: %.80s)", l.Processes[0].PID, l.Processes[0].Command)
	} else if len(l.Names) > 0 {
		text += fmt.Sprintf(" (%.120s)", l.Names[0])
	}
	return text
}

// Cleaned is the evidence of a step that looks for residue: for each member, the agent's report that found nothing.
// Only where force is used, or something half done is taken back, members may be left of which that is not proved.
type Cleaned struct {
	Rounds   int            `json:"rounds"`
	Residue  []ResidueProof `json:"residue"`
	Unproved []unproved     `json:"unproved,omitempty"`
}

// Missing reports whether there is no proof of a member, and returns why.
func (p Cleaned) Missing(id ids.ID) (reason string, missing bool) {
	for _, proof := range p.Residue {
		if proof.Member == id {
			return "", false
		}
	}
	for _, one := range p.Unproved {
		if one.Member == id {
			return one.Reason, true
		}
	}
	return "it could not be checked", true
}

// ResidueProof is an agent's report that nothing of a member is left on its node.
type ResidueProof struct {
	Member ids.ID     `json:"member"`
	Node   string     `json:"node"`
	Task   ids.ID     `json:"task"`
	At     *time.Time `json:"at"`
	Report left       `json:"report"`
	// Teardowns are the platform's own tasks that had to remove what the adapter had left.
	Teardowns []ids.ID `json:"teardowns,omitempty"`
}

// unproved is a member of which something may be left on its node, and why that is not known better.
type unproved struct {
	Member ids.ID `json:"member"`
	Node   string `json:"node"`
	Reason string `json:"reason"`
}

// ResidueCause is the cause of failure when something is left at the deadline.
var ResidueCause = engine.FailureCause{Code: fault.ResidueLeft, Owner: operation.OwnerNode}

var silentCause = engine.FailureCause{Code: fault.NodeUnreachable, Owner: operation.OwnerNode}

// unclean are the members of which the round's reports found something, or found nothing out.
func unclean(list []finding) (dirty []ids.ID, worst string) {
	for _, one := range list {
		if one.Kind != lifecycle.TaskResidue {
			continue
		}
		report, ok := one.report()
		if ok && report.empty() {
			continue
		}
		dirty = append(dirty, one.MemberID)
		worst = fmt.Sprintf("left on node %s: %s", one.Node, report)
		if !ok {
			worst = fmt.Sprintf("node %s could not search for residue: %s", one.Node, one.Message)
		}
	}
	return dirty, worst
}

// torn reports whether every teardown succeeded.
func torn(list []finding) bool {
	for _, one := range list {
		if one.Kind == lifecycle.TaskTeardown && one.State != lifecycle.TaskSucceeded {
			return false
		}
	}
	return true
}

func (f finding) report() (left, bool) {
	var result struct {
		Residue *left `json:"residue"`
	}
	if f.State != lifecycle.TaskSucceeded || json.Unmarshal(f.Result, &result) != nil || result.Residue == nil {
		return left{}, false
	}
	return *result.Residue, true
}
