package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Exit codes, each with one meaning for scripts.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitDenied      = 4
	exitConflict    = 5
	exitInvalid     = 6
	exitUnavailable = 7
	exitInterrupted = 130
)

// ExitCodesHelp explains the exit codes.
const ExitCodesHelp = `appctl ends with one of these codes:

  0    success
  1    the operation or action was run and failed, or the platform failed
  2    the command line is wrong: unknown command or flag, missing argument, no server or project configured
  3    the object does not exist, or you may not see it
  4    not logged in, or a permission is missing
  5    the object's state does not allow it: a conflict, a precondition, a reused idempotency key, missing evidence
  6    the input is wrong: a field, the configuration, a manifest, an allocation that does not fit, a limit
  7    the platform, an adapter, a node or capacity is unavailable now, or --timeout has passed: trying again may help
  130  interrupted

With -o json an error is one JSON document on standard error:

  {"error":{"code":"…","message":"…","correlationId":"…","retryable":false,"reasons":[{"code","message","path"}]},"exitCode":6}`

// codesOf holds the platform's catalogue of codes by exit code.
var codesOf = map[int][]string{
	exitDenied: {
		client.CodeUnauthenticated, client.CodeTokenExpired, client.CodePermissionRevoked, client.CodeForbidden,
		client.CodeDeviceNotAllocated,
		client.CodeNotEntitled, client.CodeLoginRefused, client.CodePolicyDenied,
	},
	exitNotFound: {client.CodeNotFound},
	exitConflict: {
		client.CodeConflict, client.CodeFailedPrecondition, client.CodeIdempotencyKeyReused, client.CodeStaleFence,
		client.CodeEvidenceMissing, client.CodeReadinessFailed, client.CodeResidueLeft, client.CodePlanStale,
		client.CodeControlPlaneInUse, client.CodeAdapterRejected, client.CodeCanceled, client.CodeSecretSpent,
		client.CodeArtifactQuarantined, client.CodePriceOverlap, client.CodePeriodClosed,
	},
	exitInvalid: {
		client.CodeInvalidArgument, client.CodeConfigInvalid, client.CodeManifestInvalid, client.CodeIncompatible,
		client.CodeClassUnavailable, client.CodeProfileUnavailable, client.CodeVolumeUnavailable,
		client.CodeLimitExceeded, client.CodeCursorInvalid, client.CodeCursorExpired, client.CodeDocumentInvalid,
		client.CodeDocumentTooLarge, client.CodeMessageTooLarge, client.CodeRequestInvalid, client.CodeDialRefused,
		client.CodeAdapterInsecure, client.CodePriceMissing, client.CodePriceRetroactive,
		client.CodeBudgetExceeded, client.CodeBudgetBelowHeld,
		client.CodeArtifactUnavailable, client.CodePolicyWidens, client.CodeDigestMismatch, client.CodeSourceUnknown,
		client.CodeSignatureMissing, client.CodeSignatureUntrusted,
	},
	exitUnavailable: {
		client.CodeSlowConsumer, client.CodeRateLimited, client.CodeCapacityUnavailable, client.CodeUnavailable,
		client.CodeDeadlineExceeded, client.CodeAdapterUnavailable, client.CodeNodeUnreachable,
		client.CodeRuntimeMissing,
		client.CodeRuntimeTooOld, client.CodeDeviceMissing, client.CodeMemberIDsExhausted,
		client.CodeAddressesExhausted,
	},
	exitFailed: {
		client.CodeMethodNotAllowed, client.CodeNotAcceptable, client.CodeUnsupportedMediaType,
		client.CodeAdapterFailed,
		client.CodeAdapterInvalid, client.CodeTaskFailed, client.CodeInternal,
	},
}

// exitOf holds the exit code of each code of the catalogue; a code that is not listed is a failure.
var exitOf = invert(codesOf)

func invert(codesOf map[int][]string) map[string]int {
	exitOf := map[string]int{}
	for exit, codes := range codesOf {
		for _, code := range codes {
			exitOf[code] = exit
		}
	}
	return exitOf
}

