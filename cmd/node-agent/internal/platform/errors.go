package platform

import (
	"net/http"

	"github.com/gpuaas/app-platform/sdk/client"
)

// closeUnauthorized and closeForbidden are the socket's close codes for a refused credential.
const (
	closeUnauthorized = 4401
	closeForbidden    = 4403
)

// permanent are the codes that a repetition of the same request cannot change.
var permanent = map[string]bool{
	client.CodeForbidden: true, client.CodeNotFound: true, client.CodeInvalidArgument: true, client.CodeConflict: true,
	client.CodeFailedPrecondition: true, client.CodeStaleFence: true, client.CodeIdempotencyKeyReused: true,
	client.CodeArtifactQuarantined: true, client.CodeDocumentInvalid: true, client.CodeDocumentTooLarge: true,
	client.CodeMessageTooLarge: true, client.CodeCursorExpired: true,
}

// Permanent reports whether repeating the request is useless. A refused credential is not permanent: it is rotated or
// renewed meanwhile. Nor is a status of 404, which comes from something in between: the platform itself answers with an
// error that names the object it does not know.
func Permanent(err error) bool {
	refusal, ok := client.AsError(err)
	return ok && permanent[refusal.Code] && !refusal.Retryable && refusal.HTTPStatus != http.StatusNotFound
}

// TooLarge reports whether the platform takes less than was sent: of a document, or of a request altogether.
func TooLarge(err error) bool {
	code := client.CodeOf(err)
	return code == client.CodeDocumentTooLarge || code == client.CodeMessageTooLarge
}

// Unauthenticated reports whether the platform refused the credential.
func Unauthenticated(err error) bool {
	refusal, ok := client.AsError(err)
	if !ok {
		return false
	}
	switch {
	case refusal.Code == client.CodeUnauthenticated, refusal.Code == client.CodeTokenExpired:
		return true
	default:
		return refusal.CloseCode == closeUnauthorized || refusal.CloseCode == closeForbidden
	}
}
