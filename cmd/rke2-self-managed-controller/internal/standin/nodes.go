package standin

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
)

// Doer carries node tasks out.
type Doer interface {
	Do(ctx context.Context, task sandbox.Task) sandbox.Outcome
}

// Install puts the stand-in in the place of RKE2 in a task's member, where the task writes RKE2's config file: as a
// node's image would have it. Program is a program that calls [Main], and state the folder of the clusters.
func Install(ctx context.Context, nodes Doer, task sandbox.Task, program, state string) error {
	var spec adapter.WriteFile
	if task.Kind != adapter.TaskWriteFile || json.Unmarshal(task.Spec, &spec) != nil ||
		spec.Path != "/etc/rancher/rke2/config.yaml" {
		return nil
	}
	at := map[string]string{"/usr/local/bin/rke2": Releases[0]}
	for _, one := range Releases {
		at["/usr/local/lib/rke2/"+one+"/bin/rke2"] = one
	}
	for path, one := range at {
		raw, err := json.Marshal(adapter.WriteFile{Path: path, Mode: "0755", MakeDirs: true,
			Content: Script(program, state,
				one)})
		if err != nil {
			return err
		}
		task.Spec = raw
		if out := nodes.Do(ctx, task); out.State != adapter.TaskSucceeded {
			return refuse("the stand-in for RKE2 was not installed: %s", out.Message)
		}
	}
	return nil
}

// Script is a program that says it is a release, and calls a program that calls [Main].
func Script(program, state, release string) string {
	return fmt.Sprintf("#!/bin/sh\nexec env %s='%s' %s='%s' '%s' \"$@\"\n", StateVar, state, ReleaseVar,
		release, program)
}
