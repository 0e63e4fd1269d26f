package e2e_test

// apart are documents that need no cluster of others: each is walked in a project of its own, beside the others.
var apart = []walk{
	// First, as the suite of conformance mostly waits.
	{file: "docs/guides/write-an-adapter.md", setUp: (*walker).publishesPulse,
		by:     map[string]string{"bin/": "newcomer", "go build": "newcomer", "export": "newcomer"},
		goesOn: []string{"bin/adapter-in-an-hour --platform-url http"}, left: map[string]string{
			"go test": "make test runs it",
		}},
	{file: "docs/guides/webhooks.md", setUp: (*walker).receives,
		stands: map[string]string{"--project demo": "--project webhooks"},
		makes:  map[string]func(*walker) string{"whd": (*walker).delivered}},
	{file: "docs/guides/artifact-sources.md", setUp: (*walker).keepsPassword},
	{file: "docs/guides/artifacts.md", setUp: (*walker).pushesModel},
	{file: "docs/guides/signing.md", setUp: (*walker).builds, left: map[string]string{
		"cosign sign": "another's program; sdk/signing holds what it wrote",
	}},
	{file: "docs/guides/secrets.md", setUp: (*walker).trains},
	{file: "docs/guides/shared-control-planes.md", staff: []string{"nobody"}, setUp: (*walker).shares},
	{file: "docs/guides/billing.md", staff: []string{"appctl prices", "appctl billing", "--platform"},
		setUp: (*walker).hasBooks, left: map[string]string{
			"billing reopen": "a period ends with its month; service/billing reopens one",
			"billing why":    "a line is known when usage was rated; service/billing explains each",
		}},
	{file: "docs/guides/identity.md", staff: []string{"tenant domains"},
		by: map[string]string{"app-platform": "newcomer", "appctl login": "newcomer", "sessions list": "lee",
			"sessions end ses": "lee", "sessions end-all": "lee", "sessions end-all --user": "dana"},
		setUp: (*walker).hasProvider, goesOn: []string{"app-platform serve"}, left: map[string]string{
			"login --browser": "no browser here; graph/authhttp goes that way with a provider, cmd/appctl with a page",
		}},
	{file: "docs/guides/adapter-conformance.md", setUp: (*walker).checksPulse,
		goesOn: []string{"bin/pulse --platform-url http"},
		left:   map[string]string{"conformance.Command": "a line of a program; cmd/hello-cluster-controller has it"}},
	{file: "docs/guides/operate-the-edge.md", setUp: (*walker).hasEdge, staff: []string{"adapter register"},
		by:     map[string]string{"app-platform": "newcomer", "slurm-reference-controller": "newcomer"},
		goesOn: []string{"app-platform serve", "slurm-reference-controller"}},
	{file: "docs/guides/promotion.md", setUp: (*walker).promotes, left: map[string]string{
		"adapter check":   "write-an-adapter's walk makes a controller's reports and brings them",
		"evidence submit": "as above",
		"artifact smoke": "it starts the image in a container engine, for a runner that is registered; cmd/appctl " +
			"does it",
		"demo-pulse": "TestAnOutsiderTakesAnAppOfItsOwnTheWholeWay adds an app and an adapter, and opens both",
	}},
	{file: "docs/guides/endpoints.md", setUp: (*walker).takesNotes, goesOn: []string{"appctl forward"}},
	{file: "docs/guides/oci-apps.md", setUp: (*walker).servesModels},
	{file: "docs/guides/canaries.md", setUp: (*walker).stages},
	{file: "docs/guides/onboarding.md", staff: []string{"appctl"}},
	{file: "README.md", setUp: (*walker).house, by: map[string]string{"bin/": "newcomer", "export": "newcomer"},
		left: map[string]string{"make ": "builds, runs or tests everything; CI does"}},
	{file: "examples/publish-ci/README.md", setUp: (*walker).house,
		by:     map[string]string{"eval": "newcomer", "export": "newcomer", "APP=your-app": "newcomer"},
		stands: map[string]string{"CANARY_SECONDS=20": "CANARY_SECONDS=1"}, left: map[string]string{
			"platform.example.com": "the form of it: the lines below it, for make run, are run",
		}},
}

// elsewhere are documents with commands that are not walked, with the reason.
var elsewhere = map[string]string{
	"docs/guides/releasing-an-app.md": "its line starts a controller at the reader's own address; make " +
		"app-release is the release",
	"docs/operations.md": "operates whole machines, as TestNodesLiveAndDie does; the guide of " +
		"identity makes an operator",
	"examples/node-graphql-ws/README.md":    "TestAClientInAnotherLanguageTailsATimeline runs the program",
	"examples/typescript-adapter/README.md": "examples/typescript_test.go builds, starts and checks it",
	"examples/outsider/README.md":           "TestAnOutsiderTakesAnAppOfItsOwnTheWholeWay runs the walk",
	"examples/python-adapter/README.md":     "examples/python_test.go starts and checks it",
	"sdk/python/README.md":                  "examples/python_test.go runs the kit's tests",
	"sdk/python-client/README.md":           "examples/older_test.go runs the client's tests",
	"docs/guides/volumes.md": "TestFilesOutlastTheirMembers goes its way on a class that the nodes of " +
		"the lab serve",
	"docs/guides/kubernetes.md": "rig/kubernetes walks its steps on a real cluster, which takes minutes: make " +
		"test-kubernetes",
	"docs/testing.md":               "its lines are targets of make, which say what the tests of this repository are",
	"docs/runbooks/adapter-away.md": "rig/drills walks it, edge by edge",
	"docs/runbooks/database.md":     "rig/drills walks it, edge by edge",
	"docs/runbooks/expiry.md":       "rig/drills walks it, edge by edge",
	"docs/runbooks/feeds-behind.md": "rig/drills walks it, edge by edge",
	"docs/runbooks/node-lost.md":    "rig/drills walks it, edge by edge",
	"docs/guides/write-an-adapter-in-typescript.md": "examples/typescript_test.go and conformance_test.go run, check " +
		"and quote its program; the walk of write-an-adapter publishes one",
	"docs/guides/write-an-adapter-in-python.md": "examples/python_test.go runs, checks and quotes its program; the " +
		"walk of write-an-adapter publishes one",
}
