package kit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/api"
	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
	"github.com/gpuaas/app-platform/sdk/client"
)

const (
	// maxCall bounds an action, an observation or a usage query.
	maxCall = 2 * time.Minute
	// maxActionKeys bounds the action keys remembered for telling a repeat from a reuse.
	maxActionKeys = 4096
)

// actionKeys remembers the newest action keys with a hash of what they were used for.
type actionKeys struct {
	seen  map[string]string
	order []string
}

// use says whether key is new or was used for the same thing.
func (a *actionKeys) use(key, hash string) bool {
	if held, ok := a.seen[key]; ok {
		return held == hash
	}
	if a.seen == nil {
		a.seen = make(map[string]string)
	}
	if len(a.order) == maxActionKeys {
		delete(a.seen, a.order[0])
		a.order = a.order[1:]
	}
	a.seen[key] = hash
	a.order = append(a.order, key)
	return true
}

func digest(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil))[:40]
}

func (k *Kit) action(ctx context.Context, r request) (answer, error) {
	var body contract.ActionRequest
	if err := r.decode(&body); err != nil {
		return answer{}, err
	}
	if err := body.Validate(r.PathValue("id")); err != nil {
		return answer{}, err
	}
	action, ok := k.findAction(body.Instance.App, r.PathValue("name"))
	if !ok {
		return answer{}, missing("action")
	}
	if err := action.input.Check(body.Input, contract.CodeInvalid, "input"); err != nil {
		return answer{}, refused(err)
	}
	key := digest(body.Instance.ID, action.Name, body.IdempotencyKey)
	k.mu.Lock()
	same := k.actions.use(key, digest(string(wire.Canonical(body.Input))))
	k.mu.Unlock()
	if !same {
		return answer{}, contract.ErrorBody{Code: contract.CodeKeyReused,
			Message: "the idempotency key was used with another input", Path: "idempotencyKey"}
	}
	return k.act(ctx, action, body, "act."+key, r)
}

func (k *Kit) act(ctx context.Context, action compiledAction, body contract.ActionRequest, key string,
	r request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	log := r.log.With("instance", body.Instance.ID, "action", action.Name)
	call := &Call{
		Instance: body.Instance, Members: body.Members, Input: body.Input, Requester: body.Requester,
		Log: log, key: key, tasks: api.NewClient(once(body.Platform), r.Header.Get(contract.HeaderCorrelation), log),
	}
	output, err := action.Do(ctx, call)
	if err != nil {
		return answer{}, actionError(err)
	}
	raw, err := object(output)
	if err != nil {
		return answer{}, fmt.Errorf("output of action %s: %w", action.Name, err)
	}
	if err := action.output.Check(raw, contract.CodeInternal, "output"); err != nil {
		// Said with %v: an adapter that breaks its own schema is an internal error, no refusal.
		return answer{}, fmt.Errorf("action %s breaks its output schema: %v", action.Name, err)
	}
	return answer{http.StatusOK, contract.ActionResult{Output: raw}}, nil
}

// once is access that is not renewed: the token of one call lives as long as the call.
func once(p contract.Platform) contract.Platform {
	p.TokenExpiresAt = time.Time{}
	return p
}

func (k *Kit) findAction(app, name string) (compiledAction, bool) {
	one, ok := k.app(app)
	if !ok {
		return compiledAction{}, false
	}
	action, ok := one.actions[name]
	return action, ok
}

// actionError maps what an action met to what its caller reads.
func actionError(err error) error {
	var platform *client.Error
	var failed contract.OperationError
	switch {
	case errors.As(err, &platform) && platform.Code == contract.CodeKeyReused:
		return contract.ErrorBody{Code: contract.CodeKeyReused,
			Message: "the idempotency key was used with another input", Path: "idempotencyKey"}
	case errors.As(err, &platform):
		return unprocessable{contract.ErrorBody{Code: contract.CodePlatform,
			Message:   wire.Clip(platform.Code+": "+platform.Message, contract.MaxMessage),
			Retryable: platform.Retryable}}
	case errors.As(err, &failed):
		return unprocessable{contract.ErrorBody{Code: failed.Code, Message: wire.Clip(failed.Message,
			contract.MaxMessage), Retryable: failed.Retryable}}
	case errors.Is(err, context.DeadlineExceeded):
		return contract.ErrorBody{Code: contract.CodeUnavailable, Message: "the action did not end in time",
			Retryable: true}
	}
	return refused(err)
}

// known makes a call about an instance that exists, with the access of this request.
func (k *Kit) known(r request) (*Call, *compiledApp, error) { return k.about(r, k.engine.Instance) }

// about makes a call about an instance that find knows.
func (k *Kit) about(r request, find func(string) (contract.Instance, []contract.Member, bool)) (*Call, *compiledApp,
	error) {
	token := r.Header.Get(contract.HeaderPlatformToken)
	if token == "" || len(token) > maxPlatformToken {
		return nil, nil, contract.Invalid(contract.HeaderPlatformToken, "is missing or too long")
	}
	instance, members, ok := find(r.PathValue("id"))
	if !ok {
		return nil, nil, missing("instance")
	}
	app, ok := k.app(instance.App)
	if !ok {
		return nil, nil, missing("app")
	}
	platform := contract.Platform{GraphQLURL: k.config.GraphQLURL, Token: token}
	log := r.log.With("instance", instance.ID)
	return &Call{
		Instance: instance, Members: members, Log: log,
		// Every observation reads the present state, so its tasks must be new ones.
		key:   "obs." + digest(time.Now().String(), token),
		tasks: api.NewClient(platform, r.Header.Get(contract.HeaderCorrelation), log),
	}, app, nil
}

func (k *Kit) observe(ctx context.Context, r request) (answer, error) {
	call, app, err := k.known(r)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	seen := contract.Observation{Health: contract.HealthUnknown, Message: "this adapter does not observe"}
	if app.Observe != nil {
		if seen, err = app.Observe(ctx, call); err != nil {
			return answer{}, actionError(err)
		}
	}
	seen.InstanceID = call.Instance.ID
	seen.Members = wire.NonNil(seen.Members)
	if seen.ObservedAt.IsZero() {
		seen.ObservedAt = time.Now().UTC()
	}
	return answer{http.StatusOK, seen}, nil
}

// usage answers also for an instance that was decommissioned, without its members: what was counted last is read after
// its end.
func (k *Kit) usage(ctx context.Context, r request) (answer, error) {
	call, app, err := k.about(r, k.engine.Remembered)
	if err != nil {
		return answer{}, err
	}
	after := r.URL.Query().Get("after")
	if len(after) > contract.MaxKeyLength {
		return answer{}, contract.Invalid("after", "must be at most %d bytes", contract.MaxKeyLength)
	}
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	page := contract.UsagePage{Cursor: after}
	if app.Usage != nil {
		if page, err = app.Usage(ctx, call, after); err != nil {
			return answer{}, actionError(err)
		}
	}
	if len(page.Records) > contract.MaxUsageRecords {
		return answer{}, fmt.Errorf("usage: %d records are more than %d", len(page.Records), contract.MaxUsageRecords)
	}
	page.Records = wire.NonNil(page.Records)
	return answer{http.StatusOK, page}, nil
}
