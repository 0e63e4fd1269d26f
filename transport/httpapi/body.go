package httpapi

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gpuaas/app-platform/transport"
)

// failure is a refusal with its HTTP status.
type failure struct {
	status int
	err    error
}

func refuse(status int, code, message string) *failure {
	return &failure{status, transport.Refuse(code, message)}
}

// read takes the body, at most limit bytes of it and for at most patience.
func read(w http.ResponseWriter, r *http.Request, limit int64, patience time.Duration) ([]byte, *failure) {
	if r.ContentLength > limit {
		return nil, tooLarge(w)
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	// The deadline is for the body alone: the operation may take its own time. After a failure it stays, since
	// the server would otherwise wait for the rest of the body before it answers.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(patience)) // a writer that has no deadlines is a test's
	if _, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, limit)); err != nil {
		if over := new(http.MaxBytesError); errors.As(err, &over) {
			return nil, tooLarge(w)
		}
		w.Header().Set("Connection", "close")
		return nil, refuse(http.StatusBadRequest, transport.CodeRequestInvalid, "the request body could not be read")
	}
	_ = control.SetReadDeadline(time.Time{})
	return buf.Bytes(), nil
}

// tooLarge also ends the connection: the rest of such a body is not worth reading.
func tooLarge(w http.ResponseWriter) *failure {
	w.Header().Set("Connection", "close")
	return refuse(http.StatusRequestEntityTooLarge, transport.CodeMessageTooLarge, "the request body is too large")
}

// parse decodes {query, operationName, variables, extensions}. Other keys are ignored,
// as the specification asks; anything after the object is refused.
func parse(body []byte) (*graphql.RawParams, *failure) {
	params, err := transport.Params(body)
	switch {
	case err == nil:
		return params, nil
	case !errors.Is(err, transport.ErrNoObject):
		return nil, &failure{http.StatusBadRequest, err}
	case bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")):
		return nil, refuse(http.StatusBadRequest, transport.CodeRequestInvalid, "batches of operations are not served")
	}
	return nil, refuse(http.StatusBadRequest, transport.CodeRequestInvalid,
		"the request body is not one JSON object in UTF-8")
}
