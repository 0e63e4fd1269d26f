package task

import (
	"context"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// The defaults of a supervised process, in seconds.
const (
	defaultBackoff     = 1
	defaultStopTimeout = 10
)

func (e *Executor) writeFile(ctx context.Context, task Task) (journal.Outcome, error) {
	var spec fileSpec
	if err := decode(task.Spec, &spec); err != nil {
		return journal.Outcome{}, err
	}
	mode, err := fileMode(spec.Mode)
	if err != nil {
		return journal.Outcome{}, err
	}
	content, err := e.opener(task).content(ctx, spec)
	if err != nil {
		return journal.Outcome{}, err
	}
	client, err := e.Sandboxes.Ensure(ctx, task.MemberID, task.InstanceID)
	if err != nil {
		return journal.Outcome{}, err
	}
	file := wire.File{Path: spec.Path, Mode: mode, Owner: spec.Owner, Content: content, MakeDirs: spec.MakeDirs}
	if err := client.WriteFile(ctx, file); err != nil {
		return journal.Outcome{}, err
	}
	return success(map[string]int{"bytes": len(content)}), nil
}

// processResult is the result of the three kinds about supervised processes.
type processResult struct {
	Process wire.Process `json:"process"`
}

func (e *Executor) startProcess(ctx context.Context, task Task) (journal.Outcome, error) {
	spec, err := e.processSpec(ctx, task)
	if err != nil {
		return journal.Outcome{}, err
	}
	client, err := e.Sandboxes.Ensure(ctx, task.MemberID, task.InstanceID)
	if err != nil {
		return journal.Outcome{}, err
	}
	process, err := client.StartProcess(ctx, spec)
	if err != nil {
		return journal.Outcome{}, err
	}
	return success(processResult{process}), nil
}

func (e *Executor) processSpec(ctx context.Context, task Task) (wire.ProcessSpec, error) {
	var spec startSpec
	if err := decode(task.Spec, &spec); err != nil {
		return wire.ProcessSpec{}, err
	}
	if err := checkStart(spec); err != nil {
		return wire.ProcessSpec{}, err
	}
	policy, err := checkPolicy(spec.Restart.Policy)
	if err != nil {
		return wire.ProcessSpec{}, err
	}
	backoff, err := millis("restart.backoffSeconds", spec.Restart.BackoffSeconds, defaultBackoff)
	if err != nil {
		return wire.ProcessSpec{}, err
	}
	stop, err := millis("stopTimeoutSeconds", spec.StopTimeoutSeconds, defaultStopTimeout)
	if err != nil {
		return wire.ProcessSpec{}, err
	}
	env, err := e.opener(task).environment(ctx, spec.Env)
	return wire.ProcessSpec{
		Name: spec.Name, Command: spec.Command, Env: env, WorkDir: spec.WorkDir, User: spec.User, Policy: policy,
		MaxRestarts: spec.Restart.MaxRestarts, BackoffMillis: backoff, StopSignal: spec.StopSignal, StopTimeoutMillis: stop,
	}, err
}

func checkStart(spec startSpec) error {
	if err := checkProcessName(spec.Name); err != nil {
		return err
	}
	if err := checkCommand(spec.Command); err != nil {
		return err
	}
	if spec.Restart.MaxRestarts < 0 {
		return invalid("restart.maxRestarts", "%d is negative", spec.Restart.MaxRestarts)
	}
	return checkSignal(spec.StopSignal)
}

// namedProcess stops or inspects. Without a sandbox the process is absent; with a dead init it failed.
func (e *Executor) namedProcess(ctx context.Context, task Task) (journal.Outcome, error) {
	var spec nameSpec
	if err := decode(task.Spec, &spec); err != nil {
		return journal.Outcome{}, err
	}
	if err := checkProcessName(spec.Name); err != nil {
		return journal.Outcome{}, err
	}
	client, err := e.Sandboxes.Lookup(ctx, task.MemberID)
	var process wire.Process
	switch {
	case client == nil && (err == nil || wire.HasCode(err, wire.CodeSandboxLost)):
		process, err = e.Sandboxes.LostProcess(task.MemberID, spec.Name)
	case err != nil:
	case task.Kind == KindStop:
		process, err = client.StopProcess(ctx, spec.Name)
	default:
		process, err = client.InspectProcess(ctx, spec.Name)
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
	if err := decode(task.Spec, &struct{}{}); err != nil {
		return journal.Outcome{}, err
	}
	found, err := e.Sandboxes.Residue(task.MemberID)
	if err != nil {
		return journal.Outcome{}, err
	}
	return success(residueResult{Residue: found}), nil
}

// teardown succeeds only when nothing is left. What is left is in the result either way.
func (e *Executor) teardown(ctx context.Context, task Task) (journal.Outcome, error) {
	if err := decode(task.Spec, &struct{}{}); err != nil {
		return journal.Outcome{}, err
	}
	left, err := e.Sandboxes.Teardown(ctx, task.MemberID)
	switch {
	case wire.HasCode(err, wire.CodeSpecInvalid):
		return journal.Outcome{}, err
	case err != nil:
		return failure(StateFailed, residueResult{Residue: left, Code: wire.CodeResidueLeft}, err.Error()), nil
	case !left.Empty():
		return failure(StateFailed, residueResult{Residue: left, Code: wire.CodeResidueLeft}, "something of the member is still on the node"), nil
	}
	return success(residueResult{Residue: left}), nil
}
