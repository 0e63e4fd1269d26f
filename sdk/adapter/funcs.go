package adapter

import (
	"crypto/ed25519"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/api"
	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/kit"
	"github.com/gpuaas/app-platform/sdk/adapter/operation"
	"github.com/gpuaas/app-platform/sdk/adapter/sign"
)

// NewClient returns a client with this access.
func NewClient(platform Platform, correlationID string, log *slog.Logger) *Client {
	return api.NewClient(platform, correlationID, log)
}

// EncodeTask returns the details of a task as JSON, for a [TaskSpec].
func EncodeTask(task NodeTask) (json.RawMessage, error) {
	return contract.EncodeTask(task)
}

// Kinds returns every operation kind of contract v1.
func Kinds() []Kind {
	return contract.Kinds()
}

// States returns every state.
func States() []State {
	return contract.States()
}

// MemberStatuses returns every member state an adapter may report.
func MemberStatuses() []MemberStatus {
	return contract.MemberStatuses()
}

// Healths returns every judgement.
func Healths() []Health {
	return contract.Healths()
}

// Owners returns every owner.
func Owners() []Owner {
	return contract.Owners()
}

// Risks returns every risk.
func Risks() []Risk {
	return contract.Risks()
}

// CancelOutcomes returns every outcome.
func CancelOutcomes() []CancelOutcome {
	return contract.CancelOutcomes()
}

// Verdicts returns every verdict.
func Verdicts() []Verdict {
	return contract.Verdicts()
}

// Reject returns the error by which a Check or an action refuses before anything was done: the answer is 422 with this
// code, path and text.
func Reject(code, path, format string, args ...any) error {
	return contract.Reject(code, path, format, args...)
}

// Fail returns the error by which an operation function fails with a code of its own and an owner; retryable says
// whether a new dispatch may succeed.
func Fail(code string, owner Owner, retryable bool, format string, args ...any) error {
	return contract.Fail(code, owner, retryable, format, args...)
}

// NewKeySet returns the key set at url, usually the platform's URL and /.well-known/jwks.json.
func NewKeySet(url string, client *http.Client) *KeySet {
	return sign.NewKeySet(url, client)
}

// New checks the configuration and returns a kit that does nothing yet.
func New(config Config) (*Kit, error) {
	return kit.New(config)
}

// FromManifest begins an [App] from a manifest document, so that the adapter describes itself exactly as the manifest
// with which it is published.
func FromManifest(document []byte, actions map[string]ActionFunc) (App, error) {
	return kit.FromManifest(document, actions)
}

// OperationPath returns the path of one operation.
func OperationPath(id string) string {
	return contract.OperationPath(id)
}

// CancelPath returns the path that cancels one operation.
func CancelPath(id string) string {
	return contract.CancelPath(id)
}

// ChangesPath returns the path and query of the change feed after cursor, waiting at most wait.
func ChangesPath(cursor string, wait time.Duration) string {
	return contract.ChangesPath(cursor, wait)
}

// InstancePath returns the path that observes one instance.
func InstancePath(id string) string {
	return contract.InstancePath(id)
}

// ActionPath returns the path of one action of one instance.
func ActionPath(id, action string) string {
	return contract.ActionPath(id, action)
}

// UsagePath returns the path and query of an instance's usage after cursor.
func UsagePath(id, cursor string) string {
	return contract.UsagePath(id, cursor)
}

// IsUnreachable reports whether a node task failed because its node cannot be reached.
func IsUnreachable(err error) bool {
	return operation.IsUnreachable(err)
}

// Seal encrypts value so that only the node with this sealing key can read it, and only for a task of this instance.
func Seal(sealingKey, instanceID string, value []byte) (string, error) {
	return contract.Seal(sealingKey, instanceID, value)
}

// NewSigner returns a signer for the platform at issuer, with the key published under kid.
func NewSigner(issuer, kid string, key ed25519.PrivateKey) (*Signer, error) {
	return sign.NewSigner(issuer, kid, key)
}

// BodyDigest returns the unpadded base64url of the SHA-256 of body; an absent body is empty.
func BodyDigest(body []byte) string {
	return sign.BodyDigest(body)
}

// Within bounds how long the task may take on the node, one second to one hour.
func Within(d time.Duration) TaskOption {
	return api.Within(d)
}

// ContractVersions returns every version of the contract this package speaks, newest first.
func ContractVersions() []string {
	return contract.ContractVersions()
}
