package task

import (
	"cmp"
	"context"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

func (e *Executor) writeFile(ctx context.Context, task Task, spec *nodetask.WriteFile) (journal.Outcome, error) {
	opener := e.opener(task)
	content, err := opener.content(ctx, spec)
	if err != nil {
		return journal.Outcome{}, err
	}
	client, err := e.Sandboxes.Ensure(ctx, task.member())
	if err != nil {
		return journal.Outcome{}, err
	}
	if err := opener.hide(); err != nil {
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
	opener := e.opener(task)
	wanted, err := processSpec(ctx, opener, spec)
	if err != nil {
		return journal.Outcome{}, err
	}
	client, err := e.Sandboxes.Ensure(ctx, task.member())
	if err != nil {
		return journal.Outcome{}, err
	}
	if err := opener.hide(); err != nil {
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
func processSpec(ctx context.Context, opener *opener, spec *nodetask.StartProcess) (wire.ProcessSpec, error) {
	env, err := opener.environment(ctx, spec.Env)
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
	if process.LogTail, err = e.Masks.Hide(task.MemberID, process.LogTail); err != nil {
		return journal.Outcome{}, err
	}
	return success(processResult{process}), nil
}

// residueResult is the result of RESIDUE and TEARDOWN.
type residueResult struct {
	Residue sandbox.Residue `json:"residue"`
	Code    string          `json:"code,omitempty"`
	// Logs are the last lines of the processes of a member that was torn down.
	Logs []logs.Last `json:"logs,omitempty"`
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
	result := residueResult{Residue: left}
	var logsErr error
	if result.Logs, logsErr = e.Logs.Last(task.MemberID); logsErr != nil {
		e.Log.WarnContext(ctx, "the last lines of the member are lost", "", task, "error", logsErr)
	}
	switch {
	case wire.HasCode(err, wire.CodeSpecInvalid):
		return journal.Outcome{}, err
	case err != nil:
		result.Code = wire.CodeResidueLeft
		return failure(StateFailed, result, err.Error()), nil
	case !left.Empty():
		result.Code = wire.CodeResidueLeft
		return failure(StateFailed, result, "something of the member is still on the node"), nil
	}
	e.Masks.Forget(task.MemberID)
	return success(result), nil
}
