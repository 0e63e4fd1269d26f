package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"
)

const (
	// schemaPath is where the platform publishes the JSON Schema of manifest documents.
	schemaPath = "/schemas/manifest.v1.json"
	// maxSchema bounds it, in bytes; schemaWithin is how long reading it may take.
	maxSchema    = 1 << 20
	schemaWithin = 20 * time.Second
)

func (t *tool) manifestSchema() *cobra.Command {
	cmd := t.command("schema", "Print the JSON Schema of manifest documents, for editors and other tools", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		server, _, err := t.Target()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, schemaWithin)
		defer cancel()
		text, err := published(ctx, server, schemaPath, maxSchema)
		if err == nil && !json.Valid(text) {
			err = errors.New("it is not JSON")
		}
		if err != nil {
			return away("the schema of manifests", err)
		}
		_, err = t.Env.Stdout.Write(text)
		return err
	})
	cmd.Example = `  appctl manifest schema > manifest.schema.json`
	return cmd
}
