// Package rows reads table rows into Ent's types for the hand-written, pipelined reads: one list of
// columns and one scan function a table, so that no read forgets a column.
package rows

import (
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/ent/generated/db"
)

// Value is a nullable column's value, or the empty one.
func Value[T any](column *T) (out T) {
	if column != nil {
		out = *column
	}
	return out
}

// Columns of each table, in the order its scan function expects, qualified by the table's name.
const (
	InstanceColumns = `instance.id, instance.tenant_id, instance.project_id, instance.name, instance.app_slug,
		instance.app_version, instance.permission_family, instance.manifest_id, instance.status,
		instance.health, instance.health_message, instance.revision, instance.config, instance.roles,
		instance.bound_capacity_shape, instance.operating_mode, instance.control_plane_scope,
		instance.runtime_backend, instance.smoke, instance.failure_code, instance.failure_message,
		instance.failure_owner, instance.failure_retryable, instance.last_operation_id,
		instance.correlation_id, instance.created_at, instance.updated_at, instance.released_at,
		instance.generation, instance.drift, instance.observed_at`
	MemberColumns = `member.id, member.tenant_id, member.project_id, member.instance_id, member.component_key,
		member.ordinal, member.status, member.cordoned, member.health, member.health_message,
		member.allocation_id, member.node_id, member.last_operation_id, member.correlation_id,
		member.adapter_detail, member.created_at, member.updated_at, member.labels`
	OperationColumns = `operation.id, operation.tenant_id, operation.project_id, operation.instance_id,
		operation.allocation_id, operation.kind, operation.state, operation.outcome,
		operation.adapter_name, operation.phase, operation.percent, operation.message,
		operation.requester_kind, operation.requester_id, operation.requester_name, operation.reason,
		operation.correlation_id, operation.desired_change, operation.evidence, operation.error_code,
		operation.error_message, operation.error_owner, operation.error_retryable,
		operation.dispatch_attempt, operation.claim_epoch, operation.deadline, operation.created_at,
		operation.started_at, operation.ended_at, operation.targets, operation.force,
		operation.on_deadline, operation.forced_at, operation.cancel_requested_at,
		operation.cancel_requester, operation.cancel_reason, operation.cancel_message,
		operation.retry_of`
	OperationStepColumns = `operation_step.id, operation_step.tenant_id, operation_step.project_id,
		operation_step.operation_id, operation_step.name, operation_step.ordinal, operation_step.state,
		operation_step.attempt, operation_step.message, operation_step.evidence,
		operation_step.started_at, operation_step.ended_at`
	EventColumns = `app_instance_event.id, app_instance_event.tenant_id, app_instance_event.project_id,
		app_instance_event.instance_id, app_instance_event.seq, app_instance_event.xid,
		app_instance_event."position", app_instance_event.type, app_instance_event.app_slug,
		app_instance_event.permission_family, app_instance_event.operation_id,
		app_instance_event.member_id, app_instance_event.message, app_instance_event.payload,
		app_instance_event.correlation_id, app_instance_event.occurred_at`
	AllocationColumns = `allocation.id, allocation.tenant_id, allocation.project_id, allocation.name, allocation.shape,
		allocation.gpu_count, allocation.sku, allocation.region, allocation.status, allocation.node_id,
		allocation.instance_id, allocation.scheduler_type, allocation.integration_metadata,
		allocation.release_operation_id, allocation.created_at, allocation.released_at,
		allocation.created_by_operation_id`
	ComputeNodeColumns = `compute_node.id, compute_node.name, compute_node.address, compute_node.status,
		compute_node.region, compute_node.sku, compute_node.cpus, compute_node.memory_mib,
		compute_node.gpus, compute_node.gpu_model, compute_node.gpus_simulated, compute_node.isolation,
		compute_node.sealing_key, compute_node.agent_version, compute_node.boot_id, compute_node.kernel,
		compute_node.labels, compute_node.last_seen_at, compute_node.created_at`
	NodeTaskColumns = `node_task.id, node_task.tenant_id, node_task.project_id, node_task.instance_id,
		node_task.member_id, node_task.node_id, node_task.operation_id, node_task.kind, node_task.spec,
		node_task.spec_digest, node_task.fence, node_task.state, node_task.cancel_requested,
		node_task.timeout_seconds, node_task.exit_code, node_task.result, node_task.message,
		node_task.stdout, node_task.stderr, node_task.idempotency_key, node_task.created_at,
		node_task.started_at, node_task.ended_at, node_task.progress_done, node_task.progress_total`
	ManifestColumns = `manifest.id, manifest.app_id, manifest.app_slug, manifest.version, manifest.display_name,
		manifest.summary, manifest.stage, manifest.digest, manifest.document, manifest.adapter_name,
		manifest.evidence, manifest.created_at, manifest.artifact_kind, manifest.canary_percent,
		manifest.canary_started_at, manifest.canary_halted_at, manifest.canary_halt_reason`
	ArtifactColumns = `artifact.id, artifact.name, artifact.media_type, artifact.ref, artifact.digest,
		artifact.size_bytes, artifact.stage, artifact.evidence, artifact.created_at, artifact.kind,
		artifact.source_id, artifact.tenant_id, artifact.project_id, coalesce(artifact.platforms, '[]'), artifact.signature,
		artifact.signer_key_id, artifact.quarantined_at, artifact.quarantine_code, artifact.quarantine_reason, artifact.verified_at`
	ArtifactPartColumns = `artifact_part.id, artifact_part.artifact_id, artifact_part.tenant_id, artifact_part."position",
		artifact_part.role, artifact_part.digest, artifact_part.media_type, artifact_part.size_bytes,
		artifact_part.platform, artifact_part.title, artifact_part.parent`
	AppColumns = `app.id, app.slug, app.display_name, app.summary, app.permission_family, app.created_at,
		app.publisher_tenant_id, app.publisher_project_id`
)

