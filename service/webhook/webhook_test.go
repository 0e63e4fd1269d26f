package webhook_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/webhook"
)

func TestAWebhookIsMadeOnceAndShowsItsSecretOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.input()
	made, err := b.service.Create(b.admin, in)
	require.NoError(t, err)
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(*made.Secret, "whsec_"))
	require.NoError(t, err)
	require.Len(t, key, 32)
	require.Equal(t, lifecycle.WebhookActive, made.Webhook.Status)
	require.Equal(t, []string{"apps", "scheduler", "allocation", "volume"}, made.Webhook.Families)
	_, err = b.service.Feeds.Parse(made.Webhook.Cursor)
	require.NoError(t, err)

	again, err := b.service.Create(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, made.Webhook.ID, again.Webhook.ID)
	require.Nil(t, again.Secret)
	other := in
	other.Description = "another"
	_, err = b.service.Create(b.admin, other)
	refused(t, err, fault.IdempotencyKeyReused, "input.idempotencyKey", "other input")
	require.Equal(t, 1, b.Count("webhook", ""))
	require.Equal(t, 1, b.Count("audit_entry", "action = 'createWebhook' AND allowed AND object_id = $1",
		made.Webhook.ID))
	for _, secret := range []string{strings.TrimPrefix(*made.Secret, "whsec_"), "t0k3n"} {
		require.Zero(t, b.Count("audit_entry AS x", "x::text LIKE '%' || $1 || '%'", secret))
	}
	require.Zero(t, b.Count("webhook AS x", "convert_from(secret, 'UTF8') LIKE '%' || $1 || '%'", *made.Secret),
		"it is sealed")
}

func TestWhoTurnsAWebhookElsewhereGetsNoMoreThanTheyMayRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.hook().Webhook
	b.SQL(`UPDATE webhook SET families = '["scheduler", "another"]'`)
	text, elsewhere := "same address", "https://elsewhere.test/"
	same, err := b.service.Update(b.admin, webhook.UpdateInput{WebhookID: row.ID, Description: &text, URL: &row.URL})
	require.NoError(t, err)
	require.Equal(t, []string{"scheduler", "another"}, same.Families)
	moved, err := b.service.Update(b.admin, webhook.UpdateInput{WebhookID: row.ID, URL: &elsewhere})
	require.NoError(t, err)
	require.Equal(t, []string{"scheduler"}, moved.Families)
	b.SQL(`UPDATE webhook SET families = '["another"]'`)
	_, err = b.service.Update(b.admin, webhook.UpdateInput{WebhookID: row.ID, URL: &row.URL})
	refused(t, err, fault.Forbidden, "", "nothing would be left")
	require.Equal(t, 1, b.Count("webhook", "url = $1", elsewhere))
	require.Len(t, b.Audit(), 4, "the refusal among them")
}

func TestMalformedWebhooksAreRefusedByFieldAndWriteNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	many := make([]string, 51)
	for i := range many {
		many[i] = fmt.Sprintf("apps.instance.x%d", i)
	}
	for name, c := range map[string]struct {
		change func(*webhook.CreateInput)
		code   fault.Code
		path   string
	}{
		"no address": {func(in *webhook.CreateInput) { in.URL = "" }, fault.InvalidArgument, "input.url"},
		"no host": {func(in *webhook.CreateInput) { in.URL = "https:///x" }, fault.InvalidArgument,
			"input.url"},
		"another scheme": {func(in *webhook.CreateInput) { in.URL = "ftp://hooks.test/" }, fault.InvalidArgument,
			"input.url"},
		"a password": {func(in *webhook.CreateInput) { in.URL = "https://a:b@hooks.test/" }, fault.InvalidArgument,
			"input.url"},
		"a fragment": {func(in *webhook.CreateInput) { in.URL = "https://hooks.test/#x" }, fault.InvalidArgument,
			"input.url"},
		"too long": {func(in *webhook.CreateInput) {
			in.URL = "https://hooks.test/" + strings.Repeat("x", 2_000)
		}, fault.InvalidArgument, "input.url"},
		"inside": {func(in *webhook.CreateInput) { in.URL = "https://169.254.169.254/latest" },
			fault.DialRefused, "input.url"},
		"this machine": {func(in *webhook.CreateInput) { in.URL = "http://127.0.0.1:5432/" }, fault.DialRefused,
			"input.url"},
		"disguised": {func(in *webhook.CreateInput) { in.URL = "https://2130706433/" }, fault.DialRefused,
			"input.url"},
		"no types": {func(in *webhook.CreateInput) { in.EventTypes = nil }, fault.InvalidArgument,
			"input.eventTypes"},
		"too many types": {func(in *webhook.CreateInput) { in.EventTypes = many }, fault.InvalidArgument,
			"input.eventTypes"},
		"an unknown type": {func(in *webhook.CreateInput) { in.EventTypes = []string{"apps.instance.runing"} },
			fault.InvalidArgument, "input.eventTypes"},
		"an empty prefix": {func(in *webhook.CreateInput) { in.EventTypes = []string{"*"} }, fault.InvalidArgument,
			"input.eventTypes"},
		"half a word": {func(in *webhook.CreateInput) { in.EventTypes = []string{"apps.inst*"} },
			fault.InvalidArgument, "input.eventTypes"},
		"description": {func(in *webhook.CreateInput) { in.Description = strings.Repeat("x", 201) },
			fault.InvalidArgument, "input.description"},
		"no key": {func(in *webhook.CreateInput) { in.IdempotencyKey = "" }, fault.InvalidArgument,
			"input.idempotencyKey"},
		"no such project": {func(in *webhook.CreateInput) { in.ProjectID = ids.New(ids.Project) }, fault.NotFound, ""},
	} {
		in := b.input()
		c.change(&in)
		_, err := b.service.Create(b.admin, in)
		refused(t, err, c.code, c.path, name)
	}
	require.Zero(t, b.Count("webhook", ""))
	row := b.hook().Webhook
	bad := "https://10.0.0.1/"
	_, err := b.service.Update(b.admin, webhook.UpdateInput{WebhookID: row.ID, URL: &bad})
	refused(t, err, fault.DialRefused, "input.url", "an update to inside")
	_, err = b.service.Update(b.admin, webhook.UpdateInput{WebhookID: row.ID, EventTypes: []string{}})
	refused(t, err, fault.InvalidArgument, "input.eventTypes", "an update to nothing")
	for _, seconds := range []int{-1, 604_801} {
		_, err = b.service.Rotate(b.admin, row.ID, seconds)
		refused(t, err, fault.InvalidArgument, "overlapSeconds", seconds)
	}
	require.Equal(t, 1, b.Count("webhook", "updated_at = created_at AND secret_rotated_at IS NULL"))
}

