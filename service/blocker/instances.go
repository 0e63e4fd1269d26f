package blocker

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodehealth"
)

// instanceRow is an instance as it was read.
type instanceRow struct {
	blocker.Instance
	family, adapter string
}

// instancesSQL reads instances with their newest operation. $2 says whether the reading is about instances themselves:
// columns that only such a reading shows are NULL otherwise.
const instancesSQL = `SELECT i.id, i.permission_family, i.runtime_backend, i.status, i.health, i.health_message,
	i.observed_at IS NOT NULL,
		coalesce(e.occurred_at, i.observed_at, i.created_at), i.failure_code, i.failure_message, i.failure_owner, i.drift,
		i.app_slug,
		i.app_version, coalesce(m.stage, ''), r.ended, i.created_at, i.updated_at,
		l.id, l.kind, l.state, l.error_code, l.error_message, l.error_owner, l.ended_at, l.error_retryable,
		CASE WHEN $2 THEN platform.names_inspections(m.document) END, i.repair_stopped
	FROM instance i
	LEFT JOIN manifest m ON m.id = i.manifest_id
	LEFT JOIN operation l ON l.id = i.last_operation_id
	LEFT JOIN LATERAL (SELECT max(coalesce(g.revoked_at, g.expires_at)) AS ended FROM entitlement g
	WHERE g.project_id = i.project_id AND g.app_slug = i.app_slug
		AND NOT EXISTS (SELECT FROM entitlement h WHERE h.project_id = i.project_id AND h.app_slug = i.app_slug
		AND h.revoked_at IS NULL
			AND (h.expires_at IS NULL OR h.expires_at > now()))) r ON $2
	LEFT JOIN LATERAL (SELECT v.occurred_at FROM (SELECT x.type, x.occurred_at, x.seq FROM app_instance_event x
			WHERE x.instance_id = i.id ORDER BY x.seq DESC LIMIT ` + maxEvents + `) v
		WHERE v.type IN ('apps.instance.healthy', 'apps.instance.degraded', 'apps.instance.unhealthy') ORDER BY v.seq DESC
		LIMIT 1) e ON $2
	WHERE i.id IN ({instances}) AND i.released_at IS NULL`

func (r *reading) addInstance(rows pgx.Rows) error {
	var in instanceRow
	var code, message string
	var drift []byte
	var updated time.Time
	var last struct {
		id                                ids.ID
		kind, state, code, message, owner *string
		ended                             *time.Time
		retryable                         *bool
	}
	var lastID *ids.ID
	var inspects *bool
	err := rows.Scan(&in.ID, &in.family, &in.adapter, &in.Status, &in.Health, &in.HealthMessage, &in.Observed,
		&in.HealthSince, &code, &message, &in.FailureOwner, &drift, &in.AppSlug,
		&in.AppVersion, &in.ManifestStage, &in.EntitlementEnded, &in.Created, &updated,
		&lastID, &last.kind, &last.state, &last.code, &last.message, &last.owner, &last.ended,
		&last.retryable, &inspects,
		&in.RepairStopped)
	if err != nil {
		return err
	}
	in.Inspects = inspects != nil && *inspects
	in.Failure, in.FailedAt = code+": "+message, updated
	in.Drift = drifts(drift, updated)
	if lastID != nil {
		in.Last = &blocker.Last{ID: *lastID, Kind: lifecycle.OperationKind(*last.kind),
			State: lifecycle.OperationState(*last.state),
			Code:  *last.code, Message: *last.message, Owner: *last.owner, Retryable: *last.retryable}
		if last.ended != nil {
			in.Last.Ended = *last.ended
		}
		if in.Last.State == lifecycle.OperationFailed && in.Last.Kind == lifecycle.InstanceCreate {
			in.FailedAt = in.Last.Ended
		}
	}
	in.Open = slices.ContainsFunc(r.found, func(op *openOperation) bool {
		return op.instance != nil && *op.instance == in.ID
	})
	r.instances[in.ID] = &in
	return nil
}

// drifts reads the instance's drift as the reconciler writes it.
func drifts(raw []byte, seen time.Time) (list []blocker.Drift) {
	var stored []struct {
		Code, Message, MemberID string
		Since                   time.Time
	}
	if len(raw) == 0 || json.Unmarshal(raw, &stored) != nil {
		return nil
	}
	for _, one := range stored {
		if one.Since.IsZero() {
			one.Since = seen
		}
		list = append(list, blocker.Drift{Code: one.Code, Message: one.Message, MemberID: one.MemberID,
			Since: one.Since})
	}
	return list
}

