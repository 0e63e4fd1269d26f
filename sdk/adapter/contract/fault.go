package contract

import (
	"errors"
	"fmt"
)

// Codes of [ErrorBody] and [OperationError] that the kit itself uses. An adapter may use its
// own beside them; a platform decides by HTTP status, owner and retryable, never by the code.
const (
	CodeInvalid       = "INVALID_ARGUMENT"
	CodeUnauthorized  = "UNAUTHENTICATED"
	CodeNotFound      = "NOT_FOUND"
	CodeTooLarge      = "DOCUMENT_TOO_LARGE"
	CodeBodyMismatch  = "BODY_MISMATCH"
	CodeStaleFence    = "STALE_FENCE"
	CodeKeyReused     = "IDEMPOTENCY_KEY_REUSED"
	CodeUnsupported   = "UNSUPPORTED_OPERATION"
	CodeConfigInvalid = "CONFIG_INVALID"
	CodeRejected      = "REJECTED"
	CodeUnavailable   = "UNAVAILABLE"
	CodeInternal      = "INTERNAL"
	CodeDeadline      = "DEADLINE_EXCEEDED"
	CodeCanceled      = "CANCELED"
	CodeNodeTask      = "NODE_TASK_FAILED"
	CodePlatform      = "PLATFORM_REFUSED"

	CodePlansUnsupported = "PLANS_UNSUPPORTED"
	CodeNodeUnreachable  = "NODE_UNREACHABLE"
)

// Error makes ErrorBody an error, so that a function can return what the caller shall read.
func (e ErrorBody) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("%s: %s: %s", e.Code, e.Path, e.Message)
}

// Error makes OperationError an error: what an operation function returns to fail with it.
func (e OperationError) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// Reject is what a Check or an action returns to refuse before anything was done: answered 422
// with this code, path and text.
func Reject(code, path, format string, args ...any) error {
	return ErrorBody{Code: code, Message: fmt.Sprintf(format, args...), Path: path}
}

// Fail is what an operation function returns to fail with a code of its own, an owner and
// whether a new dispatch may succeed.
func Fail(code string, owner Owner, retryable bool, format string, args ...any) error {
	return OperationError{Code: code, Message: fmt.Sprintf(format, args...), Owner: owner, Retryable: retryable}
}

// Invalid returns the refusal of a field: INVALID_ARGUMENT with its path.
func Invalid(path, format string, args ...any) error {
	return ErrorBody{Code: CodeInvalid, Message: path + " " + fmt.Sprintf(format, args...), Path: path}
}

// ErrCanceled is the cause of a run's context when the platform asked to cancel the operation.
var ErrCanceled = errors.New("the platform canceled the operation")