// raw is where a stored document goes as it is; scanned as json.RawMessage it would be parsed first,
// which PostgreSQL has done.
func raw(into *json.RawMessage) *[]byte { return (*[]byte)(into) }

// Ids and words are scanned as the plain strings they are made of: for a named type the driver looks
// for a way by reflection, in each row.

// Instance scans a row of InstanceColumns.
func Instance(row pgx.CollectableRow) (*db.Instance, error) {
	x := new(db.Instance)
	return x, row.Scan((*string)(&x.ID), (*string)(&x.TenantID), (*string)(&x.ProjectID), &x.Name, &x.AppSlug, &x.AppVersion, &x.PermissionFamily,
		(*string)(&x.ManifestID), (*string)(&x.Status), (*string)(&x.Health), &x.HealthMessage, &x.Revision, raw(&x.Config), raw(&x.Roles),
		(*string)(&x.BoundCapacityShape), &x.OperatingMode, &x.ControlPlaneScope, &x.RuntimeBackend, &x.Smoke,
		&x.FailureCode, &x.FailureMessage, &x.FailureOwner, &x.FailureRetryable, &x.LastOperationID,
		&x.CorrelationID, &x.CreatedAt, &x.UpdatedAt, &x.ReleasedAt, &x.Generation, raw(&x.Drift), &x.ObservedAt)
}

// Member scans a row of MemberColumns.
func Member(row pgx.CollectableRow) (*db.Member, error) {
	x := new(db.Member)
	return x, row.Scan((*string)(&x.ID), (*string)(&x.TenantID), (*string)(&x.ProjectID), (*string)(&x.InstanceID), &x.ComponentKey, &x.Ordinal, (*string)(&x.Status),
		&x.Cordoned, (*string)(&x.Health), &x.HealthMessage, &x.AllocationID, &x.NodeID, &x.LastOperationID,
		&x.CorrelationID, raw(&x.AdapterDetail), &x.CreatedAt, &x.UpdatedAt, raw(&x.Labels))
}

// Operation scans a row of OperationColumns.
func Operation(row pgx.CollectableRow) (*db.Operation, error) {
	x := new(db.Operation)
	return x, row.Scan((*string)(&x.ID), (*string)(&x.TenantID), (*string)(&x.ProjectID), &x.InstanceID, &x.AllocationID, (*string)(&x.Kind), (*string)(&x.State), &x.Outcome,
		&x.AdapterName, &x.Phase, &x.Percent, &x.Message, &x.RequesterKind, (*string)(&x.RequesterID),
		&x.RequesterName, &x.Reason, &x.CorrelationID, raw(&x.DesiredChange), raw(&x.Evidence), &x.ErrorCode,
		&x.ErrorMessage, &x.ErrorOwner, &x.ErrorRetryable, &x.DispatchAttempt, &x.ClaimEpoch,
		&x.Deadline, &x.CreatedAt, &x.StartedAt, &x.EndedAt, &x.Targets, &x.Force,
		(*string)(&x.OnDeadline), &x.ForcedAt, &x.CancelRequestedAt, &x.CancelRequester,
		&x.CancelReason, &x.CancelMessage, &x.RetryOf)
}

// OperationStep scans a row of OperationStepColumns.
func OperationStep(row pgx.CollectableRow) (*db.OperationStep, error) {
	x := new(db.OperationStep)
	return x, row.Scan((*string)(&x.ID), (*string)(&x.TenantID), (*string)(&x.ProjectID), (*string)(&x.OperationID), &x.Name, &x.Ordinal, (*string)(&x.State), &x.Attempt,
		&x.Message, raw(&x.Evidence), &x.StartedAt, &x.EndedAt)
}

