// Package platform is the agent's client of the platform's GraphQL API: the four mutations and the one
// subscription that a node needs, over plain HTTP and graphql-transport-ws. It uses nothing that is not
// in the public schema.
package platform

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Inventory is what a node says it has.
type Inventory struct {
	CPUs          int               `json:"cpus"`
	MemoryMiB     int               `json:"memoryMiB"`
	GPUs          int               `json:"gpus"`
	GPUModel      string            `json:"gpuModel,omitempty"`
	GPUsSimulated bool              `json:"gpusSimulated"`
	Isolation     string            `json:"isolation"` // NAMESPACE or PROCESS
	Region        string            `json:"region,omitempty"`
	SKU           string            `json:"sku,omitempty"`
	Kernel        string            `json:"kernel,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
}

// EnrolInput is what a node enrols with.
type EnrolInput struct {
	Name         string    `json:"name"`
	Address      string    `json:"address"`
	SealingKey   string    `json:"sealingKey"`
	AgentVersion string    `json:"agentVersion"`
	BootID       string    `json:"bootId"`
	Inventory    Inventory `json:"inventory"`
}

// Heartbeat is a node's sign of life.
type Heartbeat struct {
	AgentVersion string     `json:"agentVersion"`
	BootID       string     `json:"bootId"`
	Inventory    *Inventory `json:"inventory,omitempty"`
}

// Credential is a node credential and its end.
type Credential struct {
	Credential string    `json:"credential"`
	ExpiresAt  time.Time `json:"expiresAt"`
}

// Enrolled is the answer to an enrolment.
type Enrolled struct {
	Node struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"node"`
	Credential
}

// Report says where a task stands.
type Report struct {
	TaskID   string          `json:"taskId"`
	Fence    int64           `json:"fence"`
	State    string          `json:"state"`
	ExitCode *int            `json:"exitCode,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Message  string          `json:"message,omitempty"`
}

// Output is a piece of a task's output. Stream is STDOUT or STDERR; Offset counts bytes before it.
type Output struct {
	TaskID string `json:"taskId"`
	Fence  int64  `json:"fence"`
	Stream string `json:"stream"`
	Offset int    `json:"offset"`
	Data   string `json:"data"`
}

// Task is a node task as the subscription gives it.
type Task struct {
	ID              string          `json:"id"`
	Fence           int64           `json:"fence"`
	Kind            string          `json:"kind"`
	State           string          `json:"state"`
	Spec            json.RawMessage `json:"spec"`
	TimeoutSeconds  int             `json:"timeoutSeconds"`
	MemberID        string          `json:"memberId"`
	InstanceID      string          `json:"instanceId"`
	CancelRequested bool            `json:"cancelRequested"`
}

// Codes of the platform that the agent acts on.
const (
	CodeUnauthenticated = "UNAUTHENTICATED"
	CodeStaleFence      = "STALE_FENCE"
	CodeTooLarge        = "DOCUMENT_TOO_LARGE"
)

// Error is an answer of the platform that is not what was asked for.
type Error struct {
	Code          string
	Message       string
	CorrelationID string
	Retryable     bool
}

// Error gives code and text.
func (e *Error) Error() string {
	if e.CorrelationID == "" {
		return fmt.Sprintf("%s: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("%s: %s (correlation %s)", e.Code, e.Message, e.CorrelationID)
}

// permanent are the codes that a repetition of the same request cannot change.
var permanent = map[string]bool{
	"FORBIDDEN": true, "NOT_FOUND": true, "INVALID_ARGUMENT": true, "CONFLICT": true, "FAILED_PRECONDITION": true,
	"STALE_FENCE": true, "IDEMPOTENCY_KEY_REUSED": true, "DOCUMENT_INVALID": true, "DOCUMENT_TOO_LARGE": true,
}

// Permanent tells whether repeating the request is useless. A refused credential is not permanent: it
// is rotated or renewed meanwhile.
func Permanent(err error) bool {
	var answer *Error
	return errors.As(err, &answer) && permanent[answer.Code] && !answer.Retryable
}

// HasCode tells whether err is the platform's answer with this code.
func HasCode(err error, code string) bool {
	var answer *Error
	return errors.As(err, &answer) && answer.Code == code
}
