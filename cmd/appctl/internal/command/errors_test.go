package command

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryCodeOfTheCatalogueHasAnExitCode reads the client's codes, so that a new one cannot be forgotten.
func TestEveryCodeOfTheCatalogueHasAnExitCode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../sdk/client/codes.go")
	require.NoError(t, err)
	codes := regexp.MustCompile(`Code\w+ += "(\w+)"`).FindAllSubmatch(text, -1)
	require.NotEmpty(t, codes)
	for _, code := range codes {
		require.Contains(t, exitOf, string(code[1]))
	}
	require.Len(t, exitOf, len(codes))
}
