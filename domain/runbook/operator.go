package runbook

import "github.com/gpuaas/app-platform/sdk/runbook"

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
				"seconds, by any other worker; the log contains `took over the operations of a dead worker`. A line " +
				"`the worker's lease could not be\n" +
				"kept` means that its database is slow or unavailable.",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:   "stopped",
					When:  []runbook.Condition{runbook.Is("code", "NO_WORKER", "WORKER_LOST")},
					Seen:  "`NO_WORKER` or `WORKER_LOST`",
					Means: "no process with the role `worker` has sent a heartbeat for ten seconds",
					Do:    "start one with `--roles worker`; end one that hangs: another takes over",
					Act:   runbook.Outside("start a worker"),
				},
			},
		},
		{
			Key:   "node-is-offline",
			On:    []string{"NODE_OFFLINE", "NODE_UNREACHABLE", "TASK_NOT_TAKEN"},
			Title: "A node is offline",
			Ask: "    appctl nodes\n" +
				"\n" +
				"OFFLINE means that its agent has not reported. The members keep running: only new tasks and " +
				"proofs wait. More about nodes: [a node is lost](node-lost.md).",
			Columns: []string{"the agent's log says", "do"},
			Edges: []Edge{
				{
					Key: "the-platform-cannot-be-reached",
					When: []runbook.Condition{runbook.Is("node.status", "OFFLINE"),
						runbook.Has("agent.log", "cannot reach the server")},
					Act:  runbook.Outside("repair the network between"),
					Seen: "the platform cannot be reached",
					Do:   "network, `--platform-url`",
				},
				{
					Key: "its-credential-is-refused",
					When: []runbook.Condition{runbook.Is("node.status", "OFFLINE"),
						runbook.Has("agent.log", "refuses the node's credential")},
					Act:  runbook.Calls("createNodeEnrolment"),
					Seen: "its credential is refused",
					Do: "it was revoked, or its node was restored from an old image: `appctl admin node enrol " +
						"NAME` and put the token into `--enrol-token-file`; no restart is needed",
				},
				{
					Key:  "another-agent-uses-the-state-directory",
					When: []runbook.Condition{runbook.Has("agent.log", "another agent uses")},
					Act:  runbook.Outside("stop one of the two agents"),
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
				"again. More about adapters: [an adapter is away](adapter-away.md).",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key: "away",
					When: []runbook.Condition{runbook.Is("code", "ADAPTER_UNAVAILABLE", "ADAPTER_NOT_REGISTERED",
						"ADAPTER_REFUSES_PLATFORM", "ADAPTER_INVALID", "DIAL_REFUSED")},
					Seen:  "an operation waits for it",
					Means: "see [an adapter is away](adapter-away.md)",
					Do:    "follow that page, by the code",
					Act:   runbook.Outside("start the adapter", "registerAdapter"),
				},
			},
		},
		{
			Key:   "credential-has-leaked",
			Title: "A credential has leaked",
			Ask: "    appctl admin key revoke key_… --reason leaked      # the id is in the secret: gpu_sa_…\n" +
				"\n" +
				"It stops working at that moment: every request looks up its credential. Sockets opened with it " +
				"are cut within\n" +
				"seconds. Then `appctl audit list` in its project: what was done with it, and what was refused.",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:    "key",
					Person: "that it has leaked is known outside of the platform",
					Seen:   "a key is where it should not be",
					Means:  "anyone may use it",
					Do:     "`appctl admin key revoke`; then a new key for its automation",
					Act:    runbook.Calls("revokeServiceAccountKey", "createServiceAccountKey"),
				},
				{
					Key:    "session",
					Person: "that it was taken is known outside of the platform",
					Seen:   "a person's machine or browser was taken",
					Means:  "their sessions may be used",
					Do:     "`logoutEverywhere`; an operator ends the sessions of others",
					Act:    runbook.Calls("logoutEverywhere", "endSession"),
				},
			},
		},
		{
			Key:   "live-timeline-does-not-move",
			On:    []string{"FEED_SILENT"},
			Title: "A live timeline does not move",
			Ask: "Events are written (`appctl events tail NAME` shows them) but `-f` shows nothing: something " +
				"delays the feed. More about feeds: [feeds are behind](feeds-behind.md).\n" +
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
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:   "held",
					When:  []runbook.Condition{runbook.Above("metric.feed_lag", 5)},
					Seen:  "`app_platform_reconcile_feed_lag_seconds` above 5",
					Means: "a transaction delays every feed",
					Do:    "end it, as above",
					Act:   runbook.Outside("end the transaction"),
				},
			},
		},
		{
			Key:   "many-refusals",
			Title: "Too many refusals",
			Ask: "`appctl audit search` shows refusals, with a count where the same one repeated; `appctl audit " +
				"list` only those of a project; what is not found belongs to none. `FORBIDDEN` names the missing " +
				"key; `NOT_FOUND`\n" +
				"for an object of another tenant means that a caller tries ids, or that a script uses the wrong " +
				"project.",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:   "forbidden",
					When:  []runbook.Condition{runbook.Is("audit.refusals", "FORBIDDEN")},
					Seen:  "`FORBIDDEN`, with the missing key",
					Means: "the caller sees the object and lacks the key",
					Do:    "grant it, where they should have it",
					Act:   runbook.Calls("grantRole", "updateServiceAccount"),
				},
				{
					Key:   "not-found",
					When:  []runbook.Condition{runbook.Is("audit.refusals", "NOT_FOUND")},
					Seen:  "`NOT_FOUND`",
					Means: "ids of others are tried, or a script uses the wrong project",
					Do:    "correct the script; revoke the key of a caller that continues",
					Act:   runbook.Outside("correct the caller", "revokeServiceAccountKey"),
				},
			},
		},
		{
			Key:   "system-app",
			Title: "A system app",
			Ask: "Begin with `appctl triage` of the instance, in the platform's own project.\n" +
				"\n" +
				"A system app is one that you run for the platform, in the platform's own tenant: no tenant sees it, " +
				"and no one is billed for it. What a user does for another app, you do for this one.",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:   "failed",
					When:  []runbook.Condition{runbook.Is("app.system", "yes"), runbook.Is("state", "FAILED")},
					Seen:  "an operation of it has FAILED",
					Means: "as for every app, by the code",
					Do: "follow the branch that triage names, as its user: request it again, or tear it down and " +
						"launch it again; roll its version back when the failure came with it",
					Act: runbook.Calls("retryOperation", "rollbackInstance", "decommissionInstance"),
				},
				{
					Key:   "unwell",
					When:  []runbook.Condition{runbook.Is("app.system", "yes"), runbook.Some("blocker")},
					Seen:  "its instance has a blocker",
					Means: "what the platform uses of it may be unavailable",
					Do:    "follow the page of the blocker; a failed member is recovered or replaced by you",
					Act:   runbook.Calls("recoverMember", "replaceMember"),
				},
			},
		},
	},
}
