package trial

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestSamplesFitAndSpoiledOnesDoNot(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"bounds": `{"type":"object","required":["n","s"],` +
			`"properties":{"n":{"type":"integer","minimum":3},"s":{"type":"string","minLength":4}}}`,
		"nested": `{"type":"object","required":["o"],"properties":{"o":{"type":"object","required":["l"],` +
			`"properties":{"l":{"type":"array","minItems":2,"items":{"enum":["a","b"]}}}}}}`,
		"closed":   `{"type":"object","additionalProperties":false,"properties":{"x":{"type":"boolean"}}}`,
		"nothing":  `null`,
		"optional": `{"type":"object","properties":{"x":{"type":"string"}}}`,
	} {
		value, ok := sample(json.RawMessage(schema))
		require.True(t, ok, "%s: %v", name, value)
		bad, ok := Spoil(json.RawMessage(schema))
		require.True(t, ok, name)
		require.False(t, Fits(json.RawMessage(schema), bad), name)
	}
	_, ok := sample(
		json.RawMessage(
			`{"type":"object","required":["x"],"properties":{"x":{"type":"string","pattern":"^[0-9]{8}$"}}}`),
	)
	require.False(t, ok, "a pattern is not guessed")
	_, ok = Spoil(json.RawMessage(`true`))
	require.False(t, ok, "nothing breaks a schema that takes everything")
	_, err := Compile(json.RawMessage(`{"$ref":"https://elsewhere.example/schema"}`))
	require.Error(t, err)
}

func TestEffectsThatEvenACleanCreateRepeatsAreWaiting(t *testing.T) {
	t.Parallel()
	write, poll := effect{"unit-0", adapter.TaskWriteFile, "/a"}, effect{"unit-0", adapter.TaskRun, "poll"}
	clean := Profile{write: 1, poll: 3}
	require.Empty(t, clean.repeated(Profile{write: 1, poll: 9}))
	require.Contains(t, clean.repeated(Profile{write: 2, poll: 3}), "carried out 2 times")
	require.Contains(t, clean.repeated(Profile{effect{"unit-1", adapter.TaskRun, "x"}: 2}), "RUN")
}
