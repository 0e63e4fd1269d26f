package contracttest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
)

// LoadSchema reads the SDL files of a pattern as one schema.
func LoadSchema(pattern string) (*ast.Schema, error) {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("find the SDL: %w", err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no SDL at %s", pattern)
	}
	slices.Sort(names)
	var sources []*ast.Source
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the SDL: %w", err)
		}
		sources = append(sources, &ast.Source{Name: name, Input: string(text)})
	}
	schema, err := gqlparser.LoadSchema(sources...)
	if err != nil {
		return nil, fmt.Errorf("parse the SDL: %w", err)
	}
	return schema, nil
}

// ParseSchema reads one text as a schema.
func ParseSchema(text string) (*ast.Schema, error) {
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema", Input: text})
	if err != nil {
		return nil, fmt.Errorf("parse the SDL: %w", err)
	}
	return schema, nil
}

// Print writes a schema as one document in a fixed order.
func Print(schema *ast.Schema) []byte {
	var out bytes.Buffer
	formatter.NewFormatter(&out, formatter.WithIndent("  ")).FormatSchema(schema)
	return out.Bytes()
}

// Types is every type that is ours and not GraphQL's own, by name.
func Types(schema *ast.Schema) []*ast.Definition {
	var found []*ast.Definition
	for _, definition := range schema.Types {
		if !definition.BuiltIn {
			found = append(found, definition)
		}
	}
	slices.SortFunc(found, func(a, b *ast.Definition) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return found
}
