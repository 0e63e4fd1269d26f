package transport

import (
	"bytes"
	"encoding/json"

	"github.com/99designs/gqlgen/graphql"
)

// Params checks the members {query, operationName, variables, extensions} of a request
// object and names the one that is wrong. Other members are ignored, as the specification
// asks. Numbers stay json.Number, so that none loses precision.
func Params(fields map[string]json.RawMessage) (*graphql.RawParams, *Error) {
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
		raw, given := fields[member.name]
		if !given || string(raw) == "null" {
			if member.required {
				return nil, Refuse(CodeInvalidArgument, member.name+" is missing")
			}
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if dec.Decode(member.into) != nil {
			return nil, Refuse(CodeInvalidArgument, member.name+" must be "+member.want)
		}
		if member.name == "variables" {
			if path := repeated(raw); path != "" {
				return nil, Refuse(CodeInvalidArgument, "variables."+path+" is there twice: a member may be given once")
			}
		}
	}
	return params, nil
}
