package explain

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// asked is a subject as its row says.
type asked struct {
	subject authz.Subject
	allow   []string
	lapsed  []string // of those, what its maker may not give any more
	barred  string
}

// load reads the subject and the object in one round trip, as the caller sees them. NOT_FOUND when either is missing or
// hidden.
func (s *Service) load(ctx context.Context, caller *authz.Actor, who, what ids.ID, c *authz.Case) error {
	var queries []tx.Query
	var object *authz.Object
	var found *asked
	if what != "" {
		query, ok := objectQuery(&object, what)
		if !ok {
			return fault.NoSuch()
		}
		queries = append(queries, query)
	}
	if who == caller.ID {
		found = self(caller)
	} else {
		query, ok := subjectQuery(&found, who)
		if !ok {
			return fault.NoSuch()
		}
		queries = append(queries, query)
	}
	if len(queries) > 0 {
		if _, err := s.DB.Read(ctx, queries...); err != nil {
			return err
		}
	}
	if found == nil || what != "" && object == nil {
		return fault.NoSuch()
	}
	c.Subject, c.Allow, c.Object = found.subject, found.allow, rows.Value(object)
	c.Lapsed, c.Barred = found.lapsed, found.barred
	c.Anywhere = anywhere(what, c.Key)
	return nil
}

// self is the caller as it was let in: the keys of a machine are those of the credential in use.
func self(caller *authz.Actor) *asked {
	found := &asked{subject: caller.Subject}
	if caller.Kind == authz.KindServiceAccount || caller.Kind == authz.KindOperation {
		found.allow = caller.Holds(caller.TenantID, caller.ProjectID).Names()
	}
	return found
}

// subjectQuery reads a subject; false when the id is of none.
func subjectQuery(into **asked, id ids.ID) (tx.Query, bool) {
	switch id.Kind() {
	case ids.User:
		return tx.Row(into, scanPerson, `SELECT id, display_name, tenant_id, disabled_at FROM person
			WHERE id = $1`, id),
			id.Valid()
	case ids.ServiceAccount:
		return tx.Row(into, scanAccount, `SELECT a.id, a.name, a.tenant_id, a.project_id, a.permission_keys, a.limits,
			coalesce(a.deleted_at, p.deleted_at),
			platform.account_voucher(a.id)
			FROM service_account a JOIN project p ON p.id = a.project_id WHERE a.id = $1`, id), id.Valid()
	case ids.Operation:
		return tx.Row(into, scanOperation, `SELECT o.id, o.kind, o.tenant_id, o.project_id, o.instance_id, o.ended_at,
			i.permission_family
			FROM operation o LEFT JOIN instance i ON i.id = o.instance_id WHERE o.id = $1`, id), id.Valid()
	case ids.Node:
		return tx.Row(into, scanNode, `SELECT id, name, status FROM compute_node WHERE id = $1`, id), id.Valid()
	}
	return tx.Query{}, false
}

func scanPerson(row pgx.CollectableRow) (*asked, error) {
	found := &asked{subject: authz.Subject{Kind: authz.KindUser}}
	var tenant *ids.ID
	var disabled *time.Time
	err := row.Scan(&found.subject.ID, &found.subject.Name, &tenant, &disabled)
	found.subject.TenantID = rows.Value(tenant)
	if disabled != nil {
		found.barred = "the person was disabled on " + disabled.UTC().Format(time.RFC3339)
	}
	return found, err
}

func scanAccount(row pgx.CollectableRow) (*asked, error) {
	found := &asked{subject: authz.Subject{Kind: authz.KindServiceAccount}}
	var limits, voucher []byte
	var deleted *time.Time
	err := row.Scan(&found.subject.ID, &found.subject.Name, &found.subject.TenantID, &found.subject.ProjectID,
		&found.allow, &limits, &deleted, &voucher)
	if err == nil && limits != nil {
		err = json.Unmarshal(limits, &found.subject.Limits)
	}
	if err == nil {
		err = found.lapse(voucher)
	}
	if deleted != nil {
		found.barred = "the service account, or its project, was deleted on " + deleted.UTC().Format(time.RFC3339)
	}
	return found, err
}

// lapse notes the keys that the account's maker may not give any more.
func (a *asked) lapse(voucher []byte) error {
	maker, err := tx.ParseVoucher(voucher)
	if err != nil {
		return err
	}
	still := maker.Vouched(a.allow, a.subject.TenantID, a.subject.ProjectID, time.Now())
	for _, name := range a.allow {
		if !slices.Contains(still, name) {
			a.lapsed = append(a.lapsed, name)
		}
	}
	return nil
}

func scanOperation(row pgx.CollectableRow) (*asked, error) {
	found := &asked{subject: authz.Subject{Kind: authz.KindOperation}}
	var instance *ids.ID
	var ended *time.Time
	var family *string
	err := row.Scan(&found.subject.ID, &found.subject.Name, &found.subject.TenantID,
		&found.subject.ProjectID, &instance, &ended, &family)
	if err != nil {
		return nil, err
	}
	found.subject.InstanceID = rows.Value(instance)
	if family != nil {
		found.allow, err = operation.TokenKeys(*family)
	}
	if ended != nil {
		found.barred = "the operation ended on " + ended.UTC().Format(time.RFC3339)
	}
	return found, err
}

func scanNode(row pgx.CollectableRow) (*asked, error) {
	found := &asked{subject: authz.Subject{Kind: authz.KindNode}}
	var status lifecycle.NodeStatus
	err := row.Scan(&found.subject.ID, &found.subject.Name, &status)
	found.subject.NodeID = found.subject.ID
	if status == lifecycle.NodeRetired {
		found.barred = "the node is retired"
	}
	return found, err
}
