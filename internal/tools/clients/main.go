// Command clients writes what the typed clients are generated from beside the generators of their languages:
// the Python client's operations and codes, and for the Python and the TypeScript client the texts of operations
// that a platform of the last frozen version serves. Run it from the repository's root, after npm run generate:
// go run ./internal/tools/clients.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// Where things are, from the repository's root.
const (
	schemaFiles    = "graph/schema/*.graphql"
	olderSchema    = "docs/api/v1/schema.graphql"
	catalogueFile  = "domain/fault/catalogue.go"
	operationFiles = "sdk/client/operations/*.graphql"
	pythonFolder   = "sdk/python-client/gpuaas_client/generated"
	newerList      = "internal/tools/clients/testdata/newer.txt"
	olderTypes     = "sdk/typescript-client/src/generated/older.ts"
)

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { // #nosec G306 -- sources are for everybody
			return err
		}
	}
	return nil
}

// generate makes the generated files of the repository at root, by their paths from there.
func generate(root string) (map[string]string, error) {
	a, err := readAPI(root)
	if err != nil {
		return nil, err
	}
	codes, err := pythonCodes(root)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		pythonFolder + "/codes.py":      codes,
		pythonFolder + "/operations.py": a.pythonOperations(),
		olderTypes:                      a.typescriptOlder(),
		newerList:                       a.newer(),
	}, nil
}
