package calls

import (
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

const inSignature = "Security, platformRequest"

// A spoiler returns the token of a request from the claims of a good one.
type spoiler func(c *trial.Check, claims adapter.RequestClaims) (string, error)

// changed returns the spoiler that changes the claims and signs them well.
func changed(change func(*adapter.RequestClaims)) spoiler {
	return func(c *trial.Check, claims adapter.RequestClaims) (string, error) {
		change(&claims)
		return c.Platform.SignClaims(claims)
	}
}

// badToken returns the clause on one kind of bad token.
func badToken(id, what, fix string, spoil spoiler) trial.Clause {
	return trial.Clause{
		ID: "signature." + id, Section: inSignature, Needs: []string{trial.Created},
		Rule: what + " is refused with 401, and nothing is done", Fix: fix,
		Run: func(c *trial.Check) { refuseToken(c, what, spoil) },
	}
}

// Signature returns the clauses on request tokens.
func Signature() []trial.Clause {
	past, future := -10*time.Minute, 10*time.Minute
	return []trial.Clause{
		{ID: "signature.missing", Section: inSignature, Needs: []string{trial.Created}, Run: signatureMissing,
			Rule: "every route refuses a request without a token with 401",
			Fix:  "verify the token before you read the route, on every route"},
		badToken("garbage", "a token that is not a JWT", "answer 401 for a token that cannot be parsed",
			func(*trial.Check, adapter.RequestClaims) (string, error) { return "not-a-token", nil }),
		badToken("key", "a token of another key under the published key id",
			"verify the signature with the published key",
			func(c *trial.Check, claims adapter.RequestClaims) (string, error) {
				return c.Platform.SignForeign(claims, true)
			}),
		badToken("key_id", "a token with a key id that is not published", "take keys from the platform's key set only",
			func(c *trial.Check, claims adapter.RequestClaims) (string, error) {
				return c.Platform.SignForeign(claims, false)
			}),
		badToken("issuer", "a token of another issuer", "compare iss with the platform's URL",
			changed(func(r *adapter.RequestClaims) { r.Issuer = "https://other.example" })),
		badToken("audience", "a token for another adapter", "compare aud with the adapter's registered name",
			changed(func(r *adapter.RequestClaims) { r.Audience = "another-adapter" })),
		badToken("expired", "a token that has expired", "compare exp with the clock; at most 30 seconds of skew",
			changed(func(r *adapter.RequestClaims) { shift(r, past) })),
		badToken("future", "a token that is issued in the future",
			"compare iat with the clock; at most 30 seconds of skew",
			changed(func(r *adapter.RequestClaims) { shift(r, future) })),
		badToken("method", "a token for another method", "compare htm with the request's method",
			changed(func(r *adapter.RequestClaims) { r.Method = http.MethodGet })),
		badToken("target", "a token for another path", "compare htu with the request's path and query exactly as sent",
			changed(func(r *adapter.RequestClaims) { r.Target = adapter.AdapterPath })),
		badToken("body", "a token for another body",
			"compare bd with the unpadded base64url of the SHA-256 of the body's bytes as received",
			changed(func(r *adapter.RequestClaims) { r.BodyDigest = adapter.BodyDigest([]byte("another body")) })),
		badToken("none", "a token with the algorithm none", "accept EdDSA only, whatever its alg",
			func(c *trial.Check, claims adapter.RequestClaims) (string, error) { return c.Platform.Unsigned(claims) }),
		badToken("symmetric", "an HS256 token signed with the public key", "accept EdDSA only, whatever its alg",
			func(c *trial.Check, claims adapter.RequestClaims) (string, error) {
				return c.Platform.SignSymmetric(claims)
			}),
		{ID: "signature.query", Section: inSignature, Needs: []string{trial.Created}, Run: signatureQuery,
			Rule: "a token for another query is refused with 401",
			Fix:  "compare htu with the request's path and query, not with the path alone"},
	}
}

func shift(claims *adapter.RequestClaims, by time.Duration) {
	claims.IssuedAt += int64(by.Seconds())
	claims.Expires += int64(by.Seconds())
}

// refuseToken dispatches with a bad token and requires that nothing comes of it.
func refuseToken(c *trial.Check, what string, spoil spoiler) {
	i, d := c.Fresh()
	raw, target := c.Encode(d), adapter.OperationPath(d.OperationID)
	token, err := spoil(c, c.Platform.Claims(c.Options.Name, http.MethodPut, target, raw, time.Now().Unix()))
	if err != nil {
		c.NotRun("the suite could not create the token: %v", err)
	}
	c.Opened = append(c.Opened, d.OperationID)
	c.Refused(
		what, c.Call(trial.Letter{Method: http.MethodPut, Target: target, Body: raw, Token: token}),
		http.StatusUnauthorized,
	)
	c.StaysUntouched(i, d.OperationID, what)
}

// signatureMissing calls every route without a token.
func signatureMissing(c *trial.Check) {
	i, d := c.Fresh()
	c.Opened = append(c.Opened, d.OperationID)
	empty := c.Encode(map[string]any{})
	for _, l := range []trial.Letter{
		{Method: http.MethodGet, Target: adapter.AdapterPath},
		{Method: http.MethodGet, Target: adapter.ChangesPath("", 0)},
		{Method: http.MethodPut, Target: adapter.OperationPath(d.OperationID), Body: c.Encode(d)},
		{Method: http.MethodGet, Target: adapter.OperationPath(d.OperationID)},
		{Method: http.MethodPost, Target: adapter.CancelPath(d.OperationID),
			Body: c.Encode(adapter.CancelRequest{Attempt: 1})},
		{Method: http.MethodGet, Target: adapter.InstancePath(i.Wire.ID)},
		{Method: http.MethodPost, Target: adapter.ActionPath(i.Wire.ID, "conformance"), Body: empty},
		{Method: http.MethodGet, Target: adapter.UsagePath(i.Wire.ID, "")},
	} {
		l.Token = "-"
		c.Refused(l.Method+" "+l.Target+" without a token", c.Call(l), http.StatusUnauthorized)
	}
	c.StaysUntouched(i, d.OperationID, "requests without a token")
}

// signatureQuery sends a good token of the feed without a query to the feed with one.
func signatureQuery(c *trial.Check) {
	token, err := c.Platform.Sign(c.Options.Name, http.MethodGet, adapter.OperationsPath, nil)
	if err != nil {
		c.NotRun("the suite could not create the token: %v", err)
	}
	c.Refused(
		"a token for another query",
		c.Call(trial.Letter{Method: http.MethodGet, Target: adapter.ChangesPath("", 0), Token: token}),
		http.StatusUnauthorized,
	)
}
