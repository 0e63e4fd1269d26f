package kit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/api"
	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/operation"
	"github.com/gpuaas/app-platform/sdk/adapter/sign"
	"github.com/gpuaas/app-platform/sdk/client"
)

// maxPlatformToken bounds the platform token read from a header, in bytes.
const maxPlatformToken = 8 << 10

// correlationPattern is what an accepted correlation id looks like.
var correlationPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Handler returns the HTTP handler of every route of the contract. Nothing is answered without a
// valid request token. Bodies are bounded both ways by [contract.MaxBody].
func (k *Kit) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, next := range k.routes() {
		mux.HandleFunc(pattern, k.serve(next))
	}
	mux.HandleFunc("/", k.serve(notFound))
	return mux
}

// Routes returns the routes that the handler serves, each as "METHOD path", as the contract's OpenAPI document lists
// them.
func (k *Kit) Routes() []string { return slices.Sorted(maps.Keys(k.routes())) }

// routes holds the endpoint of each route.
func (k *Kit) routes() map[string]endpoint {
	return map[string]endpoint{
		"GET /v1/adapter":                        k.describe,
		"GET /v1/operations":                     k.changes,
		"PUT /v1/operations/{id}":                k.dispatch,
		"GET /v1/operations/{id}":                k.status,
		"POST /v1/operations/{id}/cancel":        k.cancel,
		"POST /v1/plans":                         k.plan,
		"GET /v1/instances/{id}":                 k.observe,
		"POST /v1/instances/{id}/actions/{name}": k.action,
		"GET /v1/instances/{id}/usage":           k.usage,
	}
}

// request is a verified request with its body.
type request struct {
	*http.Request
	body []byte
	log  *slog.Logger
}

// answer is a response: a status and a value to encode.
type answer struct {
	status int
	body   any
}

type endpoint func(ctx context.Context, r request) (answer, error)

// serve verifies a request before anything else: the signature of its token before its body is
// read, so that strangers cannot make the adapter hold bodies.
func (k *Kit) serve(next endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		log := k.config.Log.With("method", r.Method, "path", r.URL.Path)
		if id := r.Header.Get(contract.HeaderCorrelation); correlationPattern.MatchString(id) {
			w.Header().Set(contract.HeaderCorrelation, id)
			log = log.With("correlation_id", id)
		}
		if id := api.TraceID(r.Header.Get(contract.HeaderTraceparent)); id != "" {
			log = log.With("trace_id", id)
		}
		result, err := k.handle(w, r, log, next)
		if err != nil {
			result = refusal(err, log)
		}
		write(w, result, log)
		log.Debug("request", "status", result.status, "duration", time.Since(began))
	}
}

func (k *Kit) handle(w http.ResponseWriter, r *http.Request, log *slog.Logger, next endpoint) (answer, error) {
	claims, err := k.verifier.OpenRequest(r)
	if err != nil {
		return answer{}, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, contract.MaxBody))
	if err != nil {
		return answer{}, err
	}
	if err := k.verifier.CheckClaims(claims, r.Method, r.URL.RequestURI(), body); err != nil {
		return answer{}, err
	}
	var result answer
	// Whatever the adapter calls the platform for belongs to the trace that it was called in.
	traced := client.WithTraceparent(r.Context(), r.Header.Get(contract.HeaderTraceparent))
	err = k.engine.Serve(traced, func(ctx context.Context) error {
		var err error
		result, err = next(ctx, request{Request: r, body: body, log: log})
		return err
	})
	return result, err
}

// decode reads a JSON body into out. Unknown fields are let pass: a newer platform may send them.
func (r request) decode(out any) error {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return contract.ErrorBody{Code: contract.CodeInvalid, Message: "Content-Type must be application/json",
			Path: "Content-Type"}
	}
	err := json.Unmarshal(r.body, out)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return contract.Invalid(wrong.Field, "must not be a JSON %s", wrong.Value)
	}
	if err != nil {
		return contract.ErrorBody{Code: contract.CodeInvalid, Message: "the body is not JSON"}
	}
	return nil
}

func (k *Kit) describe(context.Context, request) (answer, error) {
	return answer{http.StatusOK, k.Describe()}, nil
}

func (k *Kit) changes(ctx context.Context, r request) (answer, error) {
	query := r.URL.Query()
	seconds, err := strconv.Atoi(query.Get("wait"))
	if query.Get("wait") != "" && (err != nil || seconds < 0 || time.Duration(seconds)*time.Second > contract.MaxWait) {
		return answer{}, contract.Invalid("wait", "must be 0 to %d seconds", contract.MaxWait/time.Second)
	}
	page, err := k.engine.Changes(ctx, query.Get("after"), time.Duration(seconds)*time.Second)
	return answer{http.StatusOK, page}, err
}

