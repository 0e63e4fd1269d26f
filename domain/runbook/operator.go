package runbook

// operator is the runbook in docs/runbooks/operator.md.
var operator = Runbook{
	Name:     "operator",
	Title:    "For the platform's operator",
	Incident: "App Platform Operator Incident",
	Symptom:  "workers, nodes, adapters, credentials, feeds: what the platform's operator is called for",
	Checks: []Check{
		{
			Key:   "no-worker",
			On:    []string{"NO_WORKER", "WORKER_LOST"},
			Title: "No worker",
			Ask: "Operations stay PENDING; `appctl ops list --state pending` grows.\n" +
				"\n" +
				"    curl -s http://HOST:PORT/readyz\n" +
				"    psql \"$DATABASE_URL\" -c 'select id, host, created_at, heartbeat_at from worker_process " +
				"order by heartbeat_at desc'\n" +
				"\n" +
				"No row with a heartbeat of the last ten seconds: start a process with `--roles worker`. The " +
				"operations of a killed worker are taken over within fifteen\n" +
				"seconds, by any other; the log contains `took over the operations of a dead worker`. A line " +
				"`the worker's lease could not be\n" +
				"kept` means that its database is slow or unavailable.",
		},
		{
			Key:   "node-is-offline",
			On:    []string{"NODE_OFFLINE", "NODE_UNREACHABLE", "TASK_NOT_TAKEN"},
			Title: "A node is offline",
			Ask: "    appctl nodes\n" +
				"\n" +
				"OFFLINE means that its agent has not reported. The members keep running: only new tasks and " +
				"proofs wait. All about nodes: [a node is lost](node-lost.md).",
			Columns: []string{"the agent's log says", "do"},
			Edges: []Edge{
				{
					Key:  "the-platform-cannot-be-reached",
					Seen: "the platform cannot be reached",
					Do:   "network, `--platform-url`",
				},
				{
					Key:  "its-credential-is-refused",
					Seen: "its credential is refused",
					Do: "it was revoked, or its node was restored from an old image: `appctl admin node enrol " +
						"NAME` and put the token into `--enrol-token-file`; no restart is needed",
				},
				{
					Key:  "another-agent-uses-the-state-directory",
					Seen: "another agent uses the state directory",
					Do:   "two agents were started: stop one",
				},
			},
		},
		{
			Key:   "adapter-does-not-answer",
			Title: "An adapter does not answer",
			Ask: "    appctl admin adapter list\n" +
				"\n" +
				"shows the address, when it last answered and the last error. Operations wait with " +
				"`ADAPTER_UNAVAILABLE` and continue by themselves. An adapter that\n" +
				"returns resumes from its journal; one that has lost its state directory answers 404, and the " +
				"operation is sent to it\n" +
				"again. All about adapters: [an adapter is away](adapter-away.md).",
		},
		{
			Key:   "credential-has-leaked",
			Title: "A credential has leaked",
			Ask: "    appctl admin key revoke key_… --reason leaked      # the id is in the secret: gpu_sa_…\n" +
				"\n" +
				"It stops working at that moment: every request looks up its credential. Sockets opened with it " +
				"are cut within\n" +
				"seconds. Then `appctl audit list` in its project: what was done with it, and what was refused.",
		},
		{
			Key:   "live-timeline-does-not-move",
			On:    []string{"FEED_SILENT"},
			Title: "A live timeline does not move",
			Ask: "Events are written (`appctl events tail NAME` shows them) but `-f` shows nothing: something " +
				"delays the feed. All about feeds: [feeds are behind](feeds-behind.md).\n" +
				"\n" +
				"The metric `app_platform_feed_holder_seconds` of the process that reconciles names the " +
				"transaction. Or ask the database:\n" +
				"\n" +
				"    psql \"$DATABASE_URL\" -c \"select pid, datname, usename, state, xact_start, left(query, " +
				"60) from pg_stat_activity\n" +
				"                             where backend_xid is not null order by xact_start limit 5\"\n" +
				"    psql \"$DATABASE_URL\" -c \"select gid, database, owner, prepared from pg_prepared_xacts " +
				"order by prepared limit 5\"\n" +
				"\n" +
				"The cause is a transaction that has written and has been open for minutes, in any database of " +
				"the server: usually a person's `psql`. End it: `select pg_terminate_backend(PID)`.\n" +
				"A prepared one has no connection and survives restarts: in its own database, `rollback prepared " +
				"'GID'`.",
		},
		{
			Key:   "many-refusals",
			Title: "Too many refusals",
			Ask: "`appctl audit list` shows refusals, with a count where the same one repeated. `FORBIDDEN` names " +
				"the missing key; `NOT_FOUND`\n" +
				"for an object of another tenant means that a caller tries ids, or that a script uses the wrong " +
				"project.",
		},
	},
}
