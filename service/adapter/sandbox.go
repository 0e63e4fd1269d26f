package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbadapter "github.com/gpuaas/app-platform/ent/generated/db/adapter"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/kit/sandbox"
	"github.com/gpuaas/app-platform/service/kit/scope"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// SandboxInput is a registration by a publisher, for the apps in its project's sandbox.
type SandboxInput struct {
	ProjectID   ids.ID
	Name, URL   string
	Authority   *string
	NarrowCalls *bool
	// ServiceAccountID is an account of the project that it acts by; nil leaves it as it is, empty is for none.
	ServiceAccountID *ids.ID
}

const sandboxing = "registerSandboxAdapter"

// RegisterSandbox registers an adapter that only apps in the project's sandbox may name, or changes its address. Key:
// sandbox.manage on the project. It is dialled by the policy of sandboxes: https on the public Internet, and what the
// operator allows besides.
//
// Faults: INVALID_ARGUMENT naming the field, NOT_FOUND, FORBIDDEN, DIAL_REFUSED when the policy does not allow the
// address, CONFLICT when the name is taken, FAILED_PRECONDITION when the platform's staff has registered it for all,
// LIMIT_EXCEEDED beyond sandbox.Most adapters of the tenant.
func (s *Service) RegisterSandbox(ctx context.Context, in SandboxInput) (out *db.Adapter, err error) {
	as := RegisterInput{Name: in.Name, URL: in.URL, Authority: in.Authority, NarrowCalls: in.NarrowCalls,
		ServiceAccountID: in.ServiceAccountID}
	address, err := as.check()
	if err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		_, _, err := s.enters(ctx, t, in.ProjectID, &as, address)
		return err
	})
	if err != nil {
		return nil, err
	}
	said, unreached := s.describe(ctx, adapterclient.Target{Name: as.Name, URL: as.URL, Authority: *as.Authority,
		Sandbox: true})
	if fault.Is(unreached, fault.DialRefused) {
		return nil, placed(unreached)
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		place, old, err := s.enters(ctx, t, in.ProjectID, &as, address)
		if err != nil {
			return err
		}
		out, err = keep(ctx, t, place, old, as, said, unreached)
		return err
	})
	return out, err
}

// enters authorises the registration and returns the one of the name that is in the sandbox; nil for none. Without an
// authority that of the same address is kept.
func (s *Service) enters(ctx context.Context, t *tx.Tx, projectID ids.ID, in *RegisterInput,
	address *url.URL) (place sandbox.Place, old *db.Adapter, err error) {
	place, err = sandbox.Of(ctx, t, projectID)
	if err != nil {
		return place, nil, err
	}
	if place.ProjectID == "" {
		return place, nil, audit.Missing(t, sandboxing, authz.SandboxManage, projectID)
	}
	if err := audit.Require(t, sandboxing, authz.SandboxManage, place.Object, projectID); err != nil {
		return place, nil, err
	}
	if err := place.Named(in.Name, "input.name"); err != nil {
		return place, nil, err
	}
	if err := s.Trust.AllowSandbox(address); err != nil {
		refused := fault.New(fault.DialRefused,
			"the adapter of a sandbox must have a public https address, or one that the "+
				"operator allows (--sandbox-allow): %s is neither", address.Host).At("input.url")
		return place, nil, audit.Refused(t, sandboxing, authz.SandboxManage, place.Object, projectID, refused)
	}
	if err := actsBy(ctx, t, in.ServiceAccountID, place.ProjectID); err != nil {
		return place, nil, err
	}
	old, err = t.Adapter.Query().Where(dbadapter.Name(in.Name)).Only(ctx)
	switch {
	case db.IsNotFound(err):
		old = nil
	case err != nil:
		return place, nil, fmt.Errorf("load adapter %s: %w", in.Name, err)
	case old.ProjectID == nil:
		return place, nil, fault.New(fault.FailedPrecondition,
			"adapter %q is registered for all projects: only the platform's staff changes "+
				"its address (adapter.register)", in.Name).At("input.name")
	case *old.ProjectID != place.ProjectID:
		return place, nil, taken(in.Name)
	}
	if in.Authority == nil {
		in.Authority = new(string)
		if old != nil && old.URL == in.URL {
			*in.Authority = old.Authority
		}
	}
	return place, old, nil
}

func taken(name string) error {
	return fault.New(fault.Conflict, "the name %q is taken", name).At("input.name").Retry(false)
}

