package contract

import (
	"cmp"
	"encoding/json"
	"time"
)

// ContractVersion is the newest version of the adapter contract this package speaks.
const ContractVersion = "1.1"

// ContractVersions returns every version of the contract this package speaks, newest first. A
// minor version only adds to the one before it.
func ContractVersions() []string { return []string{ContractVersion, "1.0"} }

// Description is what an adapter says about itself: the answer of GET /v1/adapter.
type Description struct {
	// ContractVersions lists the contract versions the adapter speaks, newest first.
	ContractVersions []string `json:"contractVersions"`
	// Name is the adapter's registered name: the audience of every request sent to it.
	Name string `json:"name"`
	// Build identifies the running build, for support.
	Build string `json:"build"`
	// Apps describes every app this adapter runs.
	Apps []AppInfo `json:"apps"`
}

// AnyApp in place of a slug stands for every app that the description does not name: the adapter runs what is published
// for it, by the manifest alone.
const AnyApp = "*"

// AppInfo describes one app: its parts, what can be done with it and how it is configured.
type AppInfo struct {
	// Slug is the app's name in the catalog, or [AnyApp].
	Slug string `json:"slug"`
	// Components are the kinds of member an instance has, with their bounds.
	Components []Component `json:"components"`
	// Operations are the operation kinds the adapter carries out for this app.
	Operations []Kind `json:"operations"`
	// ConfigSchema is the JSON Schema of an instance's config; null accepts only an empty one.
	ConfigSchema json.RawMessage `json:"configSchema"`
	// Actions are the app's own verbs, passed through by the platform.
	Actions []Action `json:"actions"`
	// UsageDimensions are what the app meters.
	UsageDimensions []UsageDimension `json:"usageDimensions"`
	// ChoosesLeaving says that a plan with [PlanRequest.Choose] is answered with who leaves; without it the platform
	// chooses.
	ChoosesLeaving bool `json:"choosesLeaving,omitempty"`
}

// Component is one kind of member. The key is the adapter's word; the platform gives it no meaning.
type Component struct {
	// Key names the component within the app.
	Key string `json:"key"`
	// DisplayName is shown to people.
	DisplayName string `json:"displayName"`
	// Min is the fewest members of this kind an instance may have.
	Min int `json:"min"`
	// Max is the most members of this kind an instance may have.
	Max int `json:"max"`
	// Default is how many an instance gets when the caller says nothing.
	Default int `json:"default"`
}

// Action is a verb of the app that the platform authorises, records and passes through.
type Action struct {
	// Name identifies the action within the app, such as "hello.say".
	Name string `json:"name"`
	// DisplayName is shown to people.
	DisplayName string `json:"displayName"`
	// PermissionKey is what the caller must hold; it belongs to the family of the app's manifest.
	PermissionKey string `json:"permissionKey"`
	// Risk tells a console how carefully to ask.
	Risk Risk `json:"risk"`
	// InputSchema is the JSON Schema of the action's input, always an object.
	InputSchema json.RawMessage `json:"inputSchema"`
	// OutputSchema is the JSON Schema of the action's output, always an object.
	OutputSchema json.RawMessage `json:"outputSchema"`
}

// UsageDimension is one metered quantity.
type UsageDimension struct {
	// Name identifies the dimension within the app.
	Name string `json:"name"`
	// Unit is the unit of a record's quantity, such as "second" or "token".
	Unit string `json:"unit"`
	// Kind is "app", which is also what is meant without it, or "showback": shown, and priced nowhere. What counts
	// capacity, such as GPU-seconds, is metered by the platform itself, and can only be showback.
	Kind string `json:"kind,omitempty"`
	// Description is for people, at most 200 characters.
	Description string `json:"description,omitempty"`
}

// Dispatch asks the adapter to carry out one operation: the body of PUT /v1/operations/{id}.
type Dispatch struct {
	// OperationID is the operation's id, the same as in the path.
	OperationID string `json:"operationId"`
	// Kind is what to do.
	Kind Kind `json:"kind"`
	// Attempt is the fence: it rises with each deliberate new dispatch, from 1.
	Attempt int `json:"attempt"`
	// Deadline is when the platform gives up on this attempt.
	Deadline time.Time `json:"deadline"`
	// CorrelationID ties together logs, audit and events of one request.
	CorrelationID string `json:"correlationId"`
	// Traceparent is the W3C trace context, empty when the platform does not trace.
	Traceparent string `json:"traceparent,omitempty"`
	// Instance is the app instance the operation is about.
	Instance Instance `json:"instance"`
	// Members are all members of the instance, with the nodes they are bound to.
	Members []Member `json:"members"`
	// Targets are the ids of the members this operation acts on; empty for instance-wide kinds.
	Targets []string `json:"targets,omitempty"`
	// Change is the desired change of kinds that need more than targets: an [AddChange], [LabelChange],
	// [ReplaceChange] or [VersionChange]; else empty.
	Change json.RawMessage `json:"change,omitempty"`
	// Force says to finish now though work is lost and though a node cannot be reached. It is no
	// part of the specification: the caller may choose it for an operation that is under way, which
	// is then dispatched with a higher attempt and begins again.
	Force bool `json:"force,omitempty"`
	// Platform is how to reach the public API for this operation.
	Platform Platform `json:"platform"`
}

