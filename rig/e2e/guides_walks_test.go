package e2e_test

// walks are documents whose commands are run unchanged, block by block, by a person at a terminal who confirms each
// question. Only the ids that a document cannot know ("op_…") are filled in.
var walks = []walk{
	{file: "docs/runbooks/README.md", left: map[string]string{
		"--plan": "nothing is wrong with the operation", "--do": "as above",
	}},
	{file: "docs/runbooks/instance-stuck.md", left: map[string]string{
		"appctl decommission": "the walk ends with it", "allocations release NAME": "as above",
	}},
	{file: "docs/runbooks/artifact.md", left: map[string]string{
		"sha256:…": "a digest is not written out in a document; the table of slips asks for one that is not there",
	}},
	{file: "docs/runbooks/billing.md", staff: []string{"billing runs"}, left: map[string]string{
		"billing statement": "there is none in the seconds before usage is first rated",
		"billing verify":    "nothing is booked before a period's end", "billing why": "as above",
	}},
	{file: "docs/guides/audit.md", staff: []string{"appctl"}, left: map[string]string{
		"--keys keys.json": "the keys are those that the reader keeps", "--checkpoint kept.jsonl": "as above",
	}},
	{file: "docs/guides/policy.md", left: map[string]string{
		"project.json": "the file is the reader's own", "entitlements grant": "the app is the reader's own",
		"entitlements revoke": "as above",
	}},
	{file: "docs/runbooks/catalog.md", left: map[string]string{
		"manifest lint": "the file is the reader's own",
	}},
	{file: "docs/runbooks/operator.md", staff: []string{"appctl"}, left: map[string]string{
		"key revoke": "no key has leaked",
	}},
	{file: "docs/guides/permissions.md", left: map[string]string{
		"admin grant": "Dana gives the role in TestConsole's walk", "admin revoke": "as above",
	}},
	{file: "docs/guides/service-accounts.md", left: map[string]string{
		"budget set":        "the account is the reader's own",
		"instance=$":        "it is run with the account's key in examples/curl",
		"appctl action run": "as above", "appctl decommission": "as above", "appctl token": "as above",
		"launch hello-cluster --name demo": "a launch with an operator is in " +
			"TestALaunchNamesTheAccountThatItsAdapterMayActBy",
		"instances operator":      "as above",
		"launch slurm --name hpc": "what comes of it is in TestTheAdapterReplacesAWorkerThatSlurmHasGivenUp",
	}},
	{file: "docs/guides/numbers.md", left: map[string]string{"admin ": "the account and its key are the reader's own"}},
	{file: "docs/guides/operate-a-cluster.md", staff: []string{"prices set", "quota --max"}, left: map[string]string{
		"--version 1.3.0": "there is no such version yet: the plan says so, and so does the exit code",
		"members scale":   "the walk's cluster grows by members add, below it",
		"orphans retry":   "nothing was left behind",
		"node is dead": "the member that the line before it has replaced is gone; a dead node is replaced in " +
			"TestNodesLiveAndDie",
		"operations retry": "the drain that was canceled is tried again in service/retry; its work would be waited " +
			"for here",
	}},
}
