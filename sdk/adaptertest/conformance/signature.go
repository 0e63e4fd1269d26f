package conformance

import (
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const inSignature = "Security, platformRequest"

// spoiler makes the token of a request from the claims of a good one.
type spoiler func(c *check, claims adapter.RequestClaims) (string, error)

func signatureClauses() []Clause {
	signed := func(change func(*adapter.RequestClaims)) spoiler {
		return func(c *check, claims adapter.RequestClaims) (string, error) {
			change(&claims)
			return c.platform.SignClaims(claims)
		}
	}
	one := func(id, what, fix string, spoil spoiler) Clause {
		return Clause{
			ID: "signature." + id, Section: inSignature, Rule: what + " is refused with 401, and nothing is done", Needs: []string{created}, Fix: fix,
			run: func(c *check) { refuseToken(c, what, spoil) },
		}
	}
	past, future := -10*time.Minute, 10*time.Minute
	return []Clause{
		{ID: "signature.missing", Section: inSignature, Rule: "every route refuses a request without a token with 401", Needs: []string{created},
			Fix: "verify before you look at the route, for all of them", run: signatureMissing},
		one("garbage", "a token that is no JWT", "answer 401 for whatever does not parse", func(*check, adapter.RequestClaims) (string, error) { return "not-a-token", nil }),
		one("key", "a token of another key under the published key id", "verify the signature with the published key", func(c *check, claims adapter.RequestClaims) (string, error) {
			return c.platform.SignForeign(claims, true)
		}),
		one("key_id", "a token of a key id that is not published", "take keys from the platform's key set only", func(c *check, claims adapter.RequestClaims) (string, error) {
			return c.platform.SignForeign(claims, false)
		}),
		one("issuer", "a token of another issuer", "compare iss with the platform's URL", signed(func(r *adapter.RequestClaims) { r.Issuer = "https://other.example" })),
		one("audience", "a token for another adapter", "compare aud with the adapter's registered name", signed(func(r *adapter.RequestClaims) { r.Audience = "another-adapter" })),
		one("expired", "a token that has expired", "compare exp with the clock; at most 30 seconds of skew", signed(func(r *adapter.RequestClaims) { shift(r, past) })),
		one("future", "a token that is issued in the future", "compare iat with the clock; at most 30 seconds of skew", signed(func(r *adapter.RequestClaims) { shift(r, future) })),
		one("method", "a token for another method", "compare htm with the request's method", signed(func(r *adapter.RequestClaims) { r.Method = http.MethodGet })),
		one("target", "a token for another path", "compare htu with the request's path and query exactly as sent", signed(func(r *adapter.RequestClaims) { r.Target = adapter.AdapterPath })),
		one("body", "a token for another body", "compare bd with the unpadded base64url of the SHA-256 of the body's bytes as they came", signed(func(r *adapter.RequestClaims) { r.BodyDigest = adapter.BodyDigest([]byte("another body")) })),
		one("none", "a token of the algorithm none", "allow EdDSA only, whatever the token says", func(c *check, claims adapter.RequestClaims) (string, error) { return c.platform.Unsigned(claims) }),
		one("symmetric", "an HS256 token made with the public key", "allow EdDSA only, whatever the token says", func(c *check, claims adapter.RequestClaims) (string, error) { return c.platform.SignSymmetric(claims) }),
		{ID: "signature.query", Section: inSignature, Rule: "a token for another query is refused with 401", Needs: []string{created},
			Fix: "compare htu with the request's path and query, not with the path alone", run: signatureQuery},
	}
}

func shift(claims *adapter.RequestClaims, by time.Duration) {
	claims.IssuedAt += int64(by.Seconds())
	claims.Expires += int64(by.Seconds())
}

// refuseToken dispatches with a bad token and requires that nothing comes of it.
func refuseToken(c *check, what string, spoil spoiler) {
	i, d := c.fresh()
	raw, target := c.encode(d), adapter.OperationPath(d.OperationID)
	token, err := spoil(c, c.platform.Claims(c.options.Name, http.MethodPut, target, raw, time.Now().Unix()))
	if err != nil {
		c.notRun("the suite could not make the token: %v", err)
	}
	c.opened = append(c.opened, d.OperationID)
	c.refused(what, c.call(letter{method: http.MethodPut, target: target, body: raw, token: token}), http.StatusUnauthorized)
	c.untouched(i, d.OperationID, what)
}

func signatureMissing(c *check) {
	i, d := c.fresh()
	c.opened = append(c.opened, d.OperationID)
	empty := c.encode(map[string]any{})
	for _, l := range []letter{
		{method: http.MethodGet, target: adapter.AdapterPath},
		{method: http.MethodGet, target: adapter.ChangesPath("", 0)},
		{method: http.MethodPut, target: adapter.OperationPath(d.OperationID), body: c.encode(d)},
		{method: http.MethodGet, target: adapter.OperationPath(d.OperationID)},
		{method: http.MethodPost, target: adapter.CancelPath(d.OperationID), body: c.encode(adapter.CancelRequest{Attempt: 1})},
		{method: http.MethodGet, target: adapter.InstancePath(i.as.ID)},
		{method: http.MethodPost, target: adapter.ActionPath(i.as.ID, "conformance"), body: empty},
		{method: http.MethodGet, target: adapter.UsagePath(i.as.ID, "")},
	} {
		l.token = "-"
		c.refused(l.method+" "+l.target+" without a token", c.call(l), http.StatusUnauthorized)
	}
	c.untouched(i, d.OperationID, "requests without a token")
}

// signatureQuery sends a good token of the feed without a query to the feed with one.
func signatureQuery(c *check) {
	token, err := c.platform.Sign(c.options.Name, http.MethodGet, adapter.OperationsPath, nil)
	if err != nil {
		c.notRun("the suite could not make the token: %v", err)
	}
	c.refused("a token for another query", c.call(letter{method: http.MethodGet, target: adapter.ChangesPath("", 0), token: token}), http.StatusUnauthorized)
}
