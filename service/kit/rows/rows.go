// Package rows reads table rows into Ent's types for the hand-written, pipelined reads: one list of columns and one
// scan function for each table, so that no read forgets a column. Both are generated from ent/schema. This package
// gives them the names that reads use, and adds the reads of single columns.
package rows

import (
	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/ent/generated/db/rows"
)

// Columns of each table, in the order that its scan function expects, qualified by the table's name.
const (
	AdapterColumns           = rows.AdapterColumns
	AllocationColumns        = rows.AllocationColumns
	AppColumns               = rows.AppColumns
	ArtifactColumns          = rows.ArtifactColumns
	ArtifactPartColumns      = rows.ArtifactPartColumns
	ArtifactSmokeColumns     = rows.ArtifactSmokeColumns
	ArtifactSourceColumns    = rows.ArtifactSourceColumns
	AuditEntryColumns        = rows.AuditEntryColumns
	ComputeNodeColumns       = rows.ComputeNodeColumns
	ControlPlaneShareColumns = rows.ControlPlaneShareColumns
	EntitlementColumns       = rows.EntitlementColumns
	EventColumns             = rows.EventColumns
	EvidenceRunnerColumns    = rows.EvidenceRunnerColumns
	GenerationColumns        = rows.GenerationColumns
	InstanceColumns          = rows.InstanceColumns
	ManifestColumns          = rows.ManifestColumns
	MemberColumns            = rows.MemberColumns
	NodeTaskColumns          = rows.NodeTaskColumns
	OperationColumns         = rows.OperationColumns
	OperationStepColumns     = rows.OperationStepColumns
	OrphanColumns            = rows.OrphanColumns
	PolicyOverlayColumns     = rows.PolicyOverlayColumns
	ProjectColumns           = rows.ProjectColumns
	PromotionColumns         = rows.PromotionColumns
	PromotionEvidenceColumns = rows.PromotionEvidenceColumns
	RoleBindingColumns       = rows.RoleBindingColumns
	SKUPriceColumns          = rows.SKUPriceColumns
	ServiceAccountColumns    = rows.ServiceAccountColumns
	ServiceAccountKeyColumns = rows.ServiceAccountKeyColumns
	SignerKeyColumns         = rows.SignerKeyColumns
	TenantColumns            = rows.TenantColumns
	UserColumns              = rows.UserColumns
	WebhookColumns           = rows.WebhookColumns
	WebhookDeliveryColumns   = rows.WebhookDeliveryColumns
)

// The scan functions of the columns above.
var (
	Adapter           = rows.Adapter
	Allocation        = rows.Allocation
	App               = rows.App
	Artifact          = rows.Artifact
	ArtifactPart      = rows.ArtifactPart
	ArtifactSmoke     = rows.ArtifactSmoke
	ArtifactSource    = rows.ArtifactSource
	AuditEntry        = rows.AuditEntry
	ComputeNode       = rows.ComputeNode
	ControlPlaneShare = rows.ControlPlaneShare
	Entitlement       = rows.Entitlement
	Event             = rows.Event
	EvidenceRunner    = rows.EvidenceRunner
	Generation        = rows.Generation
	Instance          = rows.Instance
	Manifest          = rows.Manifest
	Member            = rows.Member
	NodeTask          = rows.NodeTask
	Operation         = rows.Operation
	OperationStep     = rows.OperationStep
	Orphan            = rows.Orphan
	PolicyOverlay     = rows.PolicyOverlay
	Project           = rows.Project
	Promotion         = rows.Promotion
	PromotionEvidence = rows.PromotionEvidence
	RoleBinding       = rows.RoleBinding
	SKUPrice          = rows.SKUPrice
	ServiceAccount    = rows.ServiceAccount
	ServiceAccountKey = rows.ServiceAccountKey
	SignerKey         = rows.SignerKey
	Tenant            = rows.Tenant
	User              = rows.User
	Webhook           = rows.Webhook
	WebhookDelivery   = rows.WebhookDelivery
)

// The tables that parts are cut from.
var (
	EventTable         = rows.EventTable
	InstanceTable      = rows.InstanceTable
	MemberTable        = rows.MemberTable
	OperationTable     = rows.OperationTable
	OperationStepTable = rows.OperationStepTable
)

// Value returns a nullable column's value, and the empty one for NULL.
func Value[T any](column *T) (out T) {
	if column != nil {
		out = *column
	}
	return out
}

// ProjectRef scans id and tenant_id of a project: what authorisation reads of it.
func ProjectRef(row pgx.CollectableRow) (*db.Project, error) {
	x := new(db.Project)
	return x, row.Scan((*string)(&x.ID), (*string)(&x.TenantID))
}
