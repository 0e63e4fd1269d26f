package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
)

func FuzzCleanTextIsTheSameHoweverTheStreamIsCut(f *testing.F) {
	f.Add([]byte("plain"), 2)
	f.Add([]byte("zwölf € \xff\x00 \xe2\x82"), 1)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		step = max(1, step%7)
		var cleaner text.Cleaner
		var pieces strings.Builder
		for rest := data; len(rest) > 0; rest = rest[min(step, len(rest)):] {
			pieces.WriteString(cleaner.Write(rest[:min(step, len(rest))]))
		}
		pieces.WriteString(cleaner.Close())
		whole := text.Clean(data)
		require.Equal(t, whole, pieces.String())
		require.True(t, utf8.ValidString(whole))
		require.NotContains(t, whole, "\x00")
	})
}

func TestCutsAreAtCharacters(t *testing.T) {
	t.Parallel()
	require.Equal(t, "€", text.Tail("€€", 5))
	require.Equal(t, "€", text.Head("€€", 5))
	require.Equal(t, "€€", text.Head("€€", 6))
	require.Empty(t, text.Head("€", 2))
}
