package transport

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gpuaas/app-platform/transport/guard"
)

// Codes that the transports themselves answer with. Codes lists them.
const (
	CodeUnauthenticated  = "UNAUTHENTICATED"
	CodeTokenExpired     = "TOKEN_EXPIRED"
	CodeForbidden        = "FORBIDDEN"
	CodeMethodNotAllowed = "METHOD_NOT_ALLOWED"
	CodeNotAcceptable    = "NOT_ACCEPTABLE"
	CodeMediaType        = "UNSUPPORTED_MEDIA_TYPE"
	CodeMessageTooLarge  = "MESSAGE_TOO_LARGE"
	CodeRequestInvalid   = "REQUEST_INVALID"
	CodeInvalidArgument  = "INVALID_ARGUMENT"
	CodeDocumentTooLarge = "DOCUMENT_TOO_LARGE"
	CodeDocumentInvalid  = "DOCUMENT_INVALID"
	CodeLimitExceeded    = "LIMIT_EXCEEDED"
	CodeRateLimited      = "RATE_LIMITED"
	CodeUnavailable      = "UNAVAILABLE"
	CodeDeadlineExceeded = "DEADLINE_EXCEEDED"
	CodeInternal         = "INTERNAL"
)

// Codes returns every code of this package, so that a test can check them against the
// platform's catalogue.
func Codes() []string {
	return []string{
		CodeUnauthenticated, CodeTokenExpired, CodeMethodNotAllowed, CodeNotAcceptable, CodeMediaType,
		CodeMessageTooLarge,
		CodeRequestInvalid, CodeForbidden, CodeInvalidArgument, CodeDocumentTooLarge, CodeDocumentInvalid,
		CodeLimitExceeded, CodeRateLimited, CodeUnavailable, CodeDeadlineExceeded, CodeInternal,
	}
}

// Error is a refusal by the transport itself. Its message is shown to the caller.
type Error struct {
	Code      string
	Message   string
	Retryable bool
	// RetryAfter is how long the caller is to wait, where that is known.
	RetryAfter time.Duration
}

