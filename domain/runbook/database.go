package runbook

import "github.com/gpuaas/app-platform/sdk/runbook"

// database is the runbook in docs/runbooks/database.md.
var database = Runbook{
	Name:     "database",
	Title:    "The database",
	Incident: "Platform Database Incident",
	Symptom:  "it does not answer, is slow, is full, was restored or promoted",
	Checks: []Check{
		{
			Key: "start",
			Ask: "All state is in one PostgreSQL database. Whatever happens to it, no process has to be " +
				"restarted by hand: " +
				"servers and workers connect again by themselves, and work continues where it stopped.\n" +
				"\n" +
				"    curl -s http://HOST:PORT/readyz        # 503: the database does not answer\n" +
				"    appctl nodes fleet                     # a read; how long does it take?\n" +
				"    psql \"$DATABASE_URL\" -c \"select pid, state, wait_event_type, pg_blocking_pids(pid), " +
				"left(query, 60) from pg_stat_activity\n" +
				"                             where state <> 'idle' order by xact_start limit 20\"",
		},
		{
			Key:     "away",
			Title:   "It does not answer",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key: "read-only",
					When: []runbook.Condition{runbook.Is("ready", "yes", "no"),
						runbook.Has("server.log", "read-only transaction", "SQLSTATE 25006")},
					Seen:  "the log has `read-only transaction`, SQLSTATE 25006",
					Means: "the servers are connected to a replica, or to a primary that was set to read-only",
					Do: "stop the old primary, promote one, and name all hosts in `DATABASE_URL`; connections that " +
						"are refused a write are closed, and the new ones find the primary",
					Act: runbook.Outside("promote a primary, or let it take writes again"),
				},
				{
					Key: "connections-full",
					When: []runbook.Condition{runbook.Is("ready", "yes", "no"),
						runbook.Has("server.log", "too many clients", "remaining connection slots", "SQLSTATE 53300")},
					Seen:  "the log has `too many clients already`, SQLSTATE 53300",
					Means: "other sessions use all of `max_connections`; a process uses up to 75 by default",
					Do: "end the sessions that `pg_stat_activity` shows by the application that took them; raise " +
						"`max_connections`, or lower `--db-connections`",
					Act: runbook.Outside("end the sessions that use up max_connections"),
				},
				{
					Key:   "down",
					When:  []runbook.Condition{runbook.Is("ready", "no", "silent")},
					Seen:  "`/readyz` answers 503",
					Means: "its server is stopped, starting, or cannot be reached",
					Do: "start it, or repair the network between; a host that vanished without closing its " +
						"connections is given up after ten " +
						"seconds. Operations continue by themselves",
					Act: runbook.Outside("start the database"),
				},
			},
		},
		{
			Key:     "full",
			Title:   "It is full",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:   "disk-full",
					When:  []runbook.Condition{runbook.Has("server.log", "SQLSTATE 53100", "No space left on device")},
					Seen:  "reads work, writes are `INTERNAL`, and the log has SQLSTATE 53100",
					Means: "the disk of the database has no space",
					Do: "give it space: a larger disk, or delete what is not the database's. Never delete below its " +
						"data directory. Nothing is lost: what was refused was not written, and steps are tried again",
					Act: runbook.Outside("free or add space on the database's disk"),
				},
			},
		},
		{
			Key:     "restored",
			Title:   "It was restored or promoted",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:  "new-generation",
					When: []runbook.Condition{runbook.Has("server.log", "a new generation begins")},
					Seen: "the log has `a new generation begins`; cursors of clients are `CURSOR_EXPIRED`",
					Means: "it is another server or timeline than before, and some of what was written last may be " +
						"lost",
					Do: "follow the five steps of [restore and promotion](../operations.md#restore-and-promotion); " +
						"clients whose cursor is refused start again without one",
					Act: runbook.Outside("follow the five steps after a restore", "revokeServiceAccountKey",
						"rotateServiceAccountKey", "replayWebhook"),
				},
				{
					Key:   "cursor-expired",
					When:  []runbook.Condition{runbook.Is("feed.code", "CURSOR_EXPIRED")},
					Seen:  "one feed is `CURSOR_EXPIRED`, and the log has no new generation",
					Means: "its cursor is of an earlier generation, or older than what is kept",
					Do:    "the client starts again without a cursor",
					Act:   runbook.Outside("start the client again without a cursor"),
				},
			},
		},
		{
			Key:     "slow",
			Title:   "It is slow",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key: "clock",
					When: []runbook.Condition{
						runbook.Has("server.log", "clock")},
					Seen:  "a server stops, and its log names the clock",
					Means: "its machine's clock is more than 2 s from the database's",
					Do:    "synchronise both by NTP; the server then starts",
					Act:   runbook.Outside("set the clock"),
				},
				{
					Key:   "locked",
					When:  []runbook.Condition{runbook.Above("answer.seconds", 2), runbook.Is("ready", "yes")},
					Seen:  "some requests take seconds or end as `UNAVAILABLE`, and `/readyz` answers at once",
					Means: "a session keeps a lock that they wait for: `pg_blocking_pids` names it",
					Do: "end it: `select pg_terminate_backend(PID)`; a person's `psql`, a backup or a migration " +
						"by hand",
					Act: runbook.Outside("end the session that keeps the lock"),
				},
				{
					Key: "lease",
					When: []runbook.Condition{
						runbook.Has("server.log", "the worker's lease could not be kept")},
					Seen: "the log has `the worker's lease could not be kept`",
					Means: "statements of the heartbeat take seconds: the machine, its disk or the network is " +
						"overloaded",
					Do: "find what uses its processors and disk: `pg_stat_activity`, `iostat`; other workers take " +
						"over meanwhile",
					Act: runbook.Outside("reduce the load on the database's machine"),
				},
			},
		},
	},
}
