package instance

import (
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Brief says of which rows an answer needs only a part: whether all that it shows of an instance is among PageFields,
// of its members among MemberFields, and of the others among the BriefFields and StepFields of their packages.
type Brief struct{ Instance, Members, Events, LastOperation, Steps bool }

// BriefFields are the fields of the API's Instance that a brief list has; every other one needs whole rows.
var BriefFields = rows.Fields{
	"id": {"id"}, "name": {"name"}, "tenantId": {"tenant_id"}, "projectId": {"project_id"}, "appSlug": {"app_slug"},
	"appVersion": {"app_version"}, "permissionFamily": {"permission_family"}, "status": {"status"},
	"health":        {"health"},
	"healthMessage": {"health_message"}, "revision": {"revision"}, "boundCapacityShape": {"bound_capacity_shape"},
	"operatingMode": {"operating_mode"}, "controlPlaneScope": {"control_plane_scope"},
	"runtimeBackend": {"runtime_backend"},
	"smoke":          {"smoke"}, "system": {"system"}, "generation": {"generation"}, "observedAt": {"observed_at"},
	"correlationId": {"correlation_id"}, "createdAt": {"created_at"}, "updatedAt": {"updated_at"},
	"releasedAt": {"released_at"}, "unservedAt": {"unserved_at"}, "repairStopped": {"repair_stopped"},
	"failure": {"failure_code", "failure_message", "failure_owner", "failure_retryable"},
	"roles":   {"roles"}, "roles.componentKey": nil, "roles.displayName": nil, "roles.desired": nil,
	"roles.current": nil,
	"roles.healthy": nil, "roles.summary": nil, "roles.runtimeState": nil,
	"lastOperation": {"last_operation_id"},
}

// PageFields are the fields of the API's Instance that its page shows: BriefFields, its configuration, and what leads
// to other rows.
var PageFields = func() rows.Fields {
	more := rows.Fields{"config": {"config"}, "allocations": nil, "operations": nil, "blockers": nil, "orphans": nil}
	maps.Copy(more, BriefFields)
	return more
}()

// MemberFields are the fields of the API's Member that a brief page of members has.
var MemberFields = rows.Fields{
	"id": {"id"}, "instanceId": {"instance_id"}, "componentKey": {"component_key"}, "index": {"ordinal"},
	"status":   {"status"},
	"cordoned": {"cordoned"}, "health": {"health"}, "healthMessage": {"health_message"}, "createdAt": {"created_at"},
	"updatedAt": {"updated_at"}, "allocation": {"allocation_id"}, "node": {"node_id"},
}

// judged are the columns of an instance by which every answer is authorised; see object.
var judged = []string{"id", "tenant_id", "project_id", "app_slug", "permission_family"}

var (
	brief       = rows.PartOf(rows.InstanceTable, BriefFields, judged...)
	onPage      = rows.PartOf(rows.InstanceTable, PageFields, judged...)
	briefMember = rows.PartOf(rows.MemberTable, MemberFields)
)

// scanBrief reads a row of brief.
func scanBrief(row pgx.CollectableRow) (*View, error) { return viewOf(brief.Scan(row)) }

// scanOnPage reads a row of onPage.
func scanOnPage(row pgx.CollectableRow) (*View, error) { return viewOf(onPage.Scan(row)) }
