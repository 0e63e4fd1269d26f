// Command gqlgen writes everything that is generated from the contract in graph/schema: what gqlgen writes by
// gqlgen.yml, and graph/generated/plain, the tables of the queries that graph/plain answers. Run it from the
// repository's root: go run ./internal/tools/gqlgen.
package main

import (
	"log"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"
)

func main() {
	settings, err := config.LoadConfig("gqlgen.yml")
	if err != nil {
		log.Fatal("gqlgen: ", err)
	}
	if err := api.Generate(settings, api.AddPlugin(plainPlugin{})); err != nil {
		log.Fatal("gqlgen: ", err)
	}
}