func TestAProjectHasAtMostTwentyWebhooks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 19 {
		b.hook()
	}
	results := make(chan error, 2)
	for range 2 { // at the same time: one of them is too many
		go func() {
			_, err := b.service.Create(b.admin, b.input())
			results <- err
		}()
	}
	first, second := <-results, <-results
	if first == nil {
		first, second = second, first
	}
	require.NoError(t, second)
	refused(t, first, fault.LimitExceeded, "input.projectId", "the twenty-first")
	row := b.Ent.Webhook.Query().FirstX(t.Context())
	_, err := b.service.Delete(b.admin, row.ID, "")
	require.NoError(t, err)
	b.hook()
}

func TestOnlyWhoMayTouchesWebhooks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.hook().Webhook
	delivery := b.delivery(row, "DEAD")
	before := b.Ent.Webhook.GetX(t.Context(), row.ID)
	yes := true
	writes := map[string]func(ctx context.Context) error{
		"create": func(ctx context.Context) error { _, err := b.service.Create(ctx, b.input()); return err },
		"update": func(ctx context.Context) error {
			_, err := b.service.Update(ctx, webhook.UpdateInput{WebhookID: row.ID, Paused: &yes})
			return err
		},
		"delete": func(ctx context.Context) error { _, err := b.service.Delete(ctx, row.ID, ""); return err },
		"rotate": func(ctx context.Context) error { _, err := b.service.Rotate(ctx, row.ID, 0); return err },
		"replay": func(ctx context.Context) error {
			_, err := b.service.Replay(ctx, row.ID, row.Cursor, "")
			return err
		},
		"redeliver": func(ctx context.Context) error { _, err := b.service.Redeliver(ctx, delivery); return err },
	}
	reads := map[string]func(ctx context.Context) error{
		"list": func(ctx context.Context) error {
			_, err := b.service.List(ctx, b.project.ID, page.Args{First: 1})
			return err
		},
		"get": func(ctx context.Context) error { _, err := b.service.Get(ctx, row.ID); return err },
		"deliveries": func(ctx context.Context) error {
			_, err := b.service.Deliveries(ctx, row.ID, nil, page.Args{First: 1})
			return err
		},
		"delivery": func(ctx context.Context) error { _, err := b.service.Delivery(ctx, delivery); return err },
	}
	for name, call := range writes {
		refused(t, call(b.viewer), fault.Forbidden, "", name)
		refused(t, call(b.stranger), fault.NotFound, "", name)
	}
	for name, call := range reads {
		refused(t, call(b.viewer), fault.Forbidden, "", name)
		refused(t, call(b.stranger), fault.NotFound, "", name)
		require.NoError(t, call(b.admin), name)
	}
	require.Equal(t, before.UpdatedAt, b.Ent.Webhook.GetX(t.Context(), row.ID).UpdatedAt)
	require.Equal(t, 1, b.Count("webhook_delivery", "state = 'DEAD'"))
	denied := map[string]bool{}
	for _, entry := range b.Audit() {
		if !entry.Allowed {
			denied[entry.Action] = true
		}
	}
	require.Len(t, denied, len(writes))
}

