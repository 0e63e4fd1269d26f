// Command runbooks writes the pages of docs/runbooks from the values in domain/runbook, in the repository's root.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gpuaas/app-platform/domain/runbook"
)

// pages is the folder that is written to.
const pages = "docs/runbooks"

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes a page for each runbook, and the list of all into the page that leads to them.
func write() error {
	for _, book := range runbook.All() {
		if err := os.WriteFile(filepath.Join(pages, book.Name+".md"), []byte(book.Page()), 0o644); err != nil {
			return err
		}
	}
	path := filepath.Join(pages, "README.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	listed, found := runbook.WithList(string(page))
	if !found {
		return fmt.Errorf("%s has no place for the list of runbooks", path)
	}
	return os.WriteFile(path, []byte(listed), 0o644)
}
