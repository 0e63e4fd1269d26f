package explain

import (
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// nothing is the column of what does not apply.
const nothing = `NULL::text`

// of returns a statement that finds where an object of a table is: its tenant, project, instance, node and allocation.
func of(table, tenant, project, instance, node, allocation string) string {
	return `SELECT ` + tenant + `, ` + project + `, ` + instance + `, ` + node + `, ` + allocation + ` FROM ` + table +
		` WHERE id = $1`
}

// owned is of for a row of a project that is of no instance, and part for one that is.
func owned(table string) string {
	return of(table, `tenant_id`, `project_id`, nothing, nothing, nothing)
}

func part(table string) string {
	return of(table, `tenant_id`, `project_id`, `instance_id`, nothing, nothing)
}

// catalog is of for what belongs to no tenant.
func catalog(table string) string { return of(table, nothing, nothing, nothing, nothing, nothing) }

// objects says, for every kind of id that a permission can be about, where such an object is. The columns are those
// that the verbs decide by.
var objects = map[ids.Kind]string{
	ids.Tenant:           of(`tenant`, `id`, nothing, nothing, nothing, nothing),
	ids.Project:          of(`project`, `tenant_id`, `id`, nothing, nothing, nothing),
	ids.User:             of(`person`, `tenant_id`, nothing, nothing, nothing, nothing),
	ids.ServiceAccount:   owned(`service_account`),
	ids.ServiceKey:       owned(`service_account_key`),
	ids.RoleBinding:      owned(`role_binding`),
	ids.Entitlement:      owned(`entitlement`),
	ids.Webhook:          owned(`webhook`),
	ids.WebhookDelivery:  owned(`webhook_delivery`),
	ids.PolicyOverlay:    owned(`policy_overlay`),
	ids.Audit:            owned(`audit_entry`),
	ids.Instance:         of(`instance`, `tenant_id`, `project_id`, `id`, nothing, nothing),
	ids.Allocation:       of(`allocation`, `tenant_id`, `project_id`, `instance_id`, nothing, `id`),
	ids.Member:           part(`member`),
	ids.Event:            of(`app_instance_event`, `tenant_id`, `project_id`, `instance_id`, nothing, `allocation_id`),
	ids.Operation:        part(`operation`),
	ids.OrphanedResource: part(`orphan`),
	ids.ControlPlane:     part(`control_plane_share`),
	ids.RuntimeSecret:    of(`runtime_secret`, `tenant_id`, `project_id`, `instance_id`, `node_id`, nothing),
	ids.NodeTask:         of(`node_task`, `tenant_id`, `project_id`, `instance_id`, `node_id`, nothing),
	ids.Node:             of(`compute_node`, nothing, nothing, nothing, `id`, nothing),
	ids.OperationStep: `SELECT o.tenant_id, o.project_id, o.instance_id, NULL::text, NULL::text
		FROM operation_step s JOIN operation o ON o.id = s.operation_id WHERE s.id = $1`,
	ids.Session: `SELECT p.tenant_id, NULL::text, NULL::text, NULL::text, NULL::text
		FROM session s JOIN person p ON p.id = s.user_id WHERE s.id = $1`,
	ids.App: of(`app`, `publisher_tenant_id`, `publisher_project_id`, nothing, nothing, nothing),
	ids.Manifest: `SELECT a.publisher_tenant_id, a.publisher_project_id, NULL::text, NULL::text, NULL::text
		FROM manifest m JOIN app a ON a.id = m.app_id WHERE m.id = $1`,
	ids.Artifact:       owned(`artifact`),
	ids.ArtifactSource: of(`artifact_source`, `tenant_id`, nothing, nothing, nothing, nothing),
	ids.SignerKey: `SELECT s.tenant_id, NULL::text, NULL::text, NULL::text, NULL::text
		FROM signer_key k JOIN artifact_source s ON s.id = k.source_id WHERE k.id = $1`,
	ids.Adapter:  catalog(`adapter`),
	ids.SKUPrice: catalog(`sku_price`),
}

// objectQuery reads where an object is; false when no permission is about ids of its kind.
func objectQuery(into **authz.Object, id ids.ID) (tx.Query, bool) {
	statement, ok := objects[id.Kind()]
	return tx.Row(into, scanObject, statement, id), ok && id.Valid()
}

func scanObject(row pgx.CollectableRow) (*authz.Object, error) {
	var tenant, project, instance, node, allocation *ids.ID
	err := row.Scan(&tenant, &project, &instance, &node, &allocation)
	return &authz.Object{TenantID: rows.Value(tenant), ProjectID: rows.Value(project), InstanceID: rows.Value(instance),
		NodeID: rows.Value(node), AllocationID: rows.Value(allocation)}, err
}

// anywhere reports whether the key in any scope gives access to the object: the catalog is read so.
func anywhere(object ids.ID, key authz.Key) bool {
	switch object.Kind() {
	case ids.App, ids.Manifest, ids.Artifact:
		return key == authz.ManifestRead || key == authz.ArtifactRead ||
			slices.Contains(authz.FamilyKeys("catalog.read"), key)
	case ids.ArtifactSource, ids.SignerKey:
		return key == authz.SourceRead
	}
	return false
}