func TestAWebhookIsChangedPausedAndResumed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.hook().Webhook
	b.SQL(`UPDATE webhook SET status = 'FAILING', failing_since = now(), last_error = 'x'`)
	address, text, yes, no := "https://new.test/", "new", true, false
	woken := b.Hub.Wait(webhook.Topic(b.project.ID))
	defer woken.Close()
	paused, err := b.service.Update(b.admin, webhook.UpdateInput{WebhookID: row.ID, Paused: &yes,
		EventTypes: []string{"apps.*"}, Description: &text})
	require.NoError(t, err)
	require.Equal(t, []any{lifecycle.WebhookPaused, "new", []string{"apps.*"}, row.URL, row.Cursor},
		[]any{paused.Status, paused.Description, paused.EventTypes, paused.URL, paused.Cursor})
	require.NotNil(t, paused.FailingSince)
	require.Empty(t, woken.C)
	resumed, err := b.service.Update(b.admin, webhook.UpdateInput{WebhookID: row.ID, Paused: &no, URL: &address})
	require.NoError(t, err)
	require.Equal(t, []any{lifecycle.WebhookActive, address, ""}, []any{resumed.Status, resumed.URL, resumed.LastError})
	require.Nil(t, resumed.FailingSince)
	require.Len(t, woken.C, 1)
	require.Equal(t, 2, b.Count("audit_entry", "action = 'updateWebhook' AND before IS NOT NULL AND after IS NOT NULL"))
}

func TestADeletedWebhookDropsWhatWaitsAndForgetsItsSecrets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.hook().Webhook
	waits, taken := b.delivery(row, "PENDING"), b.delivery(row, "DELIVERED")
	deleted, err := b.service.Delete(b.admin, row.ID, "over")
	require.NoError(t, err)
	require.NotNil(t, deleted.DeletedAt)
	require.Equal(t, 1, b.Count("webhook", "secret IS NULL"))
	require.Equal(t, 1, b.Count("webhook_delivery", "id = $1 AND state = 'DEAD'", waits))
	require.Equal(t, 1, b.Count("webhook_delivery", "id = $1 AND state = 'DELIVERED'", taken))
	listed, err := b.service.List(b.admin, b.project.ID, page.Args{First: 5})
	require.NoError(t, err)
	require.Empty(t, listed.Rows)
	_, err = b.service.Get(b.admin, row.ID)
	require.NoError(t, err, "its trace can be read")
	_, err = b.service.Delete(b.admin, row.ID, "again")
	refused(t, err, fault.NotFound, "", "again")
	_, err = b.service.Redeliver(b.admin, taken)
	refused(t, err, fault.NotFound, "", "redeliver")
}

func TestASecretIsRotatedWithAndWithoutOverlap(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.hook()
	rotated, err := b.service.Rotate(b.admin, made.Webhook.ID, 60)
	require.NoError(t, err)
	require.NotEqual(t, *made.Secret, *rotated.Secret)
	require.WithinDuration(t, time.Now().Add(time.Minute), *rotated.Webhook.PreviousUntil, 30*time.Second)
	require.NotNil(t, rotated.Webhook.SecretRotatedAt)
	stored := b.Ent.Webhook.GetX(t.Context(), made.Webhook.ID)
	for sealed, want := range map[*[]byte]string{&stored.Secret: *rotated.Secret,
		&stored.PreviousSecret: *made.Secret} {
		opened, err := b.service.Vault.Open(t.Context(), *sealed, webhook.Associated(stored.ID))
		require.NoError(t, err)
		require.Equal(t, want, string(opened))
	}
	_, err = b.service.Vault.Open(t.Context(), stored.Secret, webhook.Associated(ids.New(ids.Webhook)))
	require.Error(t, err, "of this webhook alone")
	last, err := b.service.Rotate(b.admin, made.Webhook.ID, 0)
	require.NoError(t, err)
	require.Nil(t, last.Webhook.PreviousUntil)
	require.Equal(t, 1, b.Count("webhook", "previous_secret IS NULL"))
}

func TestAKeeperThatDoesNotAnswerIsAskedByThoseWhoMayAloneAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.hook().Webhook
	var keeper platformtest.Silent
	b.service.Vault = keeper.Vault()
	for who, as := range map[string]context.Context{"viewer": b.viewer, "stranger": b.stranger} {
		_, err := b.service.Create(as, b.input())
		require.Error(t, err, who)
		_, err = b.service.Rotate(as, row.ID, 0)
		require.Error(t, err, who)
	}
	require.Zero(t, keeper.Asked())
	_, err := b.service.Create(b.admin, b.input())
	refused(t, err, fault.Unavailable, "", "create")
	_, err = b.service.Rotate(b.admin, row.ID, 60)
	refused(t, err, fault.Unavailable, "", "rotate")
	require.EqualValues(t, 2, keeper.Asked())
	require.Equal(t, 1, b.Count("webhook", "secret_rotated_at IS NULL AND previous_secret IS NULL"))
	require.Equal(t, 1, b.Count("webhook", "TRUE"))
	require.Zero(t, b.Count("audit_entry", "action = 'rotateWebhookSecret' AND allowed"))
}
