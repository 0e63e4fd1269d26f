package nodetask

import (
	"encoding/json"
	"fmt"
)

// LeftProcess is a process of a member by its number on the node.
type LeftProcess struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

// Left is everything of a member that an agent found on its node: what RESIDUE and TEARDOWN report
// as "residue".
type Left struct {
	// Sandbox says whether the member's sandbox exists.
	Sandbox bool `json:"sandbox"`
	// Processes, Mounts and Names list at most 50 each.
	Processes []LeftProcess `json:"processes"`
	Mounts    []string      `json:"mounts"`
	// Files counts files and directories, Bytes their size.
	Files int      `json:"files"`
	Bytes int64    `json:"bytes"`
	Names []string `json:"names"`
}

// Empty says whether nothing is left.
func (l Left) Empty() bool {
	return !l.Sandbox && len(l.Processes) == 0 && len(l.Mounts) == 0 && l.Files == 0 && l.Bytes == 0 && len(l.Names) == 0
}

// ReadLeft reads the result of RESIDUE or TEARDOWN. A result that does not say what is left is an
// error: silence is no evidence.
func ReadLeft(result json.RawMessage) (Left, error) {
	var body struct {
		Residue *struct {
			Sandbox *bool `json:"sandbox"`
			Files   *int  `json:"files"`
		} `json:"residue"`
	}
	if err := json.Unmarshal(result, &body); err != nil {
		return Left{}, fmt.Errorf("read a residue: %w", err)
	}
	if body.Residue == nil || body.Residue.Sandbox == nil || body.Residue.Files == nil {
		return Left{}, fmt.Errorf("read a residue: the result does not say what is left")
	}
	var whole struct {
		Residue Left `json:"residue"`
	}
	if err := json.Unmarshal(result, &whole); err != nil {
		return Left{}, fmt.Errorf("read a residue: %w", err)
	}
	return whole.Residue, nil
}

// Probed is the result of PROBE: whether the last attempt succeeded, how many there were, and what
// the last one saw.
type Probed struct {
	OK       bool   `json:"ok"`
	Attempts int    `json:"attempts"`
	Detail   string `json:"detail"`
}

// ReadProbed reads the result of PROBE. Only a task that SUCCEEDED has passed.
func ReadProbed(result json.RawMessage) (Probed, error) {
	var probed Probed
	if err := json.Unmarshal(result, &probed); err != nil {
		return Probed{}, fmt.Errorf("read a probe: %w", err)
	}
	return probed, nil
}
