//go:build ignore

// Writes Ent's client from ent/schema into ent/generated/db; run from the repository's root.
package main

import (
	"fmt"
	"log"
	"slices"

	"entgo.io/ent/entc"
	"entgo.io/ent/entc/gen"
)

func main() {
	config := &gen.Config{
		Target:   "./ent/generated/db",
		Package:  "github.com/gpuaas/app-platform/ent/generated/db",
		Features: []gen.Feature{gen.FeatureVersionedMigration, gen.FeatureLock},
		Hooks:    []gen.Hook{known},
	}
	if err := entc.Generate("./ent/schema", config, entc.TemplateDir("./ent/template")); err != nil {
		log.Fatal("ent: ", err)
	}
}

// known refuses an annotation Pipelined that names a field which its type does not have: a secret whose name is
// misspelt there would be read with the others.
func known(next gen.Generator) gen.Generator {
	return gen.GenerateFunc(func(g *gen.Graph) error {
		for _, node := range g.Nodes {
			mark, _ := node.Annotations["Pipelined"].(map[string]any)
			for _, part := range []string{"Omit", "Lists"} {
				names, _ := mark[part].(map[string]any)
				for name := range names {
					if !slices.ContainsFunc(node.Fields, func(f *gen.Field) bool { return f.Name == name }) {
						return fmt.Errorf("%s.%s of Pipelined: there is no field %q", node.Name, part, name)
					}
				}
			}
		}
		return next.Generate(g)
	})
}
