package transport

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMemberThatIsThereTwiceIsFoundAtAnyDepth(t *testing.T) {
	t.Parallel()
	many := make([]string, 40)
	for i := range many {
		many[i] = strconv.Quote("m"+strconv.Itoa(i)) + ":1"
	}
	wide := strings.Join(many, ",")
	for text, path := range map[string]string{
		`{}`: "",
		`{"a":{"b":1},"b":{"b":1},"c":[{"b":1},{"b":1}]}`: "",
		`{"a":1,"a":2}`:                        "a",
		`{"a":{"b":[1,{"c":1,"d":{},"c":2}]}}`: "a.b.c",
		`{"a":1,"\u0061":2}`:                   "a",
		`{` + wide + `}`:                       "",
		`{` + wide + `,"m3":2}`:                "m3",
		`{` + wide + `,"x":{"y":1,"y":1}}`:     "x.y",
	} {
		require.True(t, json.Valid([]byte(text)), text)
		require.Equal(t, path, repeated([]byte(text)), text)
	}
	_, refused := Params(map[string]json.RawMessage{"query": []byte(`"{ a }"`),
		"variables": []byte(`{"input":{"n":1,"n":2}}`)})
	require.NotNil(t, refused)
	require.Contains(t, refused.Message, "variables.input.n")
}
