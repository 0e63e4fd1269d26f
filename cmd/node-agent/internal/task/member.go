package task

import (
	"cmp"
	"context"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

func (e *Executor) writeFile(ctx context.Context, task Task, spec *nodetask.WriteFile) (journal.Outcome, error) {
	content, err := e.opener(task).content(ctx, spec)
	if err != nil {
		return journal.Outcome{}, err
	}
	client, err := e.ensure(ctx, task)
	if err != nil {
		return journal.Outcome{}, err
	}
	file := wire.File{
		Path: spec.Path, Mode: nodetask.Mode(spec.Mode), Owner: spec.Owner, Content: content, MakeDirs: spec.MakeDirs,
	}
	if err := client.WriteFile(ctx, file); err != nil {
		return journal.Outcome{}, err
	}
	return success(map[string]int{"bytes": len(content)}), nil
}

// processResult is the result of the three kinds that handle supervised processes.
type processResult struct {
	Process wire.Process `json:"process"`
}

func (e *Executor) startProcess(ctx context.Context, task Task, spec *nodetask.StartProcess) (journal.Outcome, error) {
	wanted, err := e.processSpec(ctx, task, spec)
	if err != nil {
		return journal.Outcome{}, err
	}
	client, err := e.ensure(ctx, task)
	if err != nil {
		return journal.Outcome{}, err
	}
	process, err := client.StartProcess(ctx, wanted)
	if err != nil {
		return journal.Outcome{}, err
	}
	return success(processResult{process}), nil
}

// processSpec returns what the member's init is to supervise: the details with every default filled in and every secret
// opened.
func (e *Executor) processSpec(ctx context.Context, task Task, spec *nodetask.StartProcess) (wire.ProcessSpec, error) {
	env, err := e.opener(task).environment(ctx, spec.Env)
	return wire.ProcessSpec{
		Name: spec.Name, Command: spec.Command, Env: env, WorkDir: spec.WorkDir, User: spec.User,
		Policy: cmp.Or(spec.Restart.Policy, memberinit.PolicyNever), MaxRestarts: spec.Restart.MaxRestarts,
		BackoffMillis: spec.Restart.Backoff().Milliseconds(),
		StopSignal:    spec.StopSignal, StopTimeoutMillis: spec.StopTimeout().Milliseconds(),
	}, err
}

// namedProcess stops or inspects. Without a sandbox the process is absent; with a dead init it failed.
func (e *Executor) namedProcess(ctx context.Context, task Task, name string) (journal.Outcome, error) {
	client, err := e.Sandboxes.Lookup(ctx, task.MemberID)
	var process wire.Process
	switch {
	case client == nil && (err == nil || wire.HasCode(err, wire.CodeSandboxLost)):
		process, err = e.Sandboxes.LostProcess(task.MemberID, name)
	case err != nil:
	case task.Kind == nodetask.KindStopProcess:
		process, err = client.StopProcess(ctx, name)
	default:
		process, err = client.InspectProcess(ctx, name)
	}
	if err != nil {
		return journal.Outcome{}, err
	}
	return success(processResult{process}), nil
}

// residueResult is the result of RESIDUE and TEARDOWN.
type residueResult struct {
	Residue sandbox.Residue `json:"residue"`
	Code    string          `json:"code,omitempty"`
}

func (e *Executor) residue(task Task) (journal.Outcome, error) {
	found, err := e.Sandboxes.Residue(task.MemberID)
	if err != nil {
		return journal.Outcome{}, err
	}
	return success(residueResult{Residue: found}), nil
}

// teardown succeeds only when nothing is left. What is left is in the result either way.
func (e *Executor) teardown(ctx context.Context, task Task) (journal.Outcome, error) {
	left, err := e.Sandboxes.Teardown(ctx, task.MemberID)
	switch {
	case wire.HasCode(err, wire.CodeSpecInvalid):
		return journal.Outcome{}, err
	case err != nil:
		return failure(StateFailed, residueResult{Residue: left, Code: wire.CodeResidueLeft}, err.Error()), nil
	case !left.Empty():
		return failure(StateFailed, residueResult{Residue: left, Code: wire.CodeResidueLeft},
			"something of the member is still on the node"), nil
	}
	return success(residueResult{Residue: left}), nil
}
