package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/webhook"
)

const body = `{"type":"apps.instance.running","timestamp":"2026-11-22T12:00:00Z","data":{"id":"evt_1","seq":3,"appInstanceId":"ins_1","message":"it runs"}}`

// deliver sends a body as the platform does, signed by the reference library.
func deliver(t *testing.T, url, secret, id, text string) int {
	t.Helper()
	reference, err := standard.NewWebhook(secret)
	require.NoError(t, err)
	now := time.Now()
	signature, err := reference.Sign(id, now, []byte(text))
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(text))
	require.NoError(t, err)
	request.Header.Set(webhook.HeaderID, id)
	request.Header.Set(webhook.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(webhook.HeaderSignature, signature)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

func TestADeliveryIsTakenOnceAndOnlyWhenItIsSigned(t *testing.T) {
	t.Parallel()
	secret, other := webhook.Secret([]byte(strings.Repeat("s", 32))), webhook.Secret([]byte(strings.Repeat("o", 32)))
	var out bytes.Buffer
	server := httptest.NewServer(newReceiver(secret, &out))
	defer server.Close()
	require.Equal(t, http.StatusNoContent, deliver(t, server.URL, secret, "whd_1", body))
	require.Equal(t, http.StatusNoContent, deliver(t, server.URL, secret, "whd_1", body),
		"a repeat is taken, and nothing is done")
	require.Equal(t, http.StatusUnauthorized, deliver(t, server.URL, other, "whd_2", body))
	require.Equal(t, http.StatusBadRequest, deliver(t, server.URL, secret, "whd_3", "text"))
	require.Equal(t, http.StatusRequestEntityTooLarge,
		deliver(t, server.URL, secret, "whd_4", strings.Repeat("x", webhook.MaxBody+1)))
	require.Equal(t, "apps.instance.running ins_1 #3: it runs\n", out.String())
}
