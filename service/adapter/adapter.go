// Package adapter holds the registration of adapters: the name and address under which the platform calls them, and
// their own descriptions.
package adapter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbadapter "github.com/gpuaas/app-platform/ent/generated/db/adapter"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/account"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Service holds the verbs on adapters.
type Service struct {
	// DB is the database.
	DB *tx.DB
	// Describe reads an adapter's description, a JSON object: contract.Calls.Describe, and in tests a fake for
	// addresses that nothing listens on. DIAL_REFUSED when the operator does not allow the address.
	Describe func(ctx context.Context, target adapterclient.Target) (json.RawMessage, error)
	// Trust is how adapters on other machines prove that they are the ones that are meant.
	Trust adapterclient.Trust
	// Allow checks an address against the operator's policy; nil allows every address. Its DIAL_REFUSED is returned.
	Allow func(address *url.URL) error
}

const (
	describeTimeout = 10 * time.Second
	maxDescription  = 1 << 20 // bytes
	maxError        = 500     // characters of why an adapter could not be reached
)

// RegisterInput is a registration. Authority are PEM certificates that alone vouch for the address by https; nil keeps
// those of a registration at the same address.
type RegisterInput struct {
	Name, URL string
	Authority *string
	// NarrowCalls narrows calls that only look to what manifests name; nil leaves it as it is, and off for a new one.
	NarrowCalls *bool
	// ServiceAccountID is the account that it acts by where it automates; nil leaves it as it is, but for one that a
	// publisher chose in a sandbox; empty is for none.
	ServiceAccountID *ids.ID
}

// check reads the address: http or https, without credentials, query or fragment.
func (in *RegisterInput) check() (*url.URL, error) {
	var input check.Input
	input.Slug("input.name", in.Name)
	in.URL = strings.TrimSuffix(in.URL, "/")
	address, err := url.Parse(in.URL)
	if err != nil || len(in.URL) > 512 || (address.Scheme != "http" && address.Scheme != "https") ||
		address.Hostname() == "" ||
		address.User != nil || address.RawQuery != "" || address.ForceQuery || address.Fragment != "" {
		input.Bad("input.url", "must be an http or https address without credentials, query or fragment")
	}
	if in.Authority != nil && *in.Authority != "" {
		if _, err := adapterclient.ParseAuthority(*in.Authority); err != nil {
			input.Bad("input.authority", "must be PEM certificates: %v", err)
		}
	}
	return address, input.Err()
}

// trusted refuses an adapter off this machine that nothing proves to be the one that is meant. One that is registered
// at the address already goes on where the operator's switch lets it. The authority of the same address is kept.
func (s *Service) trusted(ctx context.Context, t *tx.Tx, in *RegisterInput, address *url.URL) error {
	old, err := t.Adapter.Query().Where(dbadapter.Name(in.Name)).Only(ctx)
	if err != nil && !db.IsNotFound(err) {
		return fmt.Errorf("load adapter %s: %w", in.Name, err)
	}
	same := old != nil && old.URL == in.URL
	if in.Authority == nil {
		kept := ""
		if same {
			kept = old.Authority
		}
		in.Authority = &kept
	}
	if err := s.Trust.Judge(address, *in.Authority); err != nil && (!same || !s.Trust.Insecure) {
		field := "input.url"
		if address.Scheme == "https" {
			field = "input.authority"
		}
		return fault.New(fault.AdapterInsecure, "the adapter at %s is refused: %v", address.Host, err).At(field)
	}
	return nil
}

// Register registers an adapter, or changes its address. One that is in a sandbox is opened to all by it. Key:
// adapter.register on the platform.
//
// The adapter's description is read between two transactions. An adapter that does not answer is registered all the
// same, with the reason in lastError, as adapters may start after the platform: it is called again later. DIAL_REFUSED
// when the operator does not allow the address, ADAPTER_INSECURE when it is off this machine and nothing vouches for
// it.
func (s *Service) Register(ctx context.Context, in RegisterInput) (out *db.Adapter, err error) {
	address, err := in.check()
	if err != nil {
		return nil, err
	}
	const action = "registerAdapter"
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		if err := audit.Require(t, action, authz.AdapterRegister, authz.Object{}, ""); err != nil {
			return ownInstead(err)
		}
		if s.Allow != nil {
			if err := s.Allow(address); err != nil {
				return placed(err)
			}
		}
		if err := actsBy(ctx, t, in.ServiceAccountID, ""); err != nil {
			return err
		}
		return s.trusted(ctx, t, &in, address)
	})
	if err != nil {
		return nil, err
	}
	said, unreached := s.describe(ctx, adapterclient.Target{Name: in.Name, URL: in.URL, Authority: *in.Authority,
		Sandbox: false})
	if fault.Is(unreached, fault.DialRefused) {
		return nil, placed(unreached)
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		if err := audit.Require(t, action, authz.AdapterRegister, authz.Object{}, ""); err != nil {
			return err
		}
		if err := actsBy(ctx, t, in.ServiceAccountID, ""); err != nil { // it may have been deleted meanwhile
			return err
		}
		out, err = store(ctx, t, in, said, unreached)
		return err
	})
	return out, err
}

// actsBy refuses an account that an adapter could not act by: one that is deleted, lacks adapter.act, or is not of the
// project, which is empty for any.
func actsBy(ctx context.Context, t *tx.Tx, id *ids.ID, projectID ids.ID) error {
	if id == nil || *id == "" {
		return nil
	}
	return account.Live(ctx, t, *id, projectID, "input.serviceAccountId")
}

