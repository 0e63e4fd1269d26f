package runbook

import "github.com/gpuaas/app-platform/sdk/runbook"

// billing is the runbook in docs/runbooks/billing.md.
var billing = Runbook{
	Name:     "billing",
	Title:    "App Runtime Billing Incident",
	Incident: "App Runtime Billing Incident",
	Symptom: "usage records or bills are wrong: not recorded, not priced, not booked, not the same, not " +
		"explained",
	Checks: []Check{
		{
			Key: "start",
			Ask: "Usage records or bills are wrong: a bill is too high, too low, late, or not " +
				"explained. No step here edits the books by hand: usage and ledger are written once, and what is " +
				"wrong is corrected by a later entry.\n" +
				"\n" +
				"What is not recorded cannot be rated, and what is not rated cannot be booked: answer the five " +
				"questions in their order, and stop at the first whose answer is no. " +
				"`service/billing/runbook_test.go` tests each row below against its fault.\n" +
				"\n" +
				"    appctl usage sources                        # 1. is the usage recorded?    how far, with " +
				"which failures\n" +
				"    appctl usage quarantine                     #    and was any refused?\n" +
				"    appctl billing statement                    # 2. does it have a price?     \"no price " +
				"set\"\n" +
				"    appctl billing runs TENANT                  # 3. is it booked?             the newest run's " +
				"UP TO\n" +
				"    appctl billing verify RUN                   # 4. are the books right?      the same bytes\n" +
				"    appctl billing why PERIOD LINE              # 5. whose is this cent?       runs, shares, " +
				"operations, records",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:  "budget-reached",
					On:   []string{"BUDGET_EXCEEDED"},
					Seen: "`BUDGET_EXCEEDED`, or launches that wait for it",
					Means: "a budget does not cover it: `appctl budget list` shows the amounts that are spent and " +
						"held",
					Do: "raise it with `appctl budget set`, or release capacity; then request again what " +
						"it stopped",
					Act: runbook.Calls("setBudget", "removeBudget"),
				},
				{
					Key:  "capacity-not-recorded",
					When: []runbook.Condition{runbook.Is("usage.basis", "CAPACITY")},
					Act:  runbook.Outside("start the agent of the node"),
					Seen: "`usage sources`: a source of capacity is recorded only up to long ago",
					Means: "its node's agent does not prove that it runs; time without proof is not billed, and is " +
						"resolved within an hour",
					Do: "start the agent: [operator](operator.md). The period stays CLOSING until it is recorded",
				},
				{
					Key:   "app-source-fails",
					When:  []runbook.Condition{runbook.Some("usage.error")},
					Act:   runbook.Outside("repair the adapter"),
					Seen:  "`usage sources`: failures and an error at an app's source",
					Means: "its adapter does not answer, or its answer is not a page of usage",
					Do:    "read the adapter's log; no usage is lost, the cursor stays where it is",
				},
				{
					Key:   "quarantined",
					When:  []runbook.Condition{runbook.Some("usage.quarantined")},
					Act:   runbook.Outside("repair the adapter"),
					Seen:  "`usage quarantine` lists records",
					Means: "the adapter sent an id again with other content, or undeclared usage",
					Do:    "repair the adapter; it sends a record with a new id, or a retraction",
				},
				{
					Key:   "no-price",
					When:  []runbook.Condition{runbook.Some("line.unpriced")},
					Act:   runbook.Calls("rerate", "setPrice"),
					Seen:  "a line says `no price set`",
					Means: "the book has no price for the meter, SKU, region and currency at that time",
					Do: "`appctl prices rerate` for the time that has passed: the lines are booked by the next " +
						"run",
				},
				{
					Key:   "not-booked",
					When:  []runbook.Condition{runbook.Is("run.none", "yes")},
					Act:   runbook.Outside("start a process with the role billing"),
					Seen:  "the newest run is older than minutes, and usage is recorded",
					Means: "no process has the role `billing`, or it logs `background work failed` for `billing`",
					Do:    "start one with `--roles billing`; the warning names tenant or period",
				},
				{
					Key:   "differs-at-ledger",
					When:  []runbook.Condition{runbook.Has("verify.differs", "ledger of line ")},
					Act:   runbook.Outside("compare with a restored dump"),
					Seen:  "`verify`: differs at `ledger of line …`",
					Means: "the ledger is not what was rated: something outside of the product wrote to the database",
					Do:    "as for `line …` below; find the line by its name in `why`",
				},
				{
					Key:  "differs-at-line",
					When: []runbook.Condition{runbook.Has("verify.differs", "line ")},
					Act:  runbook.Outside("compare with a restored dump"),
					Seen: "`verify`: differs at `line …`",
					Means: "usage or prices are not those that were rated: something outside of the product wrote " +
						"to the database",
					Do: "keep the database as it is, compare with a restored dump: `verify` there gives the same " +
						"bytes",
				},
				{
					Key:   "differs-at-engine",
					When:  []runbook.Condition{runbook.Is("verify.differs", "engine")},
					Act:   runbook.Outside("verify it with the version that created it"),
					Seen:  "`verify`: differs at `engine`",
					Means: "the run was created by another version of the rules",
					Do:    "verify it with that version of the program",
				},
				{
					Key:    "wrong-price",
					Person: "what was agreed with the tenant is known outside of the platform",
					Act:    runbook.Calls("rerate"),
					Seen:   "the price itself was wrong",
					Means:  "a mistake in the price book",
					Do: "`appctl prices rerate METER PRICE --from … --until …` shows what changes; `--plan-hash` " +
						"carries it out, as a correction",
				},
				{
					Key:  "late-usage",
					When: []runbook.Condition{runbook.Some("line.month")},
					Act: runbook.Action{Calls: []string{"reopenPeriod"}, Wait: "the next statement has it as " +
						"a correction"},
					Seen:  "usage came after the period was closed",
					Means: "it is a correction on the next statement, marked with its month",
					Do:    "nothing; or `appctl billing reopen PERIOD`, which shows what changes first",
				},
				{
					Key:   "billed-for-failure",
					When:  []runbook.Condition{runbook.Has("borne", "PLATFORM ")},
					Act:   runbook.Calls("grantCredit"),
					Seen:  "a tenant was billed for what failed",
					Means: "the records state who bears their cost: `appctl usage sum`",
					Do: "what the platform bears is on no statement; for what the tenant bears and should not: " +
						"`appctl billing credit grant`",
				},
			},
		},
		{
			Key:   "while-it-lasts",
			Title: "While it lasts",
			Ask: "- Do not stop the billing role: it only adds entries, and every run can be repeated.\n" +
				"- First take a dump. A run can be verified on any restored copy, also on another server.\n" +
				"- A run covers what was committed before its watermark. A transaction that hangs holds the " +
				"watermark back, and with it the books: `app_platform_feed_holder_seconds` names it.",
			Columns: []string{"what is seen", "means", "do"},
			Edges: []Edge{
				{
					Key:   "watermark-held",
					When:  []runbook.Condition{runbook.Above("metric.feed_lag", 5)},
					Seen:  "`app_platform_reconcile_feed_lag_seconds` above 5",
					Means: "a transaction holds back the watermark, and with it the books",
					Do:    "end it: [feeds are behind](feeds-behind.md)",
					Act:   runbook.Outside("end the transaction"),
				},
			},
		},
		{
			Key:   "afterwards",
			Title: "Afterwards",
			Ask: "Run `appctl billing verify` for the runs of every period that was touched. The sum of all entries " +
				"is zero in every currency: the database accepts nothing else.",
		},
	},
}
