package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Secret is a fresh credential. No other call returns its token.
type Secret struct {
	Token     string
	ExpiresAt time.Time
}

// EnrolmentInput describes an enrolment: the name that its node must have, and how long it is valid.
type EnrolmentInput struct {
	Name       string // empty for any
	TTLMinutes int
}

// CreateEnrolment mints a one-time enrolment. With the name of a node that exists it is for that
// node, which gets a new credential and keeps its id. It requires node.enrol on the platform.
//
// Faults: INVALID_ARGUMENT, FORBIDDEN, CONFLICT when the name belongs to a retired node.
func (s *Service) CreateEnrolment(ctx context.Context, in EnrolmentInput) (*Secret, error) {
	wrong := &check.Input{}
	if in.Name != "" {
		hostName(wrong, "input.name", in.Name)
	}
	whole(wrong, "input.ttlMinutes", in.TTLMinutes, 1, maxTTLMinutes)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	var out *Secret
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		if err := audit.Require(t, "createNodeEnrolment", authz.NodeEnrol, authz.Object{}, ""); err != nil {
			return err
		}
		node, known, err := nodeFor(ctx, t, in.Name)
		if err != nil {
			return err
		}
		text, secret := token.Mint(token.Enrolment)
		expires := t.Now.Add(time.Duration(in.TTLMinutes) * time.Minute)
		_, err = t.Exec(ctx, `INSERT INTO node_enrolment (id, name, secret_hash, expires_at, node_id, created_at)
			VALUES ($1, $2, $3, $4, $5, $6)`,
			secret.ID, in.Name, secret.Hash, expires, node, t.Now)
		if err != nil {
			return fmt.Errorf("create an enrolment: %w", err)
		}
		out = &Secret{Token: text, ExpiresAt: expires}
		return audit.Write(ctx, t, audit.Entry{
			Action: "createNodeEnrolment", Key: authz.NodeEnrol, ObjectID: secret.ID,
			After: map[string]any{"name": in.Name, "node": node, "again": known, "expiresAt": expires},
		})
	})
	return out, err
}

// nodeFor returns the id that the enrolled node will have: that of the node of this name, or a new one.
func nodeFor(ctx context.Context, t *tx.Tx, name string) (id ids.ID, known bool, err error) {
	var status lifecycle.NodeStatus
	err = t.QueryRow(ctx, `SELECT id, status FROM compute_node WHERE name = $1
		AND deleted_at IS NULL`, name).Scan(&id, &status)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ids.New(ids.Node), false, nil
	case err != nil:
		return "", false, fmt.Errorf("find node %s: %w", name, err)
	case status == lifecycle.NodeRetired:
		return "", false, fault.New(fault.Conflict,
			"the name %q belongs to a retired node; delete that, or use another name",
			name).At("input.name").Retry(false)
	}
	return id, true, nil
}

// EnrolInput is how an agent enrols its node.
type EnrolInput struct {
	Name, Address, SealingKey, AgentVersion, BootID string
	Inventory                                       Inventory
}

// Enrolled is a node with its first credential.
type Enrolled struct {
	Node *db.ComputeNode
	Secret
}

// Enrol creates the calling enrolment's node, or takes it over again: its earlier credentials end. The
// enrolment is spent. A new node is OFFLINE until its first heartbeat. It requires node.join.
//
// Faults: INVALID_ARGUMENT, FORBIDDEN, UNAUTHENTICATED when the enrolment was used meanwhile, CONFLICT
// when the name is another node's, FAILED_PRECONDITION when the node was retired meanwhile.
func (s *Service) Enrol(ctx context.Context, in EnrolInput) (*Enrolled, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var out *Enrolled
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		if err := audit.Require(t, "enrolNode", authz.NodeJoin, object(t.Actor), t.Actor.NodeID); err != nil {
			return err
		}
		if t.Actor.Name != "" && t.Actor.Name != in.Name {
			return fault.New(fault.InvalidArgument, "the enrolment is for the name %q", t.Actor.Name).At("input.name")
		}
		if err := spend(ctx, t); err != nil {
			return err
		}
		row, err := in.write(ctx, t)
		if err != nil {
			return err
		}
		secret, err := s.mint(ctx, t, row.ID)
		if err != nil {
			return err
		}
		out = &Enrolled{Node: row, Secret: *secret}
		t.Wake(event.NodesTopic)
		return audit.Write(ctx, t, audit.Entry{
			Action: "enrolNode", Key: authz.NodeJoin, Object: object(t.Actor), ObjectID: row.ID,
			After: map[string]any{"name": row.Name, "address": row.Address, "enrolment": t.Actor.ID, "gpus": row.Gpus,
				"gpusSimulated": row.GpusSimulated},
		})
	})
	return out, err
}

// check refuses input that is wrong by itself.
func (in *EnrolInput) check() error {
	wrong := &check.Input{}
	hostName(wrong, "input.name", in.Name)
	address(wrong, "input.address", in.Address)
	sealingKey(wrong, "input.sealingKey", in.SealingKey)
	agent(wrong, in.AgentVersion, in.BootID)
	in.Inventory.check(wrong, "input.inventory")
	return wrong.Err()
}

