// Package webhook signs and verifies webhooks by Standard Webhooks (https://www.standardwebhooks.com): an
// HMAC-SHA256 over the id, the time and the body. A receiver needs only Verify:
//
//	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, webhook.MaxBody))
//	…
//	if err := webhook.Verify(secret, r.Header, body, time.Now()); err != nil {
//		http.Error(w, "not signed by the platform", http.StatusUnauthorized)
//		return
//	}
//	var event webhook.Event
//	err = json.Unmarshal(body, &event)
//
// A delivery may arrive more than once: its id, in the header HeaderID, is the same each time.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a delivery.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

// MaxBody is the longest body of a delivery, in bytes.
const MaxBody = 256 << 10

// Tolerance is how far a delivery's time may be from the receiver's clock: an older one may be a replay.
const Tolerance = 5 * time.Minute

const (
	secretPrefix = "whsec_"
	version      = "v1,"
	maxSigned    = 8 // signatures that are looked at
)

// What Verify refuses.
var (
	// ErrSecret is a secret that is not whsec_ and base64.
	ErrSecret = errors.New("webhook: the secret is malformed")
	// ErrHeaders is a delivery whose headers are missing or malformed.
	ErrHeaders = errors.New("webhook: the headers are missing or malformed")
	// ErrTime is a delivery that is too old, or of the future.
	ErrTime = errors.New("webhook: the time is too far from now")
	// ErrSignature is a delivery that was not signed with the secret, or was changed on its way.
	ErrSignature = errors.New("webhook: no signature matches")
)

// Secret returns 32 random bytes in the form of a signing secret.
func Secret(key []byte) string { return secretPrefix + base64.StdEncoding.EncodeToString(key) }

// Sign returns the value of HeaderSignature with each of the secrets, in order: while a secret is rotated, both the new
// and the old one sign. The error is ErrSecret when one is malformed.
func Sign(id string, at time.Time, body []byte, secrets ...string) (string, error) {
	signed := make([]string, len(secrets))
	for i, secret := range secrets {
		key, err := keyOf(secret)
		if err != nil {
			return "", err
		}
		signed[i] = version + base64.StdEncoding.EncodeToString(sum(key, id, strconv.FormatInt(at.Unix(), 10), body))
	}
	return strings.Join(signed, " "), nil
}

// Verify checks that the secret's owner sent the body with these headers, no further from now than Tolerance. It
// answers one of ErrSecret, ErrHeaders, ErrTime and ErrSignature.
func Verify(secret string, header http.Header, body []byte, now time.Time) error {
	key, err := keyOf(secret)
	if err != nil {
		return err
	}
	id, stamp, signatures := header.Get(HeaderID), header.Get(HeaderTimestamp), header.Get(HeaderSignature)
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if id == "" || signatures == "" || err != nil {
		return ErrHeaders
	}
	if at := time.Unix(seconds, 0); now.Sub(at) > Tolerance || at.Sub(now) > Tolerance {
		return ErrTime
	}
	want := sum(key, id, stamp, body)
	for _, one := range strings.SplitN(signatures, " ", maxSigned+1)[:min(maxSigned,
		strings.Count(signatures, " ")+1)] {
		text, ok := strings.CutPrefix(one, version)
		if !ok {
			continue
		}
		if got, err := base64.StdEncoding.DecodeString(text); err == nil && hmac.Equal(got, want) {
			return nil
		}
	}
	return ErrSignature
}

func keyOf(secret string) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) == 0 {
		return nil, ErrSecret
	}
	return key, nil
}

func sum(key []byte, id, stamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}
