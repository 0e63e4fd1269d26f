package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// maxReasons bounds the reasons kept of one error.
const maxReasons = 200

// Error is a refusal or failure, as the platform's envelope describes it. Where no envelope arrived (no
// connection, a proxy's page) the code is the one that fits, and Unwrap returns the cause.
type Error struct {
	// Code is a code of the platform's catalogue, such as NOT_FOUND.
	Code string
	// Message says what is wrong, for a person.
	Message string
	// CorrelationID finds the call in the platform's logs and audit.
	CorrelationID string
	// Retryable says whether the same request, unchanged, may succeed later.
	Retryable bool
	// Reasons are the single causes, each with the path of the input field where there is one; at most 200.
	Reasons []Reason
	// Field is the path of the answer's field that failed, such as launchInstance; empty when unknown.
	Field string
	// HTTPStatus is the answer's status; 0 when there was none.
	HTTPStatus int
	// CloseCode is the socket's close code that ended a feed; 0 when none did.
	CloseCode int
	// Err is the cause below the protocol; nil when the platform itself refused.
	Err error
}

// Reason is one cause of an Error.
type Reason struct {
	// Code is a code of the platform's catalogue.
	Code string `json:"code"`
	// Message says what is wrong with this one thing.
	Message string `json:"message"`
	// Path names the input field, such as input.config.workers; empty where no field is at fault.
	Path string `json:"path"`
}

// Error returns code and message, then each reason with its path, then the correlation id. A reason that only repeats
// the message adds its path.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString(e.Code + ": " + e.Message)
	for _, reason := range e.Reasons {
		switch {
		case reason.Path == "" && reason.Message == e.Message:
		case reason.Message == e.Message:
			text.WriteString(" (at " + reason.Path + ")")
		case reason.Path == "":
			text.WriteString("; " + reason.Message)
		default:
			text.WriteString("; " + reason.Path + ": " + reason.Message)
		}
	}
	if e.CorrelationID != "" {
		text.WriteString(" (correlation id " + e.CorrelationID + ")")
	}
	return text.String()
}

// Unwrap returns the cause below the protocol.
func (e *Error) Unwrap() error { return e.Err }

// AsError finds the Error in err's chain.
func AsError(err error) (*Error, bool) {
	var found *Error
	ok := errors.As(err, &found)
	return found, ok
}

// CodeOf returns the code of the Error in err's chain; empty when the chain has no Error.
func CodeOf(err error) string {
	if found, ok := AsError(err); ok {
		return found.Code
	}
	return ""
}

// wireError is a GraphQL error with the platform's extensions.
type wireError struct {
	Message    string `json:"message"`
	Path       []any  `json:"path"`
	Extensions struct {
		Code          string   `json:"code"`
		CorrelationID string   `json:"correlation_id"`
		Retryable     bool     `json:"retryable"`
		Reasons       []Reason `json:"reasons"`
	} `json:"extensions"`
}

// fromWire returns the first of the errors, as it is the one that decided the answer.
func fromWire(list []wireError) *Error {
	first := list[0]
	found := &Error{
		Code: first.Extensions.Code, Message: first.Message, CorrelationID: first.Extensions.CorrelationID,
		Retryable: first.Extensions.Retryable, Reasons: first.Extensions.Reasons, Field: joinPath(first.Path),
	}
	if found.Code == "" {
		found.Code = CodeInternal
	}
	if len(found.Reasons) > maxReasons {
		found.Reasons = found.Reasons[:maxReasons]
	}
	return found
}

func joinPath(path []any) string {
	parts := make([]string, 0, len(path))
	for _, part := range path {
		parts = append(parts, fmt.Sprint(part))
	}
	return strings.Join(parts, ".")
}

// maxRefusalBody bounds what is read of an answer that refuses, in bytes.
const maxRefusalBody = 64 << 10

// fromBody reads the error from an answer that is not a success: GraphQL errors, else the status alone. The body
// itself is not repeated, as a proxy's page does not help a reader.
func fromBody(status int, header http.Header, body []byte) *Error {
	var envelope struct {
		Errors []wireError `json:"errors"`
	}
	var found *Error
	if json.Unmarshal(body, &envelope) == nil && len(envelope.Errors) > 0 {
		found = fromWire(envelope.Errors)
	} else {
		found = fromStatus(status)
	}
	found.HTTPStatus = status
	if found.CorrelationID == "" {
		found.CorrelationID = header.Get("X-Correlation-Id")
	}
	return found
}

// statusCodes are the codes of answers that carry no envelope.
var statusCodes = map[int]string{
	http.StatusBadRequest:            CodeRequestInvalid,
	http.StatusUnauthorized:          CodeUnauthenticated,
	http.StatusForbidden:             CodeForbidden,
	http.StatusNotFound:              CodeNotFound,
	http.StatusMethodNotAllowed:      CodeMethodNotAllowed,
	http.StatusRequestEntityTooLarge: CodeMessageTooLarge,
	http.StatusTooManyRequests:       CodeRateLimited,
	http.StatusBadGateway:            CodeUnavailable,
	http.StatusServiceUnavailable:    CodeUnavailable,
	http.StatusGatewayTimeout:        CodeUnavailable,
}

func fromStatus(status int) *Error {
	code, known := statusCodes[status]
	if !known {
		code = CodeInternal
	}
	retryable := code == CodeUnavailable || code == CodeRateLimited
	return &Error{Code: code, Message: fmt.Sprintf("the server answered %d %s", status, http.StatusText(status)),
		Retryable: retryable}
}

// unreachable is the error of a request that got no answer.
func unreachable(err error) *Error {
	return &Error{Code: CodeUnavailable, Message: "cannot reach the server: " + err.Error(), Retryable: true, Err: err}
}
