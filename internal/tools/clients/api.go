package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// api is the SDL, the clients' operations, and what of them the older SDL serves.
type api struct {
	schema *ast.Schema
	doc    *ast.QueryDocument
	older  *reduction
}

func readAPI(root string) (*api, error) {
	schema, err := readSchema(root, schemaFiles)
	if err != nil {
		return nil, err
	}
	older, err := readSchema(root, olderSchema)
	if err != nil {
		return nil, err
	}
	sources, err := read(root, operationFiles)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	for _, source := range sources {
		text.WriteString(source.Input)
		text.WriteByte('\n')
	}
	doc, problems := gqlparser.LoadQueryWithRules(schema, text.String(), rules.NewDefaultRules())
	if len(problems) > 0 {
		return nil, problems
	}
	return &api{schema: schema, doc: doc, older: reduce(older, doc)}, nil
}

func readSchema(root, pattern string) (*ast.Schema, error) {
	sources, err := read(root, pattern)
	if err != nil {
		return nil, err
	}
	return gqlparser.LoadSchema(sources...)
}

func read(root, pattern string) ([]*ast.Source, error) {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no file matches %s: %w", pattern, err)
	}
	sources := make([]*ast.Source, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file) // #nosec G304 -- the repository's own
		if err != nil {
			return nil, err
		}
		sources[i] = &ast.Source{Name: file, Input: string(text)}
	}
	return sources, nil
}

// printed is the text of operations and fragments.
func printed(doc *ast.QueryDocument) string {
	var text strings.Builder
	formatter.NewFormatter(&text, formatter.WithIndent("  ")).FormatQueryDocument(doc)
	return strings.TrimSpace(text.String())
}

func operationText(op *ast.OperationDefinition) string {
	return printed(&ast.QueryDocument{Operations: ast.OperationList{op}})
}

func fragmentText(fragment *ast.FragmentDefinition) string {
	return printed(&ast.QueryDocument{Fragments: ast.FragmentDefinitionList{fragment}})
}

// spreads are the names of the fragments that a selection needs, those of fragments among them, each once, as met.
func spreads(set ast.SelectionSet, fragments ast.FragmentDefinitionList) []string {
	var names []string
	seen := map[string]bool{}
	var walk func(ast.SelectionSet)
	walk = func(set ast.SelectionSet) {
		for _, selection := range set {
			switch one := selection.(type) {
			case *ast.Field:
				walk(one.SelectionSet)
			case *ast.InlineFragment:
				walk(one.SelectionSet)
			case *ast.FragmentSpread:
				if !seen[one.Name] {
					seen[one.Name] = true
					names = append(names, one.Name)
					walk(fragments.ForName(one.Name).SelectionSet)
				}
			}
		}
	}
	walk(set)
	return names
}
