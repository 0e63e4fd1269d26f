package transport

import (
	stdjson "encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrNoObject says that a text is not one JSON object in UTF-8.
var ErrNoObject = errors.New("not one JSON object in UTF-8")

// Params reads a request object, {query, operationName, variables, extensions}. The error is ErrNoObject, or an *Error
// that names the member that is wrong. Other members are ignored, as the specification requires, and of a member that
// is given twice the last counts. Within a member no name may occur twice: one reader could approve a value that
// another never sees. Numbers stay json.Number, so that none loses precision.
func Params(text []byte) (*graphql.RawParams, error) {
	members, err := membersOf(text)
	if err != nil {
		return nil, err
	}
	params := &graphql.RawParams{}
	for _, member := range []struct {
		name, want string
		into       any
		required   bool
	}{
		{"query", "a string", &params.Query, true},
		{"operationName", "a string", &params.OperationName, false},
		{"variables", "an object", &params.Variables, false},
		{"extensions", "an object", &params.Extensions, false},
	} {
		raw, given := members[member.name]
		if !given || raw.Kind() == jsontext.KindNull {
			if member.required {
				return nil, Refuse(CodeInvalidArgument, member.name+" is missing")
			}
			continue
		}
		if err := json.Unmarshal(raw, member.into, lenient, exactNumbers); err != nil {
			return nil, Refuse(CodeInvalidArgument, member.name+misread(err, member.want))
		}
	}
	return params, nil
}

// lenient takes half of a surrogate pair, as the standard library does.
var lenient = jsontext.AllowInvalidUTF8(true)

// exactNumbers decodes a number as its text.
var exactNumbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *any) error {
	if dec.PeekKind() != jsontext.KindNumber {
		return errors.ErrUnsupported // the decoder's own way
	}
	token, err := dec.ReadToken()
	*v = stdjson.Number(token.String())
	return err
}))

// misread says what is wrong with a member that was to be something.
func misread(err error, want string) string {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && errors.Is(syntax.Err, jsontext.ErrDuplicateName) {
		path := slices.Collect(syntax.JSONPointer.Tokens())
		return "." + strings.Join(path, ".") + " is given twice: a member may be given once"
	}
	return " must be " + want
}

// membersOf returns the members of an object, as parts of its text.
func membersOf(text []byte) (map[string]jsontext.Value, error) {
	if !utf8.Valid(text) {
		return nil, ErrNoObject
	}
	members := map[string]jsontext.Value{}
	err := json.Unmarshal(text, &members, lenient, jsontext.AllowDuplicateNames(true))
	if err != nil || members == nil {
		return nil, ErrNoObject
	}
	return members, nil
}
