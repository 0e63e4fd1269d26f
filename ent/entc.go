//go:build ignore

// Writes Ent's client from ent/schema into ent/generated/db; run from the repository's root.
package main

import (
	"log"

	"entgo.io/ent/entc"
	"entgo.io/ent/entc/gen"
)

func main() {
	config := &gen.Config{
		Target:   "./ent/generated/db",
		Package:  "github.com/gpuaas/app-platform/ent/generated/db",
		Features: []gen.Feature{gen.FeatureVersionedMigration, gen.FeatureLock},
	}
	if err := entc.Generate("./ent/schema", config, entc.TemplateDir("./ent/template")); err != nil {
		log.Fatal("ent: ", err)
	}
}
