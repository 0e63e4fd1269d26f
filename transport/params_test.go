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
		`{"a":{"b":[1,{"c":1,"d":{},"c":2}]}}`: "a.b.1.c",
		`{"a":1,"\u0061":2}`:                   "a",
		`{` + wide + `}`:                       "",
		`{` + wide + `,"m3":2}`:                "m3",
		`{` + wide + `,"x":{"y":1,"y":1}}`:     "x.y",
		`{"a/b":{"~c":1,"~c":1}}`:              "a/b.~c",
	} {
		for _, member := range []string{"variables", "extensions"} {
			_, err := Params([]byte(`{"query":"{ a }","` + member + `":` + text + `}`))
			if path == "" {
				require.NoError(t, err, text)
				continue
			}
			var refused *Error
			require.ErrorAs(t, err, &refused, text)
			require.Equal(t, member+"."+path+" is given twice: a member may be given once", refused.Message, text)
		}
	}
}

func TestWhatARequestSays(t *testing.T) {
	t.Parallel()
	params, err := Params([]byte(` {"query":"{ \u00e4 }","operationName":"A","other":[1],"extensions":{"e":null},
		"variables":{"n":9007199254740993,"d":1.50,"list":[true,{"x":"y","n":[9007199254740993]}],"none":null,"half":"\ud800"}} `))
	require.NoError(t, err)
	require.Equal(t, "{ ä }", params.Query)
	require.Equal(t, "A", params.OperationName)
	require.Equal(t, map[string]any{"e": nil}, params.Extensions)
	require.Equal(t, map[string]any{"n": json.Number("9007199254740993"), "d": json.Number("1.50"),
		"list": []any{true, map[string]any{"x": "y", "n": []any{json.Number("9007199254740993")}}}, "none": nil,
		"half": "\ufffd"}, params.Variables)

	params, err = Params(
		[]byte(`{"query":"{ a }","query":"{ b }","operationName":null,"variables":null,"extensions":null}`))
	require.NoError(t, err)
	require.Equal(t, "{ b }", params.Query)
	require.Nil(t, params.Variables)
	require.Nil(t, params.Extensions)
}

func TestARequestThatIsWrongNamesTheMember(t *testing.T) {
	t.Parallel()
	for text, message := range map[string]string{
		`{}`:                                   "query is missing",
		`{"query":null}`:                       "query is missing",
		`{"query":7}`:                          "query must be a string",
		`{"query":"{ a }","operationName":{}}`: "operationName must be a string",
		`{"query":"{ a }","variables":"x"}`:    "variables must be an object",
		`{"query":"{ a }","extensions":[1,"\""]}`: "extensions must be an object",
	} {
		_, err := Params([]byte(text))
		var refused *Error
		require.ErrorAs(t, err, &refused, text)
		require.Equal(t, CodeInvalidArgument, refused.Code)
		require.Equal(t, message, refused.Message, text)
	}
	for _, text := range []string{"", "null", "7", "[]", `{"query":"{ a }"} {}`, `{"query":"{ a }"`,
		`{"query":"{ a }",}`,
		"{\"query\":\"\xff\"}", `{"query":"{ a }","variables":{"a":1,}}`} {
		_, err := Params([]byte(text))
		require.ErrorIs(t, err, ErrNoObject, text)
	}
}