// SetRetryAfter sets the Retry-After header of an HTTP answer, in whole seconds, where the error has a wait.
func (e *Error) SetRetryAfter(header http.Header) {
	if e.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Refuse makes a transport error.
func Refuse(code, message string) *Error { return &Error{Code: code, Message: message} }

// maxErrors is how many errors of one document are reported; the rest add nothing but bytes.
const maxErrors = 20

// Present turns any error into the envelope {code, correlation_id, retryable, reasons}.
// The transport's own errors keep their code; all others pass through the caller's
// Present function; what that leaves without a code becomes INTERNAL and is logged.
func (e *Engine) Present(ctx context.Context, err error) *gqlerror.Error {
	var own *Error
	var shown *gqlerror.Error
	if errors.As(err, &own) {
		shown = &gqlerror.Error{Message: own.Message, Extensions: map[string]any{"code": own.Code,
			"retryable": own.Retryable}}
		if given := new(gqlerror.Error); errors.As(err, &given) {
			shown.Path, shown.Locations = given.Path, given.Locations
		}
	} else {
		shown = e.config.Present(ctx, err)
	}
	if shown == nil || Code(shown) == "" {
		e.config.Log.ErrorContext(ctx, "unmapped error", slog.Any("error", err),
			slog.String("correlation_id", CorrelationID(ctx)))
		shown = hidden(shown)
	}
	if shown.Path == nil && graphql.GetFieldContext(ctx) != nil {
		shown.Path = graphql.GetPath(ctx)
	}
	return complete(ctx, shown)
}

// PresentCredentialError presents an error of Authenticate. Its code becomes UNAUTHENTICATED, unless it states that
// the credential has expired, the caller is forbidden or too fast, or that we are unable to check.
func (e *Engine) PresentCredentialError(ctx context.Context, err error) *gqlerror.Error {
	shown := e.config.Present(ctx, err)
	var own *Error
	if errors.As(err, &own) {
		shown = e.Present(ctx, err)
	}
	if shown != nil {
		switch Code(shown) {
		case CodeUnauthenticated, CodeTokenExpired, CodeForbidden, CodeRateLimited, CodeUnavailable,
			CodeDeadlineExceeded:
			return complete(ctx, shown)
		}
	}
	if shown == nil || Code(shown) == CodeInternal {
		e.config.Log.WarnContext(ctx, "credential not accepted for an unmapped reason", slog.Any("error", err),
			slog.String("correlation_id", CorrelationID(ctx)))
	}
	return e.Present(ctx, Refuse(CodeUnauthenticated, "the credential is missing, unknown or no longer valid"))
}

// hidden replaces an error that has no mapping; only its place is kept.
func hidden(from *gqlerror.Error) *gqlerror.Error {
	shown := &gqlerror.Error{Message: "internal error", Extensions: map[string]any{"code": CodeInternal}}
	if from != nil {
		shown.Path, shown.Locations = from.Path, from.Locations
	}
	return shown
}

// suggestion begins what gqlparser says a misspelt name may have meant.
const suggestion = " Did you mean"

// complete fills in the parts of the envelope that are missing, and shows no suggestion.
func complete(ctx context.Context, err *gqlerror.Error) *gqlerror.Error {
	err.Message, _, _ = strings.Cut(err.Message, suggestion)
	return envelop(ctx, err)
}

// envelop fills in the parts of the envelope that are missing.
func envelop(ctx context.Context, err *gqlerror.Error) *gqlerror.Error {
	given := err.Extensions
	ext := make(map[string]any, len(given)+5)
	for k, v := range given {
		ext[k] = v
	}
	ext["correlation_id"] = CorrelationID(ctx)
	if id := TraceID(ctx); id != "" {
		ext["trace_id"] = id
	}
	if _, ok := ext["retryable"]; !ok {
		ext["retryable"] = retryable(Code(err))
	}
	if _, ok := ext["reasons"]; !ok {
		ext["reasons"] = []any{}
	}
	err.Extensions = ext
	return err
}

func retryable(code string) bool {
	return code == CodeUnavailable || code == CodeRateLimited || code == CodeDeadlineExceeded
}

// Code is the catalogue code in an error's envelope, or "".
func Code(err *gqlerror.Error) string {
	c, _ := err.Extensions["code"].(string)
	return c
}

// refusal is the envelope of a document that the guard refused.
func refusal(ctx context.Context, g *guard.Error) *gqlerror.Error {
	c := CodeDocumentTooLarge
	if g.Kind == guard.Invalid {
		c = CodeDocumentInvalid
	}
	err := &gqlerror.Error{Message: g.Message, Extensions: map[string]any{"code": c}}
	if g.Line > 0 {
		err.Locations = []gqlerror.Location{{Line: g.Line, Column: g.Column}}
	}
	return complete(ctx, err)
}

// invalidDocument is the envelope of validation errors: schema names are shown, values
// of the document are not.
func (e *Engine) invalidDocument(ctx context.Context, list gqlerror.List) gqlerror.List {
	shown := make(gqlerror.List, 0, min(len(list), maxErrors))
	for _, err := range list[:min(len(list), maxErrors)] {
		message, _, _ := strings.Cut(withoutValues(err), suggestion)
		if _, meant, found := strings.Cut(err.Message, suggestion); found && e.config.Suggestions {
			message += suggestion + meant
		}
		shown = append(shown, envelop(ctx, &gqlerror.Error{
			Message: message, Path: err.Path, Locations: err.Locations,
			Extensions: map[string]any{"code": CodeDocumentInvalid},
		}))
	}
	return shown
}

// withoutValues drops literals from a validation message: the rule on values is the only
// one that quotes them, always after these words.
func withoutValues(err *gqlerror.Error) string {
	if !strings.HasPrefix(err.Rule, "ValuesOfCorrectType") {
		return err.Message
	}
	message := err.Message
	for _, mark := range []string{", found ", ": ", suggestion} {
		if cut := strings.Index(message, mark); cut >= 0 {
			message = message[:cut]
		}
	}
	if strings.HasPrefix(message, "Value ") {
		if cut := strings.LastIndex(message, " does not exist in "); cut >= 0 {
			message = "The value" + message[cut:]
		}
	}
	return message
}

// invalidVariable is the envelope of a variable that does not fit its declared type; the
// reason's path starts at the variable's name.
func invalidVariable(ctx context.Context, err *gqlerror.Error) *gqlerror.Error {
	path := err.Path
	if len(path) > 0 && path[0] == ast.PathName("variable") {
		path = path[1:]
	}
	message := "variable " + path.String() + ": " + err.Message
	if strings.Contains(err.Message, "cannot use value") { // it would show the value
		message = "variable " + path.String() + " does not fit its type"
	}
	return complete(ctx, &gqlerror.Error{
		Message: message,
		Extensions: map[string]any{
			"code":    CodeInvalidArgument,
			"reasons": []any{map[string]any{"code": CodeInvalidArgument, "message": message, "path": path.String()}},
		},
	})
}
