package contract

import (
	"net/url"
	"strconv"
	"time"
)

// Header names of the contract.
const (
	// HeaderCorrelation carries the correlation id of a request.
	HeaderCorrelation = "X-Correlation-ID"
	// HeaderTraceparent carries the W3C trace context.
	HeaderTraceparent = "traceparent"
	// HeaderPlatformToken carries the public API token on requests that have no body for it.
	HeaderPlatformToken = "X-Platform-Token"
)

// Bounds of the contract, both ways unless said otherwise.
const (
	// MaxBody is the largest request or response body, in bytes.
	MaxBody = 1 << 20
	// MaxPage is the most operations in one page of the change feed.
	MaxPage = 500
	// MaxWait is the longest a change-feed request may wait.
	MaxWait = 30 * time.Second
	// MaxMembers is the most members in one dispatch or action.
	MaxMembers = 1024
	// MaxDetail is the largest detail object of one member, in bytes.
	MaxDetail = 4 << 10
	// MaxSummary is how much of a component's summary is shown, in bytes.
	MaxSummary = 200
	// MaxMessage is the longest message, in bytes; longer ones are cut.
	MaxMessage = 2 << 10
	// MaxEvidence is the largest evidence object of one operation, in bytes.
	MaxEvidence = 64 << 10
	// MaxWork is the most pieces of work in one list of what is waited for or would be lost.
	MaxWork = 100
	// MaxReasons is the most reasons of one plan.
	MaxReasons = 50
	// MaxKeyLength is the longest idempotency key of an action, in bytes.
	MaxKeyLength = 200
	// MaxUsageRecords is the most usage records in one page.
	MaxUsageRecords = 1000
)

// AdapterPath is the path of the description.
const AdapterPath = "/v1/adapter"

// OperationsPath is the path of the change feed without its query.
const OperationsPath = "/v1/operations"

// PlansPath is the path that asks what an operation would come to.
const PlansPath = "/v1/plans"

// OperationPath returns the path of one operation.
func OperationPath(id string) string { return OperationsPath + "/" + url.PathEscape(id) }

// CancelPath returns the path that cancels one operation.
func CancelPath(id string) string { return OperationPath(id) + "/cancel" }

// ChangesPath returns the path and query of the change feed after cursor, waiting at most wait.
func ChangesPath(cursor string, wait time.Duration) string {
	query := url.Values{"wait": {strconv.Itoa(int(wait / time.Second))}}
	if cursor != "" {
		query.Set("after", cursor)
	}
	return OperationsPath + "?" + query.Encode()
}

// InstancePath returns the path that observes one instance.
func InstancePath(id string) string { return "/v1/instances/" + url.PathEscape(id) }

// ActionPath returns the path of one action of one instance.
func ActionPath(id, action string) string {
	return InstancePath(id) + "/actions/" + url.PathEscape(action)
}

// UsagePath returns the path and query of an instance's usage after cursor.
func UsagePath(id, cursor string) string {
	path := InstancePath(id) + "/usage"
	if cursor == "" {
		return path
	}
	return path + "?" + url.Values{"after": {cursor}}.Encode()
}
