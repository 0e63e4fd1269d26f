package authhttp

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/edge"
	"github.com/gpuaas/app-platform/transport"
)

const (
	clientCredentials = "client_credentials"
	tokenExchange     = "urn:ietf:params:oauth:grant-type:token-exchange" // #nosec G101 -- RFC 8693: a name, no secret
	// standardExchange is how long an exchanged token is valid when the request does not state it.
	standardExchange = 15 * time.Minute
)

// exchange turns a service account's key into a short-lived token: the OAuth 2.0 client-credentials grant, or the
// token-exchange grant with the key as subject_token, as a form or as JSON.
func (h *Handler) exchange(w http.ResponseWriter, r *http.Request) {
	in, err := h.exchangeForm(w, r)
	if err != nil {
		h.failOAuth(w, r, err)
		return
	}
	key, err := keyOf(r, in)
	if err != nil {
		h.failOAuth(w, r, err)
		return
	}
	ttl, err := ttlOf(in.Get("expires_in"))
	if err != nil {
		h.failOAuth(w, r, err)
		return
	}
	guess := edge.Attempt{Address: edge.Address(r), Secret: key}
	if err := h.options.Guesses.Check(guess); err != nil {
		edge.Refuse(w, r, err)
		return
	}
	made, err := h.options.Identity.Exchange(r.Context(), key, ttl, strings.Fields(in.Get("scope")))
	if err != nil {
		if fault.Is(err, fault.Unauthenticated) {
			h.options.Guesses.Failed(guess)
		}
		h.failOAuth(w, r, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{
		"access_token": made.Token, "token_type": "Bearer", "expires_in": int(time.Until(made.ExpiresAt).Seconds()),
		"expires_at": made.ExpiresAt.UTC().Format(time.RFC3339), "scope": strings.Join(made.PermissionKeys, " "),
		"issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
	})
}

// exchangeForm reads the body: a form, or one flat JSON object of texts and numbers.
func (h *Handler) exchangeForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if over := new(http.MaxBytesError); errors.As(err, &over) {
		return nil, fault.New(fault.MessageTooLarge, "the body may have at most %d bytes", maxBody)
	}
	if err != nil {
		return nil, fault.New(fault.RequestInvalid, "the body could not be read").Because(err)
	}
	malformed := fault.New(fault.RequestInvalid, "the body must be a form, or one JSON object, with grant_type")
	switch media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case err == nil && media == "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, malformed
		}
		for _, given := range form {
			if len(given) != 1 {
				return nil, malformed
			}
		}
		return form, nil
	case err == nil && media == "application/json":
		var object map[string]any
		if json.Unmarshal(body, &object) != nil {
			return nil, malformed
		}
		form := url.Values{}
		for name, value := range object {
			switch value := value.(type) {
			case string:
				form.Set(name, value)
			case float64:
				form.Set(name, strconv.FormatFloat(value, 'f', -1, 64))
			default:
				return nil, malformed
			}
		}
		return form, nil
	}
	return nil, fault.New(fault.UnsupportedMediaType,
		"the body must be application/x-www-form-urlencoded or application/json")
}

// keyOf is the key that is shown, in the one place where it is shown; never a cookie.
func keyOf(r *http.Request, in url.Values) (string, error) {
	var shown []string
	add := func(key string) {
		if key != "" {
			shown = append(shown, key)
		}
	}
	switch in.Get("grant_type") {
	case clientCredentials:
		add(in.Get("client_secret"))
	case tokenExchange:
		add(in.Get("subject_token"))
	default:
		return "", fault.New(fault.InvalidArgument, "grant_type must be %s or %s", clientCredentials,
			tokenExchange).At("grant_type")
	}
	if authorization := r.Header.Get("Authorization"); authorization != "" {
		bearer, is := transport.Bearer(authorization)
		if _, password, basic := r.BasicAuth(); basic {
			bearer, is = password, true
		}
		if !is {
			return "", fault.New(fault.Unauthenticated, "the Authorization header must be: Bearer <key>")
		}
		add(bearer)
	}
	if len(shown) != 1 {
		return "", fault.New(fault.Unauthenticated,
			"the service account's key must be given once: as Bearer or as client_secret")
	}
	return shown[0], nil
}

func ttlOf(seconds string) (time.Duration, error) {
	if seconds == "" {
		return standardExchange, nil
	}
	n, err := strconv.ParseInt(seconds, 10, 32)
	if err != nil {
		return 0, fault.New(fault.InvalidArgument, "expires_in must be a number of seconds").At("expires_in")
	}
	return time.Duration(n) * time.Second, nil
}

// failOAuth is fail with the word that OAuth 2.0 clients look for (RFC 6749, 5.2).
func (h *Handler) failOAuth(w http.ResponseWriter, r *http.Request, err error) {
	refused := fault.From(err)
	word := "invalid_request"
	switch refused.Code {
	case fault.Unauthenticated:
		word = "invalid_client"
		w.Header().Set("WWW-Authenticate", `Bearer realm="app-platform"`)
	case fault.Forbidden:
		word = "unauthorized_client"
	case fault.Internal, fault.Unavailable:
		word = "server_error"
	case fault.InvalidArgument:
		if len(refused.Reasons) > 0 && refused.Reasons[0].Path == "scope" {
			word = "invalid_scope"
		} else if len(refused.Reasons) > 0 && refused.Reasons[0].Path == "grant_type" {
			word = "unsupported_grant_type"
		}
	}
	h.failWith(w, r, err, map[string]any{"error": word})
}