// Event scans a row of EventColumns.
func Event(row pgx.CollectableRow) (*db.Event, error) {
	x := new(db.Event)
	return x, row.Scan((*string)(&x.ID), (*string)(&x.TenantID), (*string)(&x.ProjectID), (*string)(&x.InstanceID), &x.Seq, &x.Xid, &x.Position, &x.Type,
		&x.AppSlug, &x.PermissionFamily, &x.OperationID, &x.MemberID, &x.Message, raw(&x.Payload),
		&x.CorrelationID, &x.OccurredAt)
}

// Allocation scans a row of AllocationColumns.
func Allocation(row pgx.CollectableRow) (*db.Allocation, error) {
	x := new(db.Allocation)
	return x, row.Scan((*string)(&x.ID), (*string)(&x.TenantID), (*string)(&x.ProjectID), &x.Name, (*string)(&x.Shape), &x.GpuCount, &x.Sku, &x.Region, (*string)(&x.Status),
		&x.NodeID, &x.InstanceID, &x.SchedulerType, raw(&x.IntegrationMetadata), &x.ReleaseOperationID,
		&x.CreatedAt, &x.ReleasedAt, &x.CreatedByOperationID)
}

// ComputeNode scans a row of ComputeNodeColumns.
func ComputeNode(row pgx.CollectableRow) (*db.ComputeNode, error) {
	x := new(db.ComputeNode)
	return x, row.Scan((*string)(&x.ID), &x.Name, &x.Address, (*string)(&x.Status), &x.Region, &x.Sku, &x.Cpus, &x.MemoryMib, &x.Gpus,
		&x.GpuModel, &x.GpusSimulated, &x.Isolation, &x.SealingKey, &x.AgentVersion, &x.BootID,
		&x.Kernel, raw(&x.Labels), &x.LastSeenAt, &x.CreatedAt)
}

// NodeTask scans a row of NodeTaskColumns.
func NodeTask(row pgx.CollectableRow) (*db.NodeTask, error) {
	x := new(db.NodeTask)
	return x, row.Scan((*string)(&x.ID), (*string)(&x.TenantID), (*string)(&x.ProjectID), (*string)(&x.InstanceID), (*string)(&x.MemberID), (*string)(&x.NodeID), &x.OperationID,
		(*string)(&x.Kind), raw(&x.Spec), &x.SpecDigest, &x.Fence, (*string)(&x.State), &x.CancelRequested, &x.TimeoutSeconds,
		&x.ExitCode, raw(&x.Result), &x.Message, &x.Stdout, &x.Stderr, &x.IdempotencyKey, &x.CreatedAt,
		&x.StartedAt, &x.EndedAt, &x.ProgressDone, &x.ProgressTotal)
}

// Manifest scans a row of ManifestColumns.
func Manifest(row pgx.CollectableRow) (*db.Manifest, error) {
	x := new(db.Manifest)
	return x, row.Scan((*string)(&x.ID), (*string)(&x.AppID), &x.AppSlug, &x.Version, &x.DisplayName, &x.Summary, (*string)(&x.Stage), &x.Digest,
		&x.Document, &x.AdapterName, raw(&x.Evidence), &x.CreatedAt, &x.ArtifactKind, &x.CanaryPercent, &x.CanaryStartedAt,
		&x.CanaryHaltedAt, &x.CanaryHaltReason)
}

// Artifact scans a row of ArtifactColumns.
func Artifact(row pgx.CollectableRow) (*db.Artifact, error) {
	x := new(db.Artifact)
	return x, row.Scan((*string)(&x.ID), &x.Name, &x.MediaType, &x.Ref, &x.Digest, &x.SizeBytes, (*string)(&x.Stage), raw(&x.Evidence),
		&x.CreatedAt, (*string)(&x.Kind), &x.SourceID, &x.TenantID, &x.ProjectID, &x.Platforms, (*string)(&x.Signature),
		&x.SignerKeyID, &x.QuarantinedAt, &x.QuarantineCode, &x.QuarantineReason, &x.VerifiedAt)
}

// ArtifactPart scans a row of ArtifactPartColumns.
func ArtifactPart(row pgx.CollectableRow) (*db.ArtifactPart, error) {
	x := new(db.ArtifactPart)
	return x, row.Scan((*string)(&x.ID), (*string)(&x.ArtifactID), &x.TenantID, &x.Position, (*string)(&x.Role), &x.Digest, &x.MediaType,
		&x.SizeBytes, &x.Platform, &x.Title, &x.Parent)
}

// App scans a row of AppColumns.
func App(row pgx.CollectableRow) (*db.App, error) {
	x := new(db.App)
	return x, row.Scan((*string)(&x.ID), &x.Slug, &x.DisplayName, &x.Summary, &x.PermissionFamily, &x.CreatedAt,
		&x.PublisherTenantID, &x.PublisherProjectID)
}

// ProjectRef scans id and tenant_id of a project: what authorisation needs of it.
func ProjectRef(row pgx.CollectableRow) (*db.Project, error) {
	x := new(db.Project)
	return x, row.Scan((*string)(&x.ID), (*string)(&x.TenantID))
}
