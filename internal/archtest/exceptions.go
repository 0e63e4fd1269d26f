package archtest

// neverRequested is why no allocation is seen in a state that the source document names.
const neverRequested = "public and deprecated: capacity is bound in the transaction that requests it, or refused; a " +
	"row of an older build goes on by these moves"

// byTrigger is why no code of Go writes what happens to volumes.
const byTrigger = "the trigger platform.tell_volume writes it with the change; service/volume's tests see each"

// account is why a comment may have such a word.
const account = "it is the name of an account"

// The reviewed exceptions, each with its reason. One is named by the key of its finding,
// or by the path of its file, or by a folder with a slash at its end.
var (
	climbing    = map[string]string{}
	testHelpers = map[string]string{
		"rig/bench/": "it measures, with the testing package's own counters; no program holds it",
		"internal/ociregistry -> net/http/httptest": "its recorder carries the kept manifests back into the " +
			"library's handler at the start; the library has no other way in",
	}
	impurities = map[string]string{}
	ownClock   = map[string]string{
		"service/contract/contract.go": "the tokens of calls are checked by adapters' clocks, and live for seconds",
		"service/explain/subject.go":   "an explanation is stored nowhere",
		"service/ledger/event/hub.go":  "when a process last looked for other listeners is its own matter",
		"service/ledger/queue/held.go": "a process learns by its own clocks that it was stopped",
	}
	reaching = map[string]string{
		"graph/feed/feed.go": "a feed's permission is checked again while it is live, so its project is read by the " +
			"source itself, under row-level security",
	}
	undocumentedNames = map[string]string{}
	longFiles         = map[string]string{}
	largePackages     = map[string]string{
		"service/identity": "one noun's verbs, a file each: people, projects, accounts and logins share the rules of " +
			"who may give what to whom",
	}
	longFunctions = map[string]string{}
	sleeping      = map[string]string{}
	hidden        = map[string]string{
		"internal/tools/gqlgen/main.go": "a generator that developers run: it ends with log.Fatal",
		"ent/entc.go":                   "a generator that developers run: it ends with log.Fatal",
		"internal/tools/migratediff/":   "a program that developers run: it ends with log.Fatal",
		"internal/ociregistry/":         "the library's handler takes a log.Logger, and is given one that discards",
		"cmd/node-agent/internal/memberinit/shim/shim.go": "what runs a command in a member begins before the " +
			"agent's other packages are initialised, which takes several times what it does itself: see ADR 0128",
		"cmd/node-agent/internal/memberinit/entry.go": "the process is a member's init then, and this is its main: " +
			"nothing of the agent's main runs",
		"rig/lab/init.go": "the process is a node's init then, and this is its main",
	}
	serial = map[string]string{
		"authz TestDecisionAllocatesNothingAtAHundredThousandBindings": "it counts the process's allocations",
		"transport/compress TestAskingAllocatesNothing":                "it counts the process's allocations",
		"transport/httpapi TestThePlainPathAllocatesNoMore":            "it counts the process's allocations",
		"transport/wsapi TestGarbageInitLeaksNothing":                  "it counts descriptors and goroutines",
		"transport/wsapi TestListeningSocketTakesLittleMemory":         "it weighs the process's memory",
		"rig/chaos TestNothingIsLostOrDoneTwiceWhilePartsAreKilled":    "it kills what it uses, and loads the machine",
		"rig/drills TestDrills":                                        "each drill breaks the next one's installation",
		"rig/e2e/":                                                     "all share one installation; some kill it",
	}
	unasked = map[string]string{}
	untold  = map[string]string{
		"apps.volume.created":  byTrigger,
		"apps.volume.ready":    byTrigger,
		"apps.volume.resized":  byTrigger,
		"apps.volume.deleting": byTrigger,
		"apps.volume.deleted":  byTrigger,
		"apps.volume.failed":   byTrigger,
	}
	unmade = map[string]string{
		"allocation → REQUESTED":           neverRequested,
		"allocation REQUESTED → READY":     neverRequested,
		"allocation REQUESTED → RELEASING": neverRequested,
		"allocation REQUESTED → FAILED":    neverRequested,
	}
	misspeltStates = map[string]string{
		"service/billing/": "its words are those of periods, accounts and usage, declared beside the statements",
		"service/budget/":  "its words are those of the ledger, which service/billing declares beside its statements",
	}
	wordings = map[string]string{
		"internal/postgres/doc.go nobody":                                           account,
		"cmd/slurm-reference-controller/internal/slurm/doc.go nobody":               account,
		"cmd/slurm-reference-controller/internal/slurm/calls/inspections.go nobody": account,
		"cmd/slurm-reference-controller/internal/slurm/calls/submit.go nobody":      account,
	}
	texts = map[string]string{
		"CHANGELOG.md nobody":                        account,
		"docs/adr/0120-jobs-run-as-people.md nobody": account,
		"docs/api/v1/":                               "a published schema does not change",
		"cmd/slurm-reference-controller/internal/slurm/calls/located.go told": "a variable of a script that " +
			"published versions declare word for word",
		"internal/archtest/": "these are the words",
	}
	wideLines = map[string]string{
		"graph/":                      "gqlgen writes the signatures of resolvers on one line",
		"rig/bench/reference/frozen/": "what others are measured against does not change",
	}
	unraised = map[string]string{
		"SLOW_CONSUMER": "it is the first word of the close reason of a socket, which is text",
	}
)