// ownInstead adds to a refusal what a publisher can do alone.
func ownInstead(err error) error {
	refused, is := fault.As(err)
	if !is || refused.Code != fault.Forbidden {
		return err
	}
	return refused.With(fault.Reason{Code: fault.Forbidden,
		Message: "only the platform's staff registers adapters for all projects; for apps of your own project, use " +
			"registerSandboxAdapter (appctl adapter register), which needs sandbox.manage on the project"})
}

// placed returns the refusal at the field that named the address.
func placed(err error) error {
	if refused, ok := fault.As(err); ok {
		return refused.At("input.url")
	}
	return err
}

func (s *Service) describe(ctx context.Context, target adapterclient.Target) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	said, err := s.Describe(ctx, target)
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	if len(said) > maxDescription || json.Unmarshal(said, &object) != nil {
		return nil, fault.New(fault.AdapterInvalid,
			"the adapter's description is not a JSON object of at most %d bytes",
			maxDescription)
	}
	return said, nil
}

// store upserts the registration. At a new address the operations feed is read from its beginning; the former
// description stays until there is another. An adapter that leaves its sandbox loses the account that its publisher
// chose: it now serves all tenants' instances, and only the staff decides which account acts for them.
func store(ctx context.Context, t *tx.Tx, in RegisterInput, said json.RawMessage, unreached error) (*db.Adapter,
	error) {
	var before any
	old, err := t.Adapter.Query().Where(dbadapter.Name(in.Name)).ForUpdate().Only(ctx)
	if err != nil && !db.IsNotFound(err) {
		return nil, fmt.Errorf("load adapter %s: %w", in.Name, err)
	}
	if old != nil {
		before = map[string]any{"url": old.URL, "authority": fingerprint(old.Authority), "narrowCalls": old.NarrowCalls,
			"sandbox": old.ProjectID, "serviceAccountId": old.ServiceAccountID}
	}
	var seen *time.Time
	if said != nil {
		seen = &t.Now
	}
	_, err = t.Exec(ctx, `INSERT INTO adapter (id, name, url, description, last_seen_at, last_error, created_at,
		authority, narrow_calls, service_account_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, coalesce($9, false), nullif($10, ''))
		ON CONFLICT (name) DO UPDATE SET url = excluded.url, authority = excluded.authority, description
		= coalesce(excluded.description, adapter.description),
		last_seen_at = coalesce(excluded.last_seen_at, adapter.last_seen_at), last_error = excluded.last_error,
		narrow_calls = coalesce($9, adapter.narrow_calls), tenant_id = NULL, project_id = NULL,
		service_account_id = CASE WHEN $10::text IS NOT NULL THEN nullif($10, '')
			WHEN adapter.project_id IS NULL THEN adapter.service_account_id END,
		feed_epoch = CASE WHEN adapter.url = excluded.url THEN adapter.feed_epoch ELSE '' END,
		feed_cursor = CASE WHEN adapter.url = excluded.url THEN adapter.feed_cursor ELSE '' END`,
		ids.New(ids.Adapter), in.Name, in.URL, said, seen, text(unreached), t.Now, *in.Authority, in.NarrowCalls,
		in.ServiceAccountID)
	if err != nil {
		return nil, fmt.Errorf("register adapter %s: %w", in.Name, err)
	}
	row, err := t.Adapter.Query().Where(dbadapter.Name(in.Name)).Only(ctx)
	if err != nil {
		return nil, fmt.Errorf("load adapter %s: %w", in.Name, err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: "registerAdapter", Key: authz.AdapterRegister, ObjectID: row.ID,
		Before: before,
		After: map[string]any{"name": in.Name, "url": in.URL, "authority": fingerprint(*in.Authority),
			"described": said != nil, "narrowCalls": row.NarrowCalls, "serviceAccountId": row.ServiceAccountID}})
}

// fingerprint names an authority in the audit by its SHA-256, hexadecimal; "" for none.
func fingerprint(authority string) string {
	if authority == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(authority))
	return hex.EncodeToString(sum[:])
}

// text returns why the adapter could not be reached, for a person.
func text(err error) string {
	if err == nil {
		return ""
	}
	message := "the adapter cannot be reached"
	if refused, ok := fault.As(err); ok {
		message = refused.Message
	} else if errors.Is(err, context.DeadlineExceeded) {
		message = "the adapter did not answer in time"
	}
	if runes := []rune(message); len(runes) > maxError {
		message = string(runes[:maxError])
	}
	return message
}

// Adapters lists the registered adapters by name. Key: adapter.read on the platform.
func (s *Service) Adapters(ctx context.Context, args page.Args) (*page.Page[*db.Adapter], error) {
	const list = "adapters"
	var after string
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	var found []*db.Adapter
	actor, err := s.DB.Read(ctx, tx.Rows(&found, rows.Adapter,
		`SELECT `+rows.AdapterColumns+` FROM adapter WHERE name > $1 ORDER BY name LIMIT $2`, after, args.First+1))
	if err != nil {
		return nil, err
	}
	if err := authz.Require(actor, authz.AdapterRead, "", ""); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *db.Adapter) string { return page.Cursor(list, row.Name) }), nil
}

// Adapter reads one registration. Key: adapter.read on the platform, or sandbox.manage on the project whose it is.
func (s *Service) Adapter(ctx context.Context, id ids.ID) (*db.Adapter, error) {
	var row *db.Adapter
	actor, err := s.DB.Read(ctx, tx.Row(&row, rows.Adapter, `SELECT `+rows.AdapterColumns+`
		FROM adapter WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	if row != nil && row.ProjectID != nil && actor.Allows(authz.SandboxManage, *row.TenantID, *row.ProjectID) {
		return row, nil
	}
	if err := authz.Require(actor, authz.AdapterRead, "", ""); err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fault.NoSuch()
	}
	return row, nil
}
