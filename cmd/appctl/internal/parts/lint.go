package parts

import (
	"context"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Lint has the platform check a manifest. A document that does not hold is an error with every reason.
func Lint(
	ctx context.Context, t *command.Tool, path string, document []byte,
) (gql.LintResult, error) {
	answer, err := gql.LintManifest(ctx, t, document)
	if err != nil {
		return answer.LintManifest, err
	}
	if result := answer.LintManifest; !result.Ok {
		return result, &client.Error{Code: client.CodeManifestInvalid, Message: path + " may not be published",
			Reasons: command.Reasons(result.Reasons)}
	}
	return answer.LintManifest, nil
}
