// Package audit records every privileged attempt, allowed or denied. What is allowed is written in the verb's own
// transaction, so that the entry exists if and only if the change does; what is denied is written apart by Denials,
// since the verb's transaction is rolled back.
package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Entry is an allowed attempt. Before and After are what changed, without secrets.
type Entry struct {
	Action        string
	Key           authz.Key
	Object        authz.Object
	ObjectID      ids.ID
	Before, After any
	Reason        string
	// BreakGlass says that the rules were set aside by break-glass.
	BreakGlass bool
	// Code is the fault in which the attempt ended after it was allowed; empty for one that did not end in a fault.
	Code fault.Code
}

// Require requires the permission key on the object and records a refusal. The faults are those of authz.RequireOn.
func Require(t *tx.Tx, action string, key authz.Key, object authz.Object, objectID ids.ID) error {
	err := authz.RequireOn(t.Actor, key, object)
	if err == nil {
		return nil
	}
	t.Deny(denial(t, action, key, object, objectID, fault.From(err).Code))
	return recorded(err)
}

// Recorded is the cause of a refusal that is in the audit already.
type Recorded struct{ cause error }

// Error is the text for logs.
func (r *Recorded) Error() string { return "recorded in the audit" }

// Unwrap returns the refusal's other cause.
func (r *Recorded) Unwrap() error { return r.cause }

// recorded marks a fault, so that it is not recorded again.
func recorded(err error) error {
	refused, ok := fault.As(err)
	if !ok {
		return err
	}
	return refused.Because(&Recorded{refused.Err})
}

// Missing records an attempt at an object that the caller cannot see, and answers NOT_FOUND.
func Missing(t *tx.Tx, action string, key authz.Key, objectID ids.ID) error {
	t.Deny(denial(t, action, key, authz.Object{}, objectID, fault.NotFound))
	return recorded(fault.NoSuch())
}

// Refused records a refusal that a rule beyond a single key gave, and passes it on. INVALID_ARGUMENT and an error that
// is not a fault, nil too, are not recorded.
func Refused(t *tx.Tx, action string, key authz.Key, object authz.Object, objectID ids.ID, err error) error {
	if fault.Is(err, fault.InvalidArgument) {
		return err
	}
	return Attempted(t, action, key, object, objectID, err)
}

// Attempted is Refused for verbs that would raise a person's rights: there a malformed request, such as a role where it
// cannot be given, is an attempt as well, and recorded.
func Attempted(t *tx.Tx, action string, key authz.Key, object authz.Object, objectID ids.ID, err error) error {
	refused, ok := fault.As(err)
	if !ok {
		return err
	}
	t.Deny(denial(t, action, key, object, objectID, refused.Code))
	return recorded(err)
}

// RefusedByPolicy is Refused for what policy, entitlement or a budget refused; whatever else went wrong is passed on
// unrecorded.
func RefusedByPolicy(t *tx.Tx, action string, key authz.Key, object authz.Object, objectID ids.ID, err error) error {
	if fault.Is(err, fault.PolicyDenied) || fault.Is(err, fault.NotEntitled) || fault.Is(err, fault.BudgetExceeded) {
		return Refused(t, action, key, object, objectID, err)
	}
	return err
}

func denial(t *tx.Tx, action string, key authz.Key, object authz.Object, objectID ids.ID, code fault.Code) tx.Denial {
	return tx.Denial{
		Actor: t.Actor, Request: t.Request, Action: action, Key: key.String(), Code: string(code),
		ObjectID: string(objectID), TenantID: object.TenantID, Project: object.ProjectID,
		Instance: object.InstanceID, AppSlug: object.AppSlug, At: t.Now,
	}
}

// insert writes one row; the columns are those of both ways in.
const insert = `INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, actor_name, permission_key,
	action,
	allowed, object_id, before, after, reason, code, repeats, correlation_id, origin, created_at, break_glass,
	trace_id, instance_id, app_slug)
	VALUES ($1, nullif($2, ''), nullif($3, ''), $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
	$20, nullif($21, ''), $22)`

// Topic is woken when there may be something to seal.
const Topic = "audit"

// Write records an allowed attempt in the verb's transaction.
func Write(ctx context.Context, t *tx.Tx, entry Entry) error {
	before, err := document(entry.Before)
	if err != nil {
		return err
	}
	after, err := document(onBehalf(t.Actor.For, entry.After))
	if err != nil {
		return err
	}
	t.Last().Queue(insert, ids.New(ids.Audit), entry.Object.TenantID, entry.Object.ProjectID,
		t.Actor.Kind, t.Actor.ID, t.Actor.Name, entry.Key.String(), entry.Action, true, entry.ObjectID,
		before, after, entry.Reason, string(entry.Code), 1, t.Request.CorrelationID, t.Request.Origin, t.Now,
		entry.BreakGlass, t.Request.TraceID, entry.Object.InstanceID, entry.Object.AppSlug)
	t.Wake(Topic)
	return nil
}

// onBehalf adds the requester to what an adapter did by the token of an operation or a call.
func onBehalf(who authz.Ref, after any) any {
	if who.ID == "" {
		return after
	}
	requester := map[string]string{"kind": who.Kind, "id": who.ID, "name": who.Name}
	fields, ok := after.(map[string]any)
	if !ok && after != nil {
		return map[string]any{"after": after, "requester": requester}
	}
	out := map[string]any{"requester": requester}
	maps.Copy(out, fields)
	return out
}

func document(value any) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode for the audit: %w", err)
	}
	return encoded, nil
}