// keep writes the registration.
func keep(ctx context.Context, t *tx.Tx, place sandbox.Place, old *db.Adapter, in RegisterInput, said json.RawMessage,
	unreached error) (row *db.Adapter, err error) {
	entry := audit.Entry{Action: sandboxing, Key: authz.SandboxManage, Object: place.Object}
	if old != nil {
		entry.Before = trail(old)
		err = change(ctx, t, old, in, said, unreached)
	} else {
		err = add(ctx, t, place, in, said, unreached)
	}
	if err != nil {
		return nil, err
	}
	if row, err = t.Adapter.Query().Where(dbadapter.Name(in.Name)).Only(ctx); err != nil {
		return nil, fmt.Errorf("load adapter %s: %w", in.Name, err)
	}
	entry.ObjectID, entry.After = row.ID, trail(row)
	return row, audit.Write(ctx, t, entry)
}

// trail is what the audit keeps of a registration.
func trail(row *db.Adapter) map[string]any {
	return map[string]any{"name": row.Name, "url": row.URL, "authority": fingerprint(row.Authority),
		"narrowCalls": row.NarrowCalls, "serviceAccountId": row.ServiceAccountID}
}

func add(ctx context.Context, t *tx.Tx, place sandbox.Place, in RegisterInput, said json.RawMessage,
	unreached error) error {
	err := place.Room(ctx, t, "adapters",
		`SELECT count(*) FROM adapter WHERE project_id IS NOT NULL AND tenant_id = $1`)
	if err != nil {
		return err
	}
	_, err = t.Exec(ctx, `INSERT INTO adapter (id, name, url, description, last_seen_at, last_error, created_at,
		authority,
		narrow_calls, tenant_id, project_id, service_account_id)
		VALUES ($1, $2, $3, $4::jsonb, CASE WHEN $4::jsonb IS NULL THEN NULL ELSE $6::timestamptz END, $5, $6, $7,
		coalesce($8, false), $9, $10, nullif($11, ''))`, ids.New(ids.Adapter), in.Name, in.URL, said, text(unreached),
		t.Now, *in.Authority,
		in.NarrowCalls, place.TenantID, place.ProjectID, in.ServiceAccountID)
	if tx.Violates(err, "adapter_name_key") {
		return taken(in.Name)
	}
	if err != nil {
		return fmt.Errorf("register adapter %s: %w", in.Name, err)
	}
	return nil
}

// change writes another address; there the operations feed is read from its beginning, and the former description stays
// until there is another.
func change(ctx context.Context, t *tx.Tx, old *db.Adapter, in RegisterInput, said json.RawMessage,
	unreached error) error {
	done, err := t.Exec(ctx, `UPDATE adapter SET url = $2, authority = $3,
		description = coalesce($4::jsonb, description),
		last_seen_at = CASE WHEN $4::jsonb IS NULL THEN last_seen_at ELSE $6::timestamptz END, last_error = $5,
		narrow_calls = coalesce($7, narrow_calls),
		service_account_id = CASE WHEN $8::text IS NULL THEN service_account_id ELSE nullif($8, '') END, feed_epoch = CASE WHEN url = $2 THEN feed_epoch ELSE '' END,
		feed_cursor = CASE WHEN url = $2 THEN feed_cursor ELSE '' END WHERE id = $1 AND project_id IS NOT NULL`,
		old.ID, in.URL, *in.Authority, said, text(unreached), t.Now, in.NarrowCalls, in.ServiceAccountID)
	if err == nil && done.RowsAffected() == 0 {
		return fault.New(fault.Conflict, "adapter %q was registered for all projects meanwhile",
			in.Name).At("input.name").Retry(false)
	}
	if err != nil {
		return fmt.Errorf("register adapter %s: %w", in.Name, err)
	}
	return nil
}

// InSandbox returns the list of a project's sandboxed adapters, by name. Key: sandbox.manage on the project.
func (s *Service) InSandbox(projectID ids.ID) func(context.Context, page.Args) (*page.Page[*db.Adapter], error) {
	return func(ctx context.Context, args page.Args) (*page.Page[*db.Adapter], error) {
		return s.inSandbox(ctx, projectID, args)
	}
}

func (s *Service) inSandbox(ctx context.Context, projectID ids.ID, args page.Args) (*page.Page[*db.Adapter], error) {
	list := "adapters of " + string(projectID)
	var after string
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	of := scope.Scope{ProjectID: &projectID}
	var found []*db.Adapter
	actor, err := s.DB.Read(ctx, of.With(tx.Rows(&found, rows.Adapter, `SELECT `+rows.AdapterColumns+` FROM adapter
		WHERE project_id = $1 AND name > $2 ORDER BY name LIMIT $3`, projectID, after, args.First+1))...)
	if err != nil {
		return nil, err
	}
	if err := of.Require(actor, authz.SandboxManage); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *db.Adapter) string { return page.Cursor(list, row.Name) }), nil
}
