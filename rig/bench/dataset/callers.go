package dataset

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// sessionLife is longer than any run.
const sessionLife = 4 * time.Hour

// Caller is a logged-in person and a project that the person administers.
type Caller struct {
	// Token is the session's secret.
	Token string
	// Number is the project's, for Project and InstancesOf.
	Number int
}

// Tenant returns the tenant of a caller's project.
func (s *Set) Tenant(who Caller) ids.ID { return s.Size.tenantOf(who.Number) }

// Callers logs people of n projects in, spread over all.
func (s *Set) Callers(ctx context.Context, n int) ([]Caller, error) {
	callers := make([]Caller, n)
	for i := range callers {
		text, secret := token.Mint(token.Session)
		number := i * s.Size.projects() / n
		if err := s.session(ctx, secret, number); err != nil {
			return nil, err
		}
		callers[i] = Caller{Token: text, Number: number}
	}
	return callers, nil
}

// Free is an allocation that nothing uses, with one who may launch into it.
type Free struct {
	Allocation, Project ids.ID
	Caller              Caller
}

// Allocations makes n allocations that can be launched into, on fresh nodes, dealt to the callers'
// projects in turn.
func (s *Set) Allocations(ctx context.Context, callers []Caller, n int) ([]Free, error) {
	made := make([]Free, n)
	for i := range made {
		who := callers[i%len(callers)]
		number := who.Number
		node := ids.New(ids.Node)
		made[i] = Free{Allocation: ids.New(ids.Allocation), Project: Project(number), Caller: who}
		_, err := s.Admin.Exec(ctx, `WITH n AS (INSERT INTO compute_node (id, name, address, status, cpus, memory_mib,
			gpus,
			gpus_simulated,
				isolation, sealing_key, last_seen_at, created_at)
				VALUES ($1::text, $1::text, '192.0.2.1', 'ONLINE', 8, 16384, 8, true, 'NAMESPACE',
				'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=', `+heard+`, now()))
			INSERT INTO allocation (id, tenant_id, project_id, name, shape, gpu_count, status, node_id, created_at)
			VALUES ($2::text, $3, $4, $2::text, 'BAREMETAL', 8, 'READY', $1::text,
			now())`, node, made[i].Allocation, s.Size.tenantOf(number), made[i].Project)
		if err != nil {
			return nil, fmt.Errorf("make an allocation: %w", err)
		}
	}
	return made, nil
}

// AdapterAt says where the catalog's adapter is to be found.
func (s *Set) AdapterAt(ctx context.Context, address string) error {
	_, err := s.Admin.Exec(ctx,
		`UPDATE adapter SET url = $2, feed_epoch = '', feed_cursor = '', feed_holder = NULL
			WHERE name = $1`, AdapterName,
		address)
	if err != nil {
		return fmt.Errorf("place the adapter: %w", err)
	}
	return nil
}

// Watched makes an instance without events, and logs one who may read it in n times.
func (s *Set) Watched(ctx context.Context, n int) (instance ids.ID, tokens []string, err error) {
	instance = ids.New(ids.Instance)
	_, err = s.Admin.Exec(ctx, `INSERT INTO instance (id, tenant_id, project_id, name, app_slug, app_version,
		permission_family, manifest_id,
		status, health, revision, config, roles, bound_capacity_shape, runtime_backend, correlation_id, created_at,
		updated_at)
		SELECT $1::text, tenant_id, project_id, 'w' || lower(right($1::text, 20)), app_slug, app_version, permission_family,
		manifest_id, status, health,
			0, config, roles, bound_capacity_shape, runtime_backend, 'launch-00000000', now(), now() FROM instance
			WHERE id = $2`, instance, Instance(0))
	if err != nil {
		return "", nil, fmt.Errorf("make an instance to watch: %w", err)
	}
	for range n {
		text, secret := token.Mint(token.Session)
		if err := s.session(ctx, secret, 0); err != nil {
			return "", nil, err
		}
		tokens = append(tokens, text)
	}
	return instance, tokens, nil
}

// Cursor is the place after so many events of a timeline.
func Cursor(events int) string { return event.InstanceCursor(event.Position{Order: int64(events)}) }

// session stores a session of the first person who administers a project.
func (s *Set) session(ctx context.Context, secret token.Secret, project int) error {
	return s.sessionOf(ctx, secret, ID(ids.User, project/s.Size.Projects))
}

func (s *Set) sessionOf(ctx context.Context, secret token.Secret, person ids.ID) error {
	_, err := s.Admin.Exec(ctx,
		`INSERT INTO session (id, user_id, secret_hash, expires_at, created_at) VALUES ($1, $2, $3, $4, now())`,
		secret.ID, person, secret.Hash, time.Now().Add(sessionLife))
	if err != nil {
		return fmt.Errorf("log a caller in: %w", err)
	}
	return nil
}

// Endpoint is the endpoint that the catalog's manifest declares.
const Endpoint = "bytes"

// Reach is an endpoint of an instance with one who may connect to it, and what its node's agent connects with.
type Reach struct {
	Instance, Member, Node ids.ID
	// Caller is a session's secret, and Agent the node's credential.
	Caller, Agent string
}

// Reach returns the first instance's endpoint at its first member. ForgetReach deletes what was created for it.
func (s *Set) Reach(ctx context.Context) (made Reach, err error) {
	made = Reach{Instance: Instance(0), Member: ID(ids.Member, 0), Node: ID(ids.Node, 0)}
	var session, node token.Secret
	made.Caller, session = token.Mint(token.Session)
	made.Agent, node = token.Mint(token.Node)
	if err := s.session(ctx, session, 0); err != nil {
		return made, err
	}
	_, err = s.Admin.Exec(ctx, `INSERT INTO node_credential (id, node_id, secret_hash, expires_at, created_at)
		VALUES ($1, $2, $3, $4, now())`, node.ID, made.Node, node.Hash, time.Now().Add(sessionLife))
	if err != nil {
		return made, fmt.Errorf("give a node a credential: %w", err)
	}
	return made, nil
}

// ForgetReach deletes what Reach created.
func (s *Set) ForgetReach(ctx context.Context, made Reach) error {
	_, err := s.Admin.Exec(ctx, `DELETE FROM node_credential WHERE node_id = $1`, made.Node)
	return err
}
