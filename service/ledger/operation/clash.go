package operation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dboperation "github.com/gpuaas/app-platform/ent/generated/db/operation"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Private is the part of an operation's desired change that is the platform's own: no adapter sees it. Its key is
// "platform".
type Private struct {
	// Input is the input of the verb, for a retry: its own struct without key and plan.
	Input json.RawMessage `json:"input,omitempty"`
	// Supersedes are the operations that it superseded.
	Supersedes []ids.ID `json:"supersedes,omitempty"`
	// CreatedAllocations were requested along with the change.
	CreatedAllocations []ids.ID `json:"createdAllocations,omitempty"`
	// KeepFailed leaves members that could not join as FAILED.
	KeepFailed bool `json:"keepFailed,omitempty"`
	// Planned is the adapter's part of the plan; nil for a change without one.
	Planned *Planned `json:"planned,omitempty"`
	// From and To are what an upgrade or a rollback leads from and to.
	From *Version `json:"from,omitempty"`
	To   *Version `json:"to,omitempty"`
}

// Version is a manifest with a config, as a generation of an instance has them.
type Version struct {
	ManifestID ids.ID          `json:"manifestId"`
	Version    string          `json:"version"`
	Config     json.RawMessage `json:"config,omitempty"`
}

// PrivateOf reads the platform's part of an operation's desired change; the zero Private without one.
func PrivateOf(op *db.Operation) Private {
	var change struct {
		Platform Private `json:"platform"`
	}
	if json.Unmarshal(op.DesiredChange, &change) != nil {
		return Private{}
	}
	return change.Platform
}

// PublicChange is the operation's desired change, without the platform's own part.
func (v *View) PublicChange() json.RawMessage {
	if !bytes.Contains(v.DesiredChange, []byte(`"platform"`)) {
		return v.DesiredChange
	}
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(v.DesiredChange, &fields) != nil {
		return v.DesiredChange
	}
	delete(fields, "platform")
	public, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return public
}

// WithPrivate is a contract's change with the platform's part: what is stored as the desired change.
func WithPrivate(change any, private Private) (json.RawMessage, error) {
	encoded, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("encode a change: %w", err)
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return nil, fmt.Errorf("encode a change: %w", err)
	}
	if fields["platform"], err = json.Marshal(private); err != nil {
		return nil, fmt.Errorf("encode a change: %w", err)
	}
	return json.Marshal(fields)
}

// Open is the instance's oldest operation that has not ended; nil when all have. The caller has locked the instance's
// row, which every verb that creates one locks first.
func Open(ctx context.Context, t *tx.Tx, instanceID ids.ID) (*db.Operation, error) {
	open, err := AllOpen(ctx, t, instanceID, true)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	return open[0], nil
}

// AllOpen is every operation of the instance that has not ended, oldest first, locked on request.
func AllOpen(ctx context.Context, t *tx.Tx, instanceID ids.ID, locked bool) ([]*db.Operation, error) {
	query := t.Operation.Query().Where(dboperation.InstanceID(instanceID),
		dboperation.EndedAtIsNil()).Order(db.Asc(dboperation.FieldID))
	if locked {
		query.ForUpdate()
	}
	open, err := query.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find open operations: %w", err)
	}
	return open, nil
}

// InTheWay is the CONFLICT that names the operation a verb would have to wait for.
func InTheWay(op *db.Operation) *fault.Fault {
	return fault.New(fault.Conflict, "operation %s (%s, %s) is under way", op.ID, op.Kind, op.State).
		With(fault.Reason{Code: fault.OperationInTheWay, Message: "wait for it, or cancel it: " + string(op.ID)})
}

// Clash checks a new operation of a kind on some members against those that are open on its instance: which one it must
// wait for (nil for none), and which it supersedes. Instance-wide operations exclude all; those of members exclude on
// the same member only.
func Clash(kind lifecycle.OperationKind, targets []ids.ID,
	open []*db.Operation) (inTheWay *db.Operation, superseded []*db.Operation) {
	for _, op := range open {
		switch {
		case !excludes(kind, targets, op):
		case kind.Supersedes(op.Kind):
			superseded = append(superseded, op)
		default:
			return op, nil
		}
	}
	return nil, superseded
}

func excludes(kind lifecycle.OperationKind, targets []ids.ID, op *db.Operation) bool {
	if kind.Effects().Scope == lifecycle.ScopeInstance || op.Kind.Effects().Scope == lifecycle.ScopeInstance {
		return true
	}
	return slices.ContainsFunc(Touched(op), func(id ids.ID) bool { return slices.Contains(targets, id) })
}

// Touched are the members that an operation works on: its targets, and the member that replaces one of them.
func Touched(op *db.Operation) []ids.ID {
	var change struct {
		ReplacementID ids.ID `json:"replacementId"`
	}
	if json.Unmarshal(op.DesiredChange, &change) != nil || change.ReplacementID == "" {
		return op.Targets
	}
	return append(slices.Clone(op.Targets), change.ReplacementID)
}
