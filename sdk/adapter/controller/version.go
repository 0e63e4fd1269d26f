package controller

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// printVersion prints the three versions that go their own ways, a line each: that of the program, that of the app's
// manifest which it is published with, and those of the contract that it speaks.
func printVersion(spec Spec, out io.Writer) error {
	var document struct{ App, Version string }
	if err := json.Unmarshal(spec.Manifest, &document); err != nil {
		return fmt.Errorf("the manifest: %w", err)
	}
	_, err := fmt.Fprintf(out, "%s %s\napp %s %s\ncontract %s\n", spec.Name, cmp.Or(spec.Build, revision()),
		document.App, cmp.Or(document.Version, "without a version"), strings.Join(adapter.ContractVersions(), " "))
	return err
}