func (k *Kit) dispatch(ctx context.Context, r request) (answer, error) {
	var d contract.Dispatch
	if err := r.decode(&d); err != nil {
		return answer{}, err
	}
	if d.OperationID != r.PathValue("id") {
		return answer{}, contract.Invalid("operationId", "is not the id of the path")
	}
	if err := d.Validate(); err != nil {
		return answer{}, err
	}
	if d.Traceparent == "" {
		d.Traceparent = r.Header.Get(contract.HeaderTraceparent)
	}
	result, err := k.take(ctx, d)
	if err != nil {
		return answer{}, err
	}
	if result.Done {
		return answer{http.StatusOK, result.Status}, nil
	}
	return answer{http.StatusAccepted, result.Status}, nil
}

// take begins, repeats or refuses a valid dispatch.
func (k *Kit) take(ctx context.Context, d contract.Dispatch) (operation.Result, error) {
	hash, err := d.SpecHash()
	if err != nil {
		return operation.Result{}, err
	}
	if !k.engine.Knows(d.OperationID) {
		if err := k.admit(ctx, d); err != nil {
			return operation.Result{}, err
		}
	}
	return k.engine.Dispatch(d, hash)
}

// admit decides whether a new operation may begin, by the app, the kind, the config and the author's Check. The config
// of what is removed is not checked: an adapter that would not start it any more still tears it down.
func (k *Kit) admit(ctx context.Context, d contract.Dispatch) error {
	app, ok := k.app(d.Instance.App)
	if !ok {
		return unprocessable{contract.ErrorBody{Code: contract.CodeUnsupported,
			Message: "this adapter does not run the app", Path: "instance.app"}}
	}
	if app.Operations[d.Kind] == nil {
		return unprocessable{contract.ErrorBody{Code: contract.CodeUnsupported,
			Message: "this adapter does not support the operation kind", Path: "kind"}}
	}
	if !d.Kind.TakesAway() {
		if err := app.config.Check(d.Instance.Config, contract.CodeConfigInvalid, "instance.config"); err != nil {
			return refused(err)
		}
	}
	if app.Check == nil {
		return nil
	}
	return refused(app.Check(ctx, d))
}

func (k *Kit) status(_ context.Context, r request) (answer, error) {
	status, ok := k.engine.Status(r.PathValue("id"))
	if !ok {
		return answer{}, missing("operation")
	}
	return answer{http.StatusOK, status}, nil
}

func (k *Kit) cancel(ctx context.Context, r request) (answer, error) {
	var body contract.CancelRequest
	if err := r.decode(&body); err != nil {
		return answer{}, err
	}
	if body.Attempt < 1 {
		return answer{}, contract.Invalid("attempt", "must be at least 1")
	}
	result, err := k.engine.Cancel(ctx, r.PathValue("id"), body.Attempt)
	return answer{http.StatusOK, result}, err
}

func notFound(context.Context, request) (answer, error) { return answer{}, missing("route") }

func missing(what string) error {
	return contract.ErrorBody{Code: contract.CodeNotFound, Message: "no such " + what}
}

// unprocessable is an error answered 422: understood, and refused.
type unprocessable struct{ contract.ErrorBody }

// refused marks an author's refusal as such; other errors pass.
func refused(err error) error {
	var body contract.ErrorBody
	if errors.As(err, &body) {
		return unprocessable{body}
	}
	return err
}

// refusal turns an error into an answer. What the error says beyond the contract is only logged.
func refusal(err error, log *slog.Logger) answer {
	var understood unprocessable
	var body contract.ErrorBody
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, sign.ErrSignature):
		log.Warn("request refused", "error", err)
		return answer{http.StatusUnauthorized, contract.ErrorBody{Code: contract.CodeUnauthorized,
			Message: "the request's token was refused"}}
	case errors.As(err, &tooLarge):
		return answer{http.StatusRequestEntityTooLarge, contract.ErrorBody{Code: contract.CodeTooLarge,
			Message: "the body is larger than 1 MiB"}}
	case errors.As(err, &understood):
		return answer{http.StatusUnprocessableEntity, understood.ErrorBody}
	case errors.As(err, &body):
		return answer{statusOf(body.Code), body}
	}
	log.Error("request failed", "error", err)
	return answer{http.StatusInternalServerError, contract.ErrorBody{Code: contract.CodeInternal,
		Message: "the adapter had an internal error", Retryable: true}}
}

func statusOf(code string) int {
	switch code {
	case contract.CodeNotFound, contract.CodePlansUnsupported:
		return http.StatusNotFound
	case contract.CodeBodyMismatch, contract.CodeStaleFence, contract.CodeKeyReused:
		return http.StatusConflict
	case contract.CodeUnavailable:
		return http.StatusServiceUnavailable
	case contract.CodeInvalid:
		return http.StatusBadRequest
	}
	return http.StatusUnprocessableEntity
}

func write(w http.ResponseWriter, result answer, log *slog.Logger) {
	raw, err := json.Marshal(result.body)
	if err == nil && len(raw) > contract.MaxBody {
		err = errors.New("answer is larger than 1 MiB")
	}
	if err != nil {
		log.Error("answer not written", "error", err)
		result.status, raw = http.StatusInternalServerError,
			[]byte(`{"code":"INTERNAL","message":"the answer could not be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if result.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(result.status)
	if _, err := w.Write(raw); err != nil {
		log.Debug("answer not read", "error", err)
	}
}
