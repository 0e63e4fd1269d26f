package mutant

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
)

// nodes keep the files of members in memory: a hundred mutants need no disk. The tiny adapter's
// own test runs on real sandboxes.
type nodes struct {
	mu    sync.Mutex
	files map[string]map[string]bool
}

func newNodes() *nodes { return &nodes{files: map[string]map[string]bool{}} }

// SealingKey implements standin.Nodes; nothing is sealed here.
func (*nodes) SealingKey() string { return "" }

// Do implements standin.Nodes.
func (n *nodes) Do(ctx context.Context, task sandbox.Task) sandbox.Outcome {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := n.do(task)
	if ctx.Err() != nil || err != nil {
		return sandbox.Outcome{State: adapter.TaskFailed, Message: "it failed"}
	}
	return sandbox.Outcome{State: adapter.TaskSucceeded, Result: map[string]any{}}
}

func (n *nodes) do(task sandbox.Task) error {
	switch task.Kind {
	case adapter.TaskTeardown:
		delete(n.files, task.MemberID)
	case adapter.TaskRun:
		if strings.Contains(string(task.Spec), workPath) && n.files[task.MemberID][workPath] {
			return errors.New("there is work")
		}
	case adapter.TaskWriteFile:
		var spec adapter.WriteFile
		if err := json.Unmarshal(task.Spec, &spec); err != nil || spec.Path == "" {
			return errors.New("the spec names no path")
		}
		if n.files[task.MemberID] == nil {
			n.files[task.MemberID] = map[string]bool{}
		}
		n.files[task.MemberID][spec.Path] = true
	}
	return nil
}

// Residue implements standin.Nodes.
func (n *nodes) Residue(member string) (adapter.Residue, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	files := len(n.files[member])
	return adapter.Residue{Sandbox: files > 0, Files: files}, nil
}

// Wipe implements standin.Nodes.
func (n *nodes) Wipe(member string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.files, member)
	return nil
}
