package runbook

import "github.com/gpuaas/app-platform/sdk/runbook"

// actionRefused is the check of an app's action that was not done.
var actionRefused = Check{
	Key:   "action",
	Title: "RUNNING: an action is refused",
	Ask: "    appctl action list NAME              # the actions of its version\n" +
		"    appctl -o json apps show SLUG        # what each of them takes, as a schema",
	Columns: []string{"what is seen", "means", "do"},
	Edges: []Edge{
		{
			Key:   "input",
			On:    []string{"INVALID_ARGUMENT"},
			When:  []runbook.Condition{runbook.Is("asked", "invokeAction")},
			Seen:  "`INVALID_ARGUMENT`",
			Means: "the input is not what the action takes; the error, of the platform or of the app, names the field",
			Do:    "correct the field that the error names, and run the action again",
			Act:   runbook.Calls("invokeAction"),
		},
		{
			Key:   "by-the-app",
			On:    []string{"ADAPTER_REJECTED"},
			When:  []runbook.Condition{runbook.Is("asked", "invokeAction")},
			Seen:  "`ADAPTER_REJECTED`",
			Means: "the app refuses it in its present state; the message is the adapter's",
			Do:    "change what the message names, and run the action again; the runbook of the app explains its codes",
			Act:   runbook.Calls("invokeAction"),
		},
	},
}
