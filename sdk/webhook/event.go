package webhook

import (
	"encoding/json"
	"time"
)

// Event is the body of a delivery.
type Event struct {
	// Type is what happened, such as apps.instance.running.
	Type string `json:"type"`
	// Timestamp is when it happened.
	Timestamp time.Time `json:"timestamp"`
	// Data is what happened in detail.
	Data Data `json:"data"`
}

// Data is an event, with the fields of the API's Event.
type Data struct {
	// ID is the event's id; Cursor is its place in its project's feed.
	ID     string `json:"id"`
	Cursor string `json:"cursor"`
	// Seq is its number in the instance's timeline, without gaps: a receiver that needs the order reads it here.
	Seq int `json:"seq"`
	// OrgID is the tenant, under the name that events had first; the same as TenantID.
	OrgID     string `json:"orgId"`
	TenantID  string `json:"tenantId"`
	ProjectID string `json:"projectId"`
	// AppSlug and AppInstanceID are empty for an event of an allocation that no instance uses, and of a volume.
	AppSlug       string `json:"appSlug"`
	AppInstanceID string `json:"appInstanceId"`
	// AllocationID is that allocation; null of other events.
	AllocationID *string `json:"allocationId,omitempty"`
	// VolumeID is that volume; null of other events.
	VolumeID *string `json:"volumeId,omitempty"`
	// OperationID and MemberID are null for an event of no operation or no member.
	OperationID *string `json:"operationId"`
	MemberID    *string `json:"memberId"`
	// Message is for a person; Payload are the details.
	Message string          `json:"message"`
	Payload json.RawMessage `json:"payload"`
	// PayloadOmitted says that the details were too long for a delivery: the API has them under the event's id.
	PayloadOmitted bool   `json:"payloadOmitted,omitempty"`
	CorrelationID  string `json:"correlationId"`
	// TraceID is the trace of the request or attempt that wrote the event; empty where the platform sends no traces.
	TraceID string `json:"traceId"`
}
