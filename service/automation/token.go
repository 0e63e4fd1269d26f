package automation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// TokenLife is how long a token for an instance works at most.
const TokenLife = 15 * time.Minute

// Token speaks for an account on one instance.
type Token struct {
	Token            string
	ExpiresAt        time.Time
	ServiceAccountID ids.ID
	PermissionKeys   []string
}

// issuing names the verb in the audit.
const issuing = "issueOperatorToken"

// IssueToken issues the token by which an adapter acts for an instance outside of operations, as the account that the
// instance's project chose. The caller is the service account that the adapter is registered with, by a key of it or a
// token from one; the token ends with that key, with the choice, and with the instance. Key: adapter.act.
//
// Faults: NOT_FOUND for an instance that the caller's adapter does not run, whether it exists or not; FORBIDDEN;
// FAILED_PRECONDITION while no account is chosen, or the chosen one may do nothing with the instance.
func (s *Service) IssueToken(ctx context.Context, instanceID ids.ID) (out *Token, err error) {
	if s.Keys == nil {
		return nil, fault.New(fault.FailedPrecondition, "this server signs no tokens")
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = s.issue(ctx, t, instanceID)
		return err
	})
	return out, err
}

func (s *Service) issue(ctx context.Context, t *tx.Tx, instanceID ids.ID) (*Token, error) {
	own := authz.Object{TenantID: t.Actor.TenantID, ProjectID: t.Actor.ProjectID}
	if err := audit.Require(t, issuing, authz.AdapterAct, own, instanceID); err != nil {
		return nil, err
	}
	credential, _ := tx.CredentialFrom(ctx)
	kind, via, ok := credential.Opens()
	if !ok || kind != "exchange" {
		return nil, audit.Missing(t, issuing, authz.AdapterAct, instanceID)
	}
	chosen, err := operatorOf(ctx, t, instanceID)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, audit.Missing(t, issuing, authz.AdapterAct, instanceID)
	}
	if err != nil {
		return nil, fmt.Errorf("find the account of %s: %w", instanceID, err)
	}
	if err := chosen.usable(instanceID); err != nil {
		return nil, err
	}
	issued := &Token{ExpiresAt: t.Now.Add(TokenLife).Truncate(time.Second), ServiceAccountID: chosen.account,
		PermissionKeys: chosen.keys}
	if ends := t.Actor.ExpiresAt; !ends.IsZero() && ends.Before(issued.ExpiresAt) {
		issued.ExpiresAt = ends.Truncate(time.Second)
	}
	issued.Token, err = s.Keys.Sign(token.Claims{Operator: chosen.account, Instance: instanceID, ServiceKey: via,
		Act:       &token.Requester{Subject: string(t.Actor.ID), Kind: string(t.Actor.Kind), Name: t.Actor.Name},
		ExpiresAt: issued.ExpiresAt}, t.Now)
	if err != nil {
		return nil, fmt.Errorf("sign a token for %s: %w", instanceID, err)
	}
	// The entry is in the audit of the adapter's own tenant; what is done with the token is in that of the instance's
	// tenant, with the adapter's account as the requester.
	return issued, audit.Write(ctx, t, audit.Entry{Action: issuing, Key: authz.AdapterAct, Object: own,
		ObjectID: instanceID, After: map[string]any{"serviceAccountId": chosen.account, "expiresAt": issued.ExpiresAt}})
}

// chosen is the account that was chosen for an instance; its id is empty until one is chosen.
type chosen struct {
	account ids.ID
	keys    []string // that those who answer for it may still give
	limits  authz.Limits
}

// operatorOf reads it, where the caller is the account of the instance's adapter; pgx.ErrNoRows otherwise.
func operatorOf(ctx context.Context, t *tx.Tx, instanceID ids.ID) (*chosen, error) {
	var out chosen
	var tenant, project ids.ID
	var keys, limits, voucher []byte
	err := t.QueryRow(ctx, `SELECT tenant_id, project_id, account_id, permission_keys, limits, voucher
		FROM platform.operator_of($1)`, instanceID).Scan(&tenant, &project, &out.account, &keys, &limits, &voucher)
	if err != nil || out.account == "" {
		return &out, err
	}
	if err := json.Unmarshal(keys, &out.keys); err != nil {
		return nil, err
	}
	if len(limits) > 0 {
		if err := json.Unmarshal(limits, &out.limits); err != nil {
			return nil, err
		}
	}
	maker, err := tx.ParseVoucher(voucher)
	if err != nil {
		return nil, err
	}
	out.keys = maker.Vouched(out.keys, tenant, project, t.Now)
	return &out, nil
}

// usable refuses a token that could do nothing.
func (c *chosen) usable(instanceID ids.ID) error {
	refused := func(format string, args ...any) error {
		return fault.New(fault.FailedPrecondition, format, args...).At("instanceId")
	}
	if c.account == "" {
		return refused("no service account is chosen for instance %s: its project must choose one (setOperatorAccount)",
			instanceID)
	}
	if _, ok := c.limits.Within(instanceID); !ok {
		return refused("the service account of instance %s is limited to other objects: choose another one, or lift "+
			"the limit",
			instanceID)
	}
	if len(c.keys) == 0 {
		return refused(
			"the service account of instance %s may do nothing, as no one who may give its keys answers for it: "+
				"update it, or choose another one", instanceID)
	}
	return nil
}
