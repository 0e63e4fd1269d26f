package webhook_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/webhook"
)

var (
	first  = webhook.Secret([]byte(strings.Repeat("a", 32)))
	second = webhook.Secret([]byte(strings.Repeat("b", 32)))
)

func headers(t *testing.T, at time.Time, body string, secrets ...string) http.Header {
	t.Helper()
	signed, err := webhook.Sign("whd_1", at, []byte(body), secrets...)
	require.NoError(t, err)
	header := http.Header{}
	header.Set(webhook.HeaderID, "whd_1")
	header.Set(webhook.HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	header.Set(webhook.HeaderSignature, signed)
	return header
}

func TestWhatWeSignTheReferenceLibraryVerifiesAndTheOtherWayRound(t *testing.T) {
	t.Parallel()
	now := time.Now()
	header := headers(t, now, `{"a":1}`, second, first)
	for _, secret := range []string{first, second} {
		reference, err := standard.NewWebhook(secret)
		require.NoError(t, err)
		require.NoError(t, reference.Verify([]byte(`{"a":1}`), header))
		signed, err := reference.Sign("whd_1", now, []byte(`{"a":1}`))
		require.NoError(t, err)
		theirs := header.Clone()
		theirs.Set(webhook.HeaderSignature, "v1a,AAAA "+signed)
		require.NoError(t, webhook.Verify(secret, theirs, []byte(`{"a":1}`), now))
		require.NoError(t, webhook.Verify(secret, header, []byte(`{"a":1}`), now))
	}
}

func TestWhatWasNotSignedIsRefused(t *testing.T) {
	t.Parallel()
	now := time.Now()
	good := headers(t, now, "body", first)
	with := func(name, value string) http.Header {
		changed := good.Clone()
		changed.Set(name, value)
		return changed
	}
	for name, c := range map[string]struct {
		secret string
		header http.Header
		body   string
		want   error
	}{
		"another body":   {first, good, "bodY", webhook.ErrSignature},
		"another id":     {first, with(webhook.HeaderID, "whd_2"), "body", webhook.ErrSignature},
		"another secret": {second, good, "body", webhook.ErrSignature},
		"another version": {first, with(webhook.HeaderSignature,
			strings.Replace(good.Get(webhook.HeaderSignature), "v1", "v2", 1)), "body", webhook.ErrSignature},
		"no base64": {first, with(webhook.HeaderSignature, "v1,%%"), "body", webhook.ErrSignature},
		"behind the bound": {first, with(webhook.HeaderSignature,
			strings.Repeat("v1,AA== ", 8)+good.Get(webhook.HeaderSignature)), "body", webhook.ErrSignature},
		"no id":              {first, with(webhook.HeaderID, ""), "body", webhook.ErrHeaders},
		"no signature":       {first, with(webhook.HeaderSignature, ""), "body", webhook.ErrHeaders},
		"no number":          {first, with(webhook.HeaderTimestamp, "now"), "body", webhook.ErrHeaders},
		"old":                {first, headers(t, now.Add(-6*time.Minute), "body", first), "body", webhook.ErrTime},
		"of the future":      {first, headers(t, now.Add(6*time.Minute), "body", first), "body", webhook.ErrTime},
		"no secret":          {"", good, "body", webhook.ErrSecret},
		"an empty secret":    {"whsec_", good, "body", webhook.ErrSecret},
		"a secret no base64": {"whsec_%", good, "body", webhook.ErrSecret},
	} {
		require.ErrorIs(t, webhook.Verify(c.secret, c.header, []byte(c.body), now), c.want, name)
	}
	_, err := webhook.Sign("whd_1", now, nil, "whsec_%")
	require.ErrorIs(t, err, webhook.ErrSecret)
}

func FuzzVerify(f *testing.F) {
	f.Add("whd_1", "1700000000", "v1,AAAA v1,", []byte("x"))
	f.Add("", "-1", " ,", []byte(nil))
	f.Fuzz(func(t *testing.T, id, stamp, signature string, body []byte) {
		header := http.Header{webhookKey(webhook.HeaderID): {id}, webhookKey(webhook.HeaderTimestamp): {stamp},
			webhookKey(webhook.HeaderSignature): {signature}}
		require.Error(t, webhook.Verify(first, header, body, time.Unix(1_700_000_000, 0)), "nobody guesses a signature")
	})
}

func webhookKey(name string) string { return http.CanonicalHeaderKey(name) }
