package mutant

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// fetchKey reads the platform's one key.
func fetchKey(platform string) (kid string, key ed25519.PublicKey, err error) {
	resp, err := http.Get(platform + "/.well-known/jwks.json")
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	var set struct{ Keys []struct{ Kid, X string } }
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil || len(set.Keys) != 1 {
		return "", nil, errors.New("the key set does not hold one key")
	}
	key, err = base64.RawURLEncoding.DecodeString(set.Keys[0].X)
	return set.Keys[0].Kid, key, err
}

// allowed verifies a request's token, in as few words as the contract needs.
func (t *tiny) allowed(r *http.Request, body []byte) bool {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == "" && t.broken("signature.missing") && strings.HasSuffix(r.URL.Path, "/usage") {
		return true
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return token != "" && t.broken("signature.garbage")
	}
	var header struct{ Alg, Kid string }
	var claims adapter.RequestClaims
	if open(parts[0], &header) != nil || open(parts[1], &claims) != nil {
		return false
	}
	return t.signed(header.Alg, header.Kid, parts) && t.fits(claims, r, body)
}

func open(part string, out any) error {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

func (t *tiny) signed(alg, kid string, parts []string) bool {
	text := []byte(parts[0] + "." + parts[1])
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, t.key)
	mac.Write(text)
	switch {
	case alg == "none":
		return t.broken("signature.none")
	case alg == "HS256":
		return t.broken("signature.symmetric") && hmac.Equal(mac.Sum(nil), signature)
	case alg != "EdDSA":
		return false
	case kid != t.kid:
		return t.broken("signature.key_id")
	}
	return t.broken("signature.key") || ed25519.Verify(t.key, text, signature)
}

// bothBelow says whether two targets lie below a path.
func bothBelow(path, one, other string) bool {
	return strings.HasPrefix(one, path) && strings.HasPrefix(other, path)
}

func (t *tiny) fits(c adapter.RequestClaims, r *http.Request, body []byte) bool {
	now, target := time.Now().Unix(), r.URL.RequestURI()
	right := map[string]bool{
		"issuer": c.Issuer == t.platform,
		// Not by its claim's name: the one mutant is wrong about dispatches alone, and the other about all else.
		"recipient": c.Audience == name || (t.broken("signature.audience") && r.Method == http.MethodPut) ||
			(t.broken("tenancy.audience") && r.Method != http.MethodPut),
		"expired": c.Expires > now-30,
		"future":  c.IssuedAt < now+30,
		"method":  c.Method == r.Method,
		"body":    c.BodyDigest == adapter.BodyDigest(body),
		"target": c.Target == target || (t.broken("signature.query") && c.Target == r.URL.Path) ||
			(t.broken("signature.target") && c.Target == adapter.AdapterPath) ||
			(t.broken("tenancy.instance") && bothBelow("/v1/instances/", c.Target, target)) ||
			(t.broken("tenancy.operation") && r.Method != http.MethodPut &&
				bothBelow("/v1/operations/", c.Target, target)),
	}
	for claim, good := range right {
		if !good && !t.broken("signature."+claim) {
			return false
		}
		if !good && claim == "target" {
			return false
		}
	}
	return true
}