// Member is one realised part of an instance, bound to a node.
type Member struct {
	// ID is the member's id.
	ID string `json:"id"`
	// ComponentKey names the component it is a member of.
	ComponentKey string `json:"componentKey"`
	// Index numbers the members of one component, from 0; never reused within an instance.
	Index int `json:"index"`
	// Status is the member's state as the platform knows it.
	Status string `json:"status"`
	// Cordoned says that the member is to take no new work; no part of the specification.
	Cordoned bool `json:"cordoned,omitempty"`
	// Labels are the words its owner gave it; no part of the specification.
	Labels map[string]string `json:"labels,omitempty"`
	// Address is the member's own on the members' network, absent where members have their node's; no part of the
	// specification.
	Address string `json:"address,omitempty"`
	// Ranges are the blocks that its manifest declares and that are routed to it, in CIDR form by their names; no part
	// of the specification.
	Ranges map[string]string `json:"ranges,omitempty"`
	// Volumes are the files that outlast it, by the slots of its manifest, mounted from its start on; no part of the
	// specification.
	Volumes []MemberVolume `json:"volumes,omitempty"`
	// Node is where it runs.
	Node Node `json:"node"`
}

// MemberVolume is a volume that a member has.
type MemberVolume struct {
	// Slot is the manifest's name for what it is.
	Slot string `json:"slot"`
	// ID is the volume's: the same files may serve another instance later.
	ID string `json:"id"`
	// Path is where the member has it.
	Path string `json:"path"`
	// ReadOnly says that the member may only read.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// Host returns the address at which other members of the instance reach this one: its own, or else its node's.
func (m Member) Host() string { return cmp.Or(m.Address, m.Node.Address) }

// Node is the node a member is bound to. Its hardware is not secret, its choice is the platform's.
type Node struct {
	// ID is the node's id.
	ID string `json:"id"`
	// Name is the node's host name.
	Name string `json:"name"`
	// Address is where other members reach it.
	Address string `json:"address"`
	// SealingKey is the node's X25519 public key, base64, for [Seal].
	SealingKey string `json:"sealingKey"`
	// AllocationID is the allocation the node is rented under.
	AllocationID string `json:"allocationId"`
	// Shape is the allocation's shape: "baremetal" or "gpu_slice".
	Shape string `json:"shape"`
	// GPUs is how many GPUs of the node belong to the allocation.
	GPUs int `json:"gpus"`
	// CPUs is how many processors members on it may use.
	CPUs int `json:"cpus"`
	// MemoryMiB is how much memory members on it may use, in MiB.
	MemoryMiB int `json:"memoryMiB"`
	// Reachable is false when the platform has lost sight of the node, and absent or true
	// otherwise; no part of the specification.
	Reachable *bool `json:"reachable,omitempty"`
}

// IsReachable says whether the platform can reach the node, as far as it knows.
func (n Node) IsReachable() bool { return n.Reachable == nil || *n.Reachable }

// Platform is how the adapter reaches the public API, with a token narrowed to this one task.
type Platform struct {
	// GraphQLURL is the public GraphQL endpoint.
	GraphQLURL string `json:"graphqlUrl"`
	// Token is a bearer token for this instance and these permission keys only.
	Token string `json:"token"`
	// TokenExpiresAt is when the token ends unless it is renewed.
	TokenExpiresAt time.Time `json:"tokenExpiresAt"`
}

// Status is how an operation stands: the answer of GET /v1/operations/{id}.
type Status struct {
	// OperationID is the operation's id.
	OperationID string `json:"operationId"`
	// Attempt is the highest attempt dispatched.
	Attempt int `json:"attempt"`
	// State is where the operation is.
	State State `json:"state"`
	// Phase is the adapter's name for what it is doing.
	Phase string `json:"phase"`
	// Percent is how much is done, 0 to 100.
	Percent int `json:"percent"`
	// Message says it to a person.
	Message string `json:"message"`
	// Members are the members the adapter has something to say about.
	Members []MemberUpdate `json:"members"`
	// Evidence is what the adapter saw that proves the outcome; an object.
	Evidence map[string]json.RawMessage `json:"evidence,omitempty"`
	// Error says why the operation failed.
	Error *OperationError `json:"error,omitempty"`
	// WaitsFor is the work the operation waits for right now, at most [MaxWork]; empty says nothing.
	WaitsFor []Work `json:"waitsFor,omitempty"`
	// RetryAfterSeconds asks the platform not to poll again before; 0 says nothing.
	RetryAfterSeconds int `json:"retryAfterSeconds,omitempty"`
}

// MemberUpdate is the adapter's word on one member.
type MemberUpdate struct {
	// ID is the member's id.
	ID string `json:"id"`
	// Status is the state the member has reached.
	Status MemberStatus `json:"status"`
	// Health is the adapter's judgement, beside the status and never mixed into it.
	Health Health `json:"health"`
	// Detail is for a person who debugs; an object of at most [MaxDetail] bytes.
	Detail json.RawMessage `json:"detail,omitempty"`
}

// OperationError says why an operation failed and whose it is to mend.
type OperationError struct {
	// Code is a stable name in UPPER_SNAKE.
	Code string `json:"code"`
	// Message says it to a person; it carries no secret.
	Message string `json:"message"`
	// Owner is whose it is to mend.
	Owner Owner `json:"owner"`
	// Retryable says whether the same operation may succeed if it is dispatched again.
	Retryable bool `json:"retryable"`
}

// OperationsPage is a page of the change feed: the answer of GET /v1/operations.
type OperationsPage struct {
	// Epoch names this feed; cursors of another epoch do not continue it.
	Epoch string `json:"epoch"`
	// Cursor continues the feed after this page.
	Cursor string `json:"cursor"`
	// Operations are the latest statuses of what changed, oldest change first.
	Operations []Status `json:"operations"`
}

// CancelRequest is the body of POST /v1/operations/{id}/cancel.
type CancelRequest struct {
	// Attempt is the fence, as in [Dispatch].
	Attempt int `json:"attempt"`
}

// CancelResult says what a request to cancel came to.
type CancelResult struct {
	// Outcome is whether the operation was stopped.
	Outcome CancelOutcome `json:"outcome"`
	// Message says it to a person.
	Message string `json:"message"`
	// Tombstone says, beside the outcome unknown of an operation that was never dispatched, that a dispatch that
	// arrives later with this attempt or a lower one is answered as canceled, and nothing of it is begun. Optional.
	Tombstone bool `json:"tombstone,omitempty"`
}

// Observation is what the adapter sees of an instance now: the answer of GET /v1/instances/{id}.
type Observation struct {
	// InstanceID is the instance's id.
	InstanceID string `json:"instanceId"`
	// Health is the health of the whole; unknown is never read as good.
	Health Health `json:"health"`
	// Message says it to a person.
	Message string `json:"message"`
	// Members is the health of each member the adapter could judge.
	Members []MemberObservation `json:"members"`
	// Roles are components in the app's own words, at most one entry for each; of others nothing is said.
	Roles []RoleObservation `json:"roles,omitempty"`
	// Detail is for a person who debugs; an object.
	Detail json.RawMessage `json:"detail,omitempty"`
	// ObservedAt is when it was seen.
	ObservedAt time.Time `json:"observedAt"`
	// Lost says why the instance cannot come back, whatever is repaired: it then fails for good. Nil while it may.
	Lost *OperationError `json:"lost,omitempty"`
}

// MemberObservation is what the adapter sees of one member now.
type MemberObservation struct {
	// ID is the member's id.
	ID string `json:"id"`
	// Health is the adapter's judgement.
	Health Health `json:"health"`
	// Message says it to a person.
	Message string `json:"message"`
	// Detail is for a person who debugs; an object.
	Detail json.RawMessage `json:"detail,omitempty"`
	// Status is failed when the member does not come back by itself, so that somebody must recover or replace it. Empty
	// says nothing; the platform reads no other state from here.
	Status MemberStatus `json:"status,omitempty"`
}

// ActionRequest is the body of POST /v1/instances/{id}/actions/{name}.
type ActionRequest struct {
	// Input is the caller's input, valid against the action's input schema.
	Input json.RawMessage `json:"input"`
	// IdempotencyKey makes a repeat of this action the same action.
	IdempotencyKey string `json:"idempotencyKey"`
	// Requester is who asked.
	Requester Requester `json:"requester"`
	// Instance is the instance acted on.
	Instance Instance `json:"instance"`
	// Members are all members of the instance.
	Members []Member `json:"members"`
	// Platform is how to reach the public API for this action.
	Platform Platform `json:"platform"`
}

// ActionResult is the answer of an action.
type ActionResult struct {
	// Output is what the action came to, valid against its output schema.
	Output json.RawMessage `json:"output"`
}

// ErrorBody is the body of every answer that is not a success.
type ErrorBody struct {
	// Code is a stable name in UPPER_SNAKE.
	Code string `json:"code"`
	// Message says it to a person; it carries no secret.
	Message string `json:"message"`
	// Path names the field at fault, such as "instance.config.clusterName".
	Path string `json:"path,omitempty"`
	// Retryable says whether the same request may succeed later.
	Retryable bool `json:"retryable,omitempty"`
}
