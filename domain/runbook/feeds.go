package runbook

import "github.com/gpuaas/app-platform/sdk/runbook"

// feeds is the runbook in docs/runbooks/feeds-behind.md.
var feeds = Runbook{
	Name:     "feeds-behind",
	Title:    "Feeds are behind",
	Incident: "Platform Feed Incident",
	Symptom:  "live timelines, webhooks or books do not move although events are written",
	Checks: []Check{
		{
			Key: "start",
			Ask: "Timelines, webhooks and billing read only below the oldest transaction that has written and " +
				"is still " +
				"open, in any database of the server, so that they never miss what commits late. What keeps that " +
				"transaction open delays all of them.\n" +
				"\n" +
				"    appctl events tail NAME                 # written events: they are there\n" +
				"    appctl events tail NAME -f              # the feed: it does not show them\n" +
				"    curl -s http://HOST:9464/metrics | grep -E 'feed_(holder|lag)'   # of the process that reconciles",
		},
		{
			Key:     "held",
			Title:   "A transaction holds them",
			Columns: []string{"metric", "means", "do"},
			Edges: []Edge{
				{
					Key: "prepared",
					When: []runbook.Condition{runbook.Is("metric.feed_holder", "prepared"),
						runbook.Above("metric.feed_lag", 5)},
					Seen:  "`app_platform_feed_holder_seconds` with `kind=\"prepared\"`",
					Means: "a prepared transaction, which has no connection and survives restarts",
					Do:    "in its own database: `rollback prepared 'GID'`; the metric's `name` is the GID",
					Act:   runbook.Outside("roll the prepared transaction back"),
				},
				{
					Key: "session",
					When: []runbook.Condition{runbook.Is("metric.feed_holder", "backend"),
						runbook.Above("metric.feed_lag", 5)},
					Seen: "`app_platform_feed_holder_seconds` with `kind=\"backend\"`",
					Means: "a session that has written and stays open: usually a person's `psql`; the metric " +
						"names process and user",
					Do:  "`select pg_terminate_backend(PID)`; set `idle_in_transaction_session_timeout`",
					Act: runbook.Outside("end the session"),
				},
			},
		},
		{
			Key:     "subscriber",
			Title:   "One subscriber is behind",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:   "slow-consumer",
					When:  []runbook.Condition{runbook.Is("feed.code", "SLOW_CONSUMER")},
					Seen:  "its feed ends with `SLOW_CONSUMER`",
					Means: "it reads more slowly than events come, and was cut off",
					Do:    "resume from the cursor in the error; read faster, or fewer topics",
					Act:   runbook.Outside("resume from the cursor"),
				},
				{
					Key: "right-gone",
					When: []runbook.Condition{runbook.Is("feed.code", "PERMISSION_REVOKED", "FORBIDDEN", "NOT_FOUND",
						"UNAUTHENTICATED", "TOKEN_EXPIRED")},
					Seen: "its feed ends with `PERMISSION_REVOKED`, or cannot be opened again: `FORBIDDEN`, " +
						"`NOT_FOUND`",
					Means: "its role, account, key or session ended",
					Do:    "grant the role again, or give it a new key",
					Act:   runbook.Calls("grantRole", "updateServiceAccount", "createServiceAccountKey"),
				},
			},
		},
		{
			Key:     "webhooks",
			Title:   "A webhook is behind",
			Ask:     "`appctl webhooks list` shows since when it fails, and the last error.",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:   "refused",
					When:  []runbook.Condition{runbook.Some("webhook.error")},
					Seen:  "`failingSince` and an error",
					Means: "its receiver does not answer with 2xx, or the address may not be called",
					Do: "repair the receiver, or correct the address with `updateWebhook`; what failed for good " +
						"is sent again " +
						"by `redeliverWebhook` or `replayWebhook`",
					Act: runbook.Outside("repair the receiver", "updateWebhook", "redeliverWebhook", "replayWebhook"),
				},
			},
		},
		{
			Key:     "no-reader",
			Title:   "Nothing reads them",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:   "no-worker",
					When:  []runbook.Condition{runbook.Is("code", "NO_WORKER", "WORKER_LOST")},
					Seen:  "operations wait with `NO_WORKER`",
					Means: "no process with the role `worker` runs: no webhook is sent and no operation continues",
					Do:    "[operator](operator.md): *No worker*",
					Act:   runbook.Outside("start a worker"),
				},
			},
		},
	},
}
