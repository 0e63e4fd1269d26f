package endpoint

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Wanted is the endpoint that a caller wants to reach.
type Wanted struct {
	InstanceID ids.ID
	// Endpoint is its name in the manifest.
	Endpoint string
	// MemberID is one member that serves it; empty for any.
	MemberID ids.ID
	// Spread chooses among several members: equal values get the same one for as long as the members are the same.
	Spread string
}

// Target is where an endpoint is served.
type Target struct {
	Instance *db.Instance
	Endpoint *manifest.Endpoint
	Key      authz.Key
	// MemberID serves it, on NodeID.
	MemberID, NodeID ids.ID
	// Actor is the caller.
	Actor *authz.Actor
}

const (
	instanceSQL = `SELECT ` + rows.InstanceColumns + ` FROM instance WHERE id = $1`
	manifestSQL = `SELECT ` + rows.ManifestColumns +
		` FROM manifest WHERE id = (SELECT manifest_id FROM instance WHERE id = $1)`
	openedSQL = `SELECT true FROM endpoint_opening WHERE id = $1 AND instance_id = $2 AND endpoint = $3`
	// membersSQL finds members in service on a node; choose prefers healthy ones.
	membersSQL = `SELECT ` + rows.MemberColumns + ` FROM member WHERE instance_id = $1 AND node_id IS NOT NULL
		AND status IN ('ACTIVE', 'DRAINING', 'DRAINED') ORDER BY component_key, ordinal LIMIT 1000`
)

// Find returns where an endpoint is served, to who holds the permission key that it declares on the instance's project.
//
// Faults: NOT_FOUND (the instance, also when it is hidden; the endpoint; the member, when it does not serve it),
// FORBIDDEN, FAILED_PRECONDITION when no member is in service that serves it.
func (s *Service) Find(ctx context.Context, wanted Wanted) (*Target, error) {
	var instance *db.Instance
	var stored *db.Manifest
	var members []*db.Member
	var opened []bool
	queries := []tx.Query{tx.Row(&instance, rows.Instance, instanceSQL, wanted.InstanceID),
		tx.Row(&stored, rows.Manifest, manifestSQL, wanted.InstanceID),
		tx.Rows(&members, rows.Member, membersSQL, wanted.InstanceID)}
	credential, _ := tx.CredentialFrom(ctx)
	byCookie := credential.RowID().Is(ids.Opening)
	if byCookie {
		queries = append(queries, tx.Rows(&opened, pgx.RowTo[bool], openedSQL, credential.RowID(), wanted.InstanceID,
			wanted.Endpoint))
	}
	actor, err := s.DB.Read(ctx, queries...)
	switch {
	case err != nil:
		return nil, err
	case byCookie && len(opened) == 0: // it acts as whoever opened it, and for what they opened alone
		return nil, fault.New(fault.Unauthenticated, "open this endpoint from the console")
	}
	if instance == nil || stored == nil {
		return nil, fault.NoSuch()
	}
	found, err := target(actor, instance, stored, wanted.Endpoint)
	if err != nil {
		return nil, err
	}
	if err := authz.RequireOn(actor, found.Key, object(instance)); err != nil {
		return nil, err
	}
	return found, found.choose(members, wanted)
}

// target finds the endpoint in the manifest. Who may not read the instance does not learn which there are.
func target(actor *authz.Actor, instance *db.Instance, stored *db.Manifest, name string) (*Target, error) {
	document, err := manifest.Parse(stored.Document)
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", stored.ID, err)
	}
	endpoint, ok := document.Endpoint(name)
	if !ok {
		read, err := authz.FamilyKey(instance.PermissionFamily, "instance.read")
		if err == nil {
			err = authz.RequireOn(actor, read, object(instance))
		}
		if err != nil {
			return nil, err
		}
		return nil, fault.New(fault.NotFound, "app %q has no endpoint %.40q", instance.AppSlug, name).
			At("input.endpoint")
	}
	key, err := authz.ParseKey(endpoint.PermissionKey)
	return &Target{Instance: instance, Endpoint: endpoint, Key: key, Actor: actor}, err
}

// choose takes one of the members that serve the endpoint.
func (t *Target) choose(members []*db.Member, wanted Wanted) error {
	var serving, healthy []*db.Member
	for _, member := range members {
		if member.ComponentKey != t.Endpoint.ComponentKey || wanted.MemberID != "" && member.ID != wanted.MemberID {
			continue
		}
		serving = append(serving, member)
		if member.Status == lifecycle.MemberActive && member.Health != lifecycle.HealthUnhealthy {
			healthy = append(healthy, member)
		}
	}
	if len(healthy) > 0 {
		serving = healthy
	}
	if len(serving) == 0 {
		if wanted.MemberID != "" {
			return fault.New(fault.NotFound, "member %.40q serves no endpoint %q of this instance", wanted.MemberID,
				t.Endpoint.Name).At("input.memberId")
		}
		return fault.New(fault.FailedPrecondition, "no member in service serves endpoint %q: instance %s is %s",
			t.Endpoint.Name, t.Instance.ID, t.Instance.Status).At("input.endpoint")
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(wanted.Spread))
	chosen := serving[int(sum.Sum32())%len(serving)]
	t.MemberID, t.NodeID = chosen.ID, *chosen.NodeID
	return nil
}

// object is what authorisation looks at in an instance.
func object(row *db.Instance) authz.Object {
	return authz.Object{TenantID: row.TenantID, ProjectID: row.ProjectID, InstanceID: row.ID,
		AppSlug: row.AppSlug}
}

// Holder returns the process that holds the tunnel of a node, and where it is reached; NODE_UNREACHABLE when none does.
func (s *Service) Holder(ctx context.Context, node ids.ID) (process, address string, err error) {
	err = s.DB.As(ctx, nil, func(ctx context.Context, t *tx.Tx) error {
		return t.QueryRow(ctx, `SELECT process_id, address FROM node_tunnel WHERE node_id = $1`, node).Scan(&process,
			&address)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", "", Away()
	case err != nil:
		return "", "", fmt.Errorf("find the tunnel of %s: %w", node, err)
	}
	return process, address, nil
}

// Away is the answer while no process holds the tunnel of a node.
func Away() error {
	return fault.New(fault.NodeUnreachable, "the node's agent is not connected; try again in a moment").Retry(true)
}
