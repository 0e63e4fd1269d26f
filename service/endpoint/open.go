package endpoint

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// OpenInput is the endpoint to open in a browser.
type OpenInput struct {
	InstanceID ids.ID
	Endpoint   string
	Reason     string
}

// Opened is where the browser goes.
type Opened struct {
	// URL holds a ticket that works once, until ExpiresAt.
	URL       string
	ExpiresAt time.Time
}

// openAction is the verb's name in the audit.
const openAction = "openEndpoint"

// Open creates a ticket with which a browser opens an HTTP endpoint at its own host. It requires the permission key
// that the endpoint declares, on the instance's project. What is opened ends with the credential that opened it.
//
// Faults: those of Find; FAILED_PRECONDITION, at input.endpoint, of an endpoint that is not for browsers, or where this
// installation has no domain for apps; FORBIDDEN of a credential that is neither a login nor a key; POLICY_DENIED
// (access: ENDPOINTS).
func (s *Service) Open(ctx context.Context, in OpenInput) (*Opened, error) {
	wrong := &check.Input{}
	wrong.Reason("input.reason", in.Reason)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	found, err := s.Find(ctx, Wanted{InstanceID: in.InstanceID, Endpoint: in.Endpoint})
	if err != nil {
		return nil, err
	}
	if !found.Endpoint.Web() {
		return nil, fault.New(fault.FailedPrecondition,
			"endpoint %q uses %s, which no browser opens: use `appctl forward`",
			in.Endpoint, found.Endpoint.Protocol).At("input.endpoint")
	}
	if s.Apps == nil {
		return nil, fault.New(fault.FailedPrecondition,
			"this installation has no domain for apps: its operator sets --apps-url").
			At("input.endpoint")
	}
	credential, _ := tx.CredentialFrom(ctx)
	kind, opener, ok := credential.Opens()
	if !ok {
		return nil, fault.New(fault.Forbidden, "opening an endpoint needs a login or a service account's key")
	}
	text, ticket := token.Mint(token.Ticket)
	out := &Opened{URL: s.Origin(in.Endpoint, in.InstanceID) + RedeemPath + "?" + url.Values{"ticket": {text}}.Encode()}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		where := object(found.Instance)
		if err := audit.Require(t, openAction, found.Key, where, in.InstanceID); err != nil {
			return err
		}
		if err := t.Actor.RequireRisk(lifecycle.RiskWrite); err != nil {
			return audit.Refused(t, openAction, found.Key, where, in.InstanceID, err)
		}
		if err := allowed(ctx, t, openAction, found); err != nil {
			return err
		}
		out.ExpiresAt = t.Now.Add(TicketLife)
		if err := store(ctx, t, in, ticket, kind, opener); err != nil {
			return err
		}
		return audit.Write(ctx, t, audit.Entry{Action: openAction, Key: found.Key, Object: where,
			ObjectID: in.InstanceID,
			Reason:   in.Reason, After: map[string]any{"endpoint": in.Endpoint, "opening": ticket.ID}})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// allowed checks the policy for endpoints.
func allowed(ctx context.Context, t *tx.Tx, action string, to *Target) error {
	where := object(to.Instance)
	return audit.Access(ctx, t, audit.Entry{Action: action, Key: to.Key, Object: where, ObjectID: where.InstanceID},
		policy.AccessEndpoints, "input.endpoint")
}

// store writes the opening: it ends with the credential that opened it, or after OpeningLife.
func store(ctx context.Context, t *tx.Tx, in OpenInput, ticket token.Secret, kind string, opener ids.ID) error {
	ends := t.Now.Add(OpeningLife)
	if of := t.Actor.ExpiresAt; kind != "session" && !of.IsZero() && of.Before(ends) {
		ends = of // a session may be rotated, and go on
	}
	_, err := t.Exec(ctx, `INSERT INTO endpoint_opening (id, tenant_id, project_id, instance_id, endpoint,
		credential_kind,
		credential_id, ticket_hash, ticket_ends_at, expires_at, created_at)
		SELECT $1, tenant_id, project_id, id, $3, $4, $5, $6, $7, $8, $9 FROM instance WHERE id = $2`,
		ticket.ID, in.InstanceID, in.Endpoint, kind, opener, ticket.Hash, t.Now.Add(TicketLife), ends, t.Now)
	if err != nil {
		return fmt.Errorf("open endpoint %s of %s: %w", in.Endpoint, in.InstanceID, err)
	}
	return nil
}
