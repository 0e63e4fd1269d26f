package cli_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/clienttest"
	"github.com/gpuaas/app-platform/sdk/webhook"
)

func hook() object {
	return object{
		"id": "whk_1", "projectId": "prj_1", "url": "https://hooks.example.com/x", "description": "the pager",
		"eventTypes": []string{"apps.instance.*"},
		"status":     "ACTIVE", "cursor": "p1.2.3", "secretRotatedAt": at, "previousUntil": at, "lastDeliveredAt": at,
		"failingSince": at,
		"lastError":    "the receiver answered 500", "createdAt": at,
	}
}

func delivery() object {
	return object{
		"id": "whd_1", "webhookId": "whk_1", "eventId": "evt_1", "eventType": "apps.instance.running", "state": "DEAD",
		"attempts":       8,
		"responseStatus": 500, "error": "the receiver answered 500", "createdAt": at,
	}
}

// addWebhookFixtures gives the stand-in the verbs of webhooks.
func addWebhookFixtures(s *clienttest.Server) {
	paused, deleted, again := hook(), hook(), delivery()
	paused["status"], deleted["deletedAt"] = "PAUSED", at
	again["state"], again["attempts"], again["nextAttemptAt"] = "PENDING", 0, at
	for field, value := range map[string]any{
		"webhooks": page(hook()), "webhookDeliveries": page(delivery()),
		"createWebhook":       object{"webhook": hook(), "secret": "whsec_c2VjcmV0"},
		"rotateWebhookSecret": object{"webhook": hook(), "secret": "whsec_c2VjcmV0"},
		"updateWebhook":       paused, "deleteWebhook": deleted, "replayWebhook": hook(), "redeliverWebhook": again,
	} {
		s.Handle(field, answer(value))
	}
}

func TestAKeptDeliveryIsVerified(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	secret := webhook.Secret([]byte("key"))
	signature, err := webhook.Sign("whd_1", time.Unix(1_700_000_000, 0), []byte("{}"), secret)
	require.NoError(t, err)
	args := []string{"webhooks", "verify", "-", "--id", "whd_1", "--timestamp", "1700000000", "--signature", signature,
		"--secret-file", r.file(t, "secret", secret+"\n")}
	got := r.run(t.Context(), "{}", append(args, "--any-time")...)
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "valid")
	for what, changed := range map[string]result{"old": r.run(t.Context(), "{}", args...),
		"changed": r.run(t.Context(), "{ }", append(args, "--any-time")...)} {
		require.Equal(t, 1, changed.code, what)
		require.Empty(t, changed.stdout, what)
		require.NotContains(t, changed.stderr, secret)
	}
	got = r.run(t.Context(), "", "webhooks", "update", "whk_1")
	require.Equal(t, 2, got.code, "nothing to change")
}