// ofInstance are the facts of an instance, without its operations.
func (r *reading) ofInstance(in *instanceRow) *blocker.Facts {
	return &blocker.Facts{
		Now: r.now, Workers: r.workers, Instance: &in.Instance, Family: in.family, AdapterName: in.adapter,
		Adapter: r.adapters[in.adapter],
		Members: r.members[in.ID], Allocations: r.allocationsOf(in.ID, r.members[in.ID]), Orphans: r.orphans[in.ID],
	}
}

func (r *reading) ofOperations(in *instanceRow) []*blocker.Facts {
	var all []*blocker.Facts
	for _, op := range r.found {
		if op.instance != nil && *op.instance == in.ID {
			all = append(all, r.ofOperation(op, false))
		}
	}
	return all
}

// membersSQL reads the members that are not well, or whose node or allocation is not.
var membersSQL = `SELECT m.instance_id, m.id, m.component_key, m.ordinal, m.status, m.health_message, m.allocation_id,
	m.updated_at,
		n.id, n.name, n.status, coalesce(n.last_seen_at, n.created_at), n.walls, n.conditions, n.drain
	FROM member m LEFT JOIN compute_node n ON n.id = m.node_id LEFT JOIN allocation a ON a.id = m.allocation_id
	WHERE m.instance_id IN ({instances}) AND NOT m.removed AND (m.status = 'FAILED' OR n.status <> 'ONLINE'
		OR n.last_seen_at < now() - interval '` + fmt.Sprintf("%d seconds",
	int(blocker.NodeSilence.Seconds())) + `' OR a.status <> 'READY' OR n.walls -> 'classes' = '[]'
		OR jsonb_path_exists(n.conditions, '$[*] ? (@.state == "BAD" || @.state == "UNKNOWN")') OR n.drain ->> 'ending' = 'false')
	ORDER BY m.instance_id, m.component_key, m.ordinal LIMIT ` + maxMembers

func (r *reading) addMember(rows pgx.Rows) error {
	var of ids.ID
	var m blocker.Member
	var key string
	var ordinal int
	var node struct {
		id, name, status *string
		seen             *time.Time
		walls            *isolation.Walls
		conditions       []nodehealth.Condition
		drain            *nodehealth.Drain
	}
	if err := rows.Scan(&of, &m.ID, &key, &ordinal, &m.Status, &m.Reason, &m.Allocation, &m.Changed, &node.id,
		&node.name, &node.status, &node.seen,
		&node.walls, &node.conditions, &node.drain); err != nil {
		return err
	}
	m.Name = fmt.Sprintf("%s %d", key, ordinal)
	if node.id != nil {
		m.Node = &blocker.Node{ID: *node.id, Name: *node.name, Status: lifecycle.NodeStatus(*node.status),
			Seen:      *node.seen,
			Startless: node.walls.Startless(), Barring: nodehealth.Barring(node.conditions), Drain: node.drain}
	}
	r.members[of] = append(r.members[of], m)
	return nil
}

// allocationRow is an allocation that is not READY.
type allocationRow struct {
	blocker.Allocation
	instance *ids.ID
}

const allocationsSQL = `SELECT a.id, a.instance_id, a.status, coalesce(a.release_operation_id, ''),
		coalesce(a.released_at, o.created_at, a.created_at)
	FROM (SELECT x.id FROM allocation x WHERE x.instance_id IN ({instances})
		UNION SELECT m.allocation_id FROM member m WHERE m.instance_id IN ({instances}) AND NOT m.removed
		UNION SELECT w.allocation_id FROM operation w WHERE w.id IN ({operations})) t
	JOIN allocation a ON a.id = t.id LEFT JOIN operation o ON o.id = a.release_operation_id
	WHERE a.status <> 'READY' ORDER BY a.id LIMIT ` + maxAllocations

func (r *reading) addAllocation(rows pgx.Rows) error {
	var a allocationRow
	if err := rows.Scan(&a.ID, &a.instance, &a.Status, &a.Release, &a.Since); err != nil {
		return err
	}
	r.allocations = append(r.allocations, a)
	return nil
}

// allocationsOf are those that an instance is bound to, or that its members live in.
func (r *reading) allocationsOf(instance ids.ID, members []blocker.Member) (list []blocker.Allocation) {
	for _, one := range r.allocations {
		bound := one.instance != nil && *one.instance == instance
		lived := slices.ContainsFunc(members, func(m blocker.Member) bool {
			return m.Allocation != nil && *m.Allocation == one.ID
		})
		if bound || lived {
			list = append(list, one.Allocation)
		}
	}
	return list
}