// A usageError is a command line that cannot be run.
type usageError struct{ error }

// Usagef returns the error of a command line that cannot be run.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Usage returns an error as one of the command line; nil for nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// Invalidf returns the error of input that is wrong before it is sent, with the platform's own code.
func Invalidf(format string, args ...any) error {
	return &client.Error{Code: client.CodeInvalidArgument, Message: fmt.Sprintf(format, args...)}
}

// NotFoundf returns the error of an object that does not exist, with the platform's own code.
func NotFoundf(format string, args ...any) error {
	return &client.Error{Code: client.CodeNotFound, Message: fmt.Sprintf(format, args...)}
}

// A failedError is an operation that ended badly; it fails the command whatever its code.
type failedError struct{ error }

// Failed returns an error that ends the command with exit code 1 whatever its code.
func Failed(err error) error { return failedError{err} }

// Unwrap returns the client's error for its parts.
func (e failedError) Unwrap() error { return e.error }

// Denied reports whether an error is of a caller that is not logged in or lacks the right.
func Denied(err error) bool { return exitCode(err) == exitDenied }

// KnownCode reports whether a code is in the platform's catalogue.
func KnownCode(code string) bool {
	_, known := exitOf[code]
	return known
}

// exitCode returns the exit code of an error.
func exitCode(err error) int {
	var usage usageError
	var failed failedError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &failed):
		return exitFailed
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, context.DeadlineExceeded):
		return exitUnavailable
	}
	if found, ok := client.AsError(err); ok {
		if code, known := exitOf[found.Code]; known {
			return code
		}
	}
	return exitFailed
}

// A problem is an error as JSON.
type problem struct {
	Code          string          `json:"code"`
	Message       string          `json:"message"`
	CorrelationID string          `json:"correlationId"`
	Retryable     bool            `json:"retryable"`
	Reasons       []client.Reason `json:"reasons"`
}

// describe returns any error in the platform's form.
func describe(err error) problem {
	if found, ok := client.AsError(err); ok {
		reasons := append([]client.Reason{}, found.Reasons...)
		return problem{found.Code, found.Message, found.CorrelationID, found.Retryable, reasons}
	}
	known := problem{Code: "FAILED", Message: err.Error(), Reasons: []client.Reason{}}
	var usage usageError
	switch {
	case errors.As(err, &usage):
		known.Code = "USAGE"
	case errors.Is(err, context.Canceled):
		known.Code, known.Message = client.CodeCanceled, "interrupted"
	case errors.Is(err, context.DeadlineExceeded):
		known.Code, known.Retryable = client.CodeDeadlineExceeded, true
	}
	return known
}

// report writes an error for a person or, as JSON, for a script.
func report(w io.Writer, err error, asJSON bool) {
	known := describe(err)
	if asJSON {
		_ = render.JSONLine(w, map[string]any{"error": known, "exitCode": exitCode(err)})
		return
	}
	fmt.Fprintf(w, "error: %s: %s\n", known.Code, render.Clean(known.Message))
	for _, reason := range known.Reasons {
		if line := reasonLine(reason, known.Message); line != "" {
			fmt.Fprintln(w, "  "+line)
		}
	}
	if known.CorrelationID != "" {
		fmt.Fprintln(w, "  correlation id: "+render.Clean(known.CorrelationID))
	}
}

// reasonLine returns one cause; one that only repeats the message is reduced to its path.
func reasonLine(reason client.Reason, message string) string {
	path, text := render.Clean(reason.Path), render.Clean(reason.Message)+" ("+render.Clean(reason.Code)+")"
	switch {
	case reason.Message == message && path == "":
		return ""
	case reason.Message == message:
		return "at " + path
	case path == "":
		return text
	default:
		return path + ": " + text
	}
}

// Reasons returns the reasons of an answer as those of an error.
func Reasons(given []gql.Reason) []client.Reason {
	reasons := make([]client.Reason, len(given))
	for i, one := range given {
		reasons[i] = client.Reason(one)
	}
	return reasons
}