func agent(in *check.Input, version, bootID string) {
	in.Text("input.agentVersion", version, 1, 64)
	in.Text("input.bootId", bootID, 1, 128)
}

// spend uses up the calling enrolment and ends the node's earlier credentials.
func spend(ctx context.Context, t *tx.Tx) error {
	tag, err := t.Exec(ctx, `UPDATE node_enrolment SET used_at = $2 WHERE id = $1
		AND used_at IS NULL`, t.Actor.ID, t.Now)
	if err != nil {
		return fmt.Errorf("use enrolment %s: %w", t.Actor.ID, err)
	}
	if tag.RowsAffected() == 0 {
		return fault.New(fault.Unauthenticated, "the enrolment was used already")
	}
	_, err = t.Exec(ctx, `UPDATE node_credential SET revoked_at = $2 WHERE node_id = $1 AND revoked_at IS NULL`,
		t.Actor.NodeID, t.Now)
	if err != nil {
		return fmt.Errorf("end the credentials of %s: %w", t.Actor.NodeID, err)
	}
	return nil
}

const enrolSQL = `INSERT INTO compute_node (id, name, address, status, region, sku, cpus, memory_mib, gpus, gpu_model,
	gpus_simulated, isolation,
	sealing_key, agent_version, boot_id, kernel, labels, created_at, walls, devices, storage)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
	ON CONFLICT (id) DO UPDATE SET address = excluded.address, region = excluded.region, sku = excluded.sku, cpus
	= excluded.cpus,
	memory_mib = excluded.memory_mib, gpus = excluded.gpus, gpu_model = excluded.gpu_model, gpus_simulated
	= excluded.gpus_simulated,
	isolation = excluded.isolation, sealing_key = excluded.sealing_key, agent_version = excluded.agent_version, boot_id
	= excluded.boot_id,
	booted_at = CASE WHEN compute_node.boot_id <> excluded.boot_id THEN excluded.created_at
	ELSE compute_node.booted_at END,
	kernel = excluded.kernel, labels = excluded.labels, walls = excluded.walls, devices = excluded.devices, storage = excluded.storage
	WHERE compute_node.status <> 'RETIRED' RETURNING ` + rows.ComputeNodeColumns

func (in *EnrolInput) write(ctx context.Context, t *tx.Tx) (*db.ComputeNode, error) {
	v := in.Inventory
	row, err := one(ctx, t, enrolSQL, t.Actor.NodeID, in.Name, in.Address, lifecycle.NodeOffline, v.Region,
		v.SKU, v.CPUs, v.MemoryMiB, v.GPUs,
		v.GPUModel, v.GPUsSimulated, v.Isolation, in.SealingKey, in.AgentVersion, in.BootID, v.Kernel,
		document(v.Labels),
		t.Now, v.Walls, devices(v.Devices), storages(v.Storage))
	switch {
	case tx.Violates(err, "compute_node_name_key"):
		return nil, fault.New(fault.Conflict, "another node is named %q", in.Name).At("input.name").Retry(false)
	case err != nil:
		return nil, fmt.Errorf("enrol node %s: %w", in.Name, err)
	case row == nil:
		return nil, fault.New(fault.FailedPrecondition, "node %q is retired", in.Name).At("input.name")
	}
	return row, nil
}

// mint makes a credential of the node.
func (s *Service) mint(ctx context.Context, t *tx.Tx, node ids.ID) (*Secret, error) {
	text, secret := token.Mint(token.Node)
	expires := t.Now.Add(s.life())
	_, err := t.Exec(ctx, `INSERT INTO node_credential (id, node_id, secret_hash, expires_at, created_at)
		VALUES ($1, $2, $3, $4, $5)`,
		secret.ID, node, secret.Hash, expires, t.Now)
	if err != nil {
		return nil, fmt.Errorf("mint a credential of %s: %w", node, err)
	}
	return &Secret{Token: text, ExpiresAt: expires}, nil
}

// Rotate mints a fresh credential of the calling node. The one in use works until the fresh one is
// first used; one that was minted before and never used ends now. It requires node.report.
// Faults: FORBIDDEN.
func (s *Service) Rotate(ctx context.Context) (*Secret, error) {
	var out *Secret
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		if err := audit.Require(t, "rotateNodeCredential", authz.NodeReport, object(t.Actor),
			t.Actor.NodeID); err != nil {
			return err
		}
		_, err := t.Exec(ctx, `UPDATE node_credential SET revoked_at = $3
			WHERE node_id = $1 AND id <> $2 AND first_used_at IS NULL AND
			revoked_at IS NULL`, t.Actor.NodeID, t.Actor.CredentialID, t.Now)
		if err != nil {
			return fmt.Errorf("end the unused credentials of %s: %w", t.Actor.NodeID, err)
		}
		if out, err = s.mint(ctx, t, t.Actor.NodeID); err != nil {
			return err
		}
		return audit.Write(ctx, t, audit.Entry{
			Action: "rotateNodeCredential", Key: authz.NodeReport, Object: object(t.Actor), ObjectID: t.Actor.NodeID,
			After: map[string]any{"expiresAt": out.ExpiresAt},
		})
	})
	return out, err
}
