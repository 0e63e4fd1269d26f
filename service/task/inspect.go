package task

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/nodetask"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// looksOnly refuses every task but those that task.inspect is for.
func looksOnly(ctx context.Context, t *tx.Tx, member *db.Member, spec nodetask.Spec, where authz.Object) error {
	if only, err := looks(ctx, t, member, spec); err != nil || only {
		return err
	}
	refusal := fault.New(fault.Forbidden,
		"the caller may only inspect: read a process's state, and run the commands that the app's manifest names as "+
			"inspections").
		With(fault.Reason{Code: fault.PermissionMissing, Message: "needs " + authz.TaskRun.String(),
			Path: "input.spec"})
	return audit.Refused(t, action, authz.TaskRun, where, member.ID, refusal)
}

// looks reports whether a task changes nothing: it reads the state of a process, or runs a command that the instance's
// pinned manifest names, without environment, input or working directory.
func looks(ctx context.Context, t *tx.Tx, member *db.Member, spec nodetask.Spec) (bool, error) {
	switch task := spec.(type) {
	case *nodetask.InspectProcess:
		return true, nil
	case *nodetask.Run:
		if len(task.Env) > 0 || task.Stdin != "" || task.WorkDir != "" {
			return false, nil
		}
		document, err := pinnedTo(ctx, t, member)
		if err != nil {
			return false, err
		}
		_, named := document.Inspects(task.Command, task.User)
		return named, nil
	}
	return false, nil
}

// polls reports whether a task is part of a health poll: it changes nothing, and its caller acts for no operation and
// at no one's request. Such polls repeat for as long as an instance runs; the audit is of what somebody did.
func polls(ctx context.Context, t *tx.Tx, member *db.Member, spec nodetask.Spec) (bool, error) {
	if t.Actor.Kind != authz.KindOperation || operationOf(t.Actor) != "" || t.Actor.For.ID != "" {
		return false, nil
	}
	return looks(ctx, t, member, spec)
}

// pinnedTo returns the manifest that the member's instance runs.
func pinnedTo(ctx context.Context, t *tx.Tx, member *db.Member) (*manifest.Manifest, error) {
	row, err := t.Instance.Query().Where(dbinstance.ID(member.InstanceID)).Only(ctx)
	if err != nil {
		return nil, fmt.Errorf("load instance %s: %w", member.InstanceID, err)
	}
	stored, err := t.Manifest.Get(ctx, row.ManifestID)
	if err != nil {
		return nil, fmt.Errorf("load manifest %s: %w", row.ManifestID, err)
	}
	return manifest.Parse(stored.Document)
}
