package wire

import (
	"errors"
	"fmt"
)

// The codes a failed task carries in its result.
const (
	CodeSpecInvalid       = "SPEC_INVALID"
	CodeSealedInvalid     = "SEALED_INVALID"
	CodeSecretSpent       = "SECRET_SPENT"
	CodeSecretUnknown     = "SECRET_UNKNOWN"
	CodeSecretUnavailable = "SECRET_UNAVAILABLE"
	// Of artifacts and first boots.
	CodeDigestMismatch      = "DIGEST_MISMATCH"
	CodeArtifactUnavailable = "ARTIFACT_UNAVAILABLE"
	CodeArtifactQuarantined = "ARTIFACT_QUARANTINED"
	CodeDiskFull            = "DISK_FULL"
	CodeCloudInitMissing    = "CLOUD_INIT_MISSING"
	CodeCloudInitFailed     = "CLOUD_INIT_FAILED"

	CodeStartFailed     = "START_FAILED"
	CodeUserUnknown     = "USER_UNKNOWN"
	CodePathInvalid     = "PATH_INVALID"
	CodeWriteFailed     = "WRITE_FAILED"
	CodeProcessDiffers  = "PROCESS_SPEC_DIFFERS"
	CodeStaleFence      = "STALE_FENCE"
	CodeUnknownRun      = "UNKNOWN_RUN"
	CodeSandboxLost     = "SANDBOX_LOST"
	CodeSandboxFailed   = "SANDBOX_FAILED"
	CodeSandboxForeign  = "SANDBOX_FOREIGN"
	CodeLimitExceeded   = "LIMIT_EXCEEDED"
	CodeStopping        = "STOPPING"
	CodeInterrupted     = "INTERRUPTED"
	CodeResidueLeft     = "RESIDUE_LEFT"
	CodeInternal        = "INTERNAL"
	CodeProtocolUnknown = "PROTOCOL_UNKNOWN"

	// Of walls: what the node lacks, raised before anything of the member is started.
	CodeRuntimeMissing       = "RUNTIME_MISSING"
	CodeRuntimeTooOld        = "RUNTIME_TOO_OLD"
	CodeIsolationUnavailable = "ISOLATION_UNAVAILABLE"
	CodeProfileUnavailable   = "PROFILE_UNAVAILABLE"
	CodeDeviceNotAllocated   = "DEVICE_NOT_ALLOCATED"
	CodeDeviceMissing        = "DEVICE_MISSING"
	CodeMemberIDsExhausted   = "MEMBER_IDS_EXHAUSTED"
	CodeVolumeUnavailable    = "VOLUME_UNAVAILABLE"
)

// Error is a refusal or a failure with a code for programs and a text for people. It crosses the
// socket as it is.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error returns the text.
func (e *Error) Error() string { return e.Message }

// Errorf makes an Error.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// AsError turns any error into an *Error; what carries no code becomes INTERNAL.
func AsError(err error) *Error {
	var coded *Error
	if errors.As(err, &coded) {
		return &Error{Code: coded.Code, Message: err.Error()}
	}
	return &Error{Code: CodeInternal, Message: err.Error()}
}

// HasCode reports whether err carries the code.
func HasCode(err error, code string) bool {
	var coded *Error
	return errors.As(err, &coded) && coded.Code == code
}
