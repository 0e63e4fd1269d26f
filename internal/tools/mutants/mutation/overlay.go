package mutation

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// helpers is the code that every mutated package gets as one more file.
//
//go:embed helpers.go.txt
var helpers string

// overlay writes the package with the mutants in it to a folder, and the file for go's -overlay; it returns the
// latter's name.
func overlay(s *source, mutants []*Mutant, folder string) (string, error) {
	replace := map[string]string{}
	write := func(name string, text []byte) error {
		path := filepath.Join(folder, name)
		replace[filepath.Join(s.dir, name)] = path
		return os.WriteFile(path, text, 0o600)
	}
	edits := map[string][]edit{}
	for _, mutant := range mutants {
		for _, one := range mutant.edits {
			one.text = strings.ReplaceAll(one.text, number, strconv.Itoa(mutant.Number))
			edits[one.file] = append(edits[one.file], one)
		}
	}
	for name, changes := range edits {
		if err := write(name, apply(s.text[name], changes)); err != nil {
			return "", err
		}
	}
	own := strings.Replace(helpers, "package helpers", "package "+s.name, 1)
	if err := write("mutants_helpers.go", []byte(own)); err != nil {
		return "", err
	}
	listing, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(folder, "overlay.json")
	return name, os.WriteFile(name, listing, 0o600)
}

// apply makes the edits of one file. No edit adds or removes a line, so that the compiler's lines are the file's.
func apply(text []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int {
		switch {
		case a.at != b.at:
			return cmp.Compare(a.at, b.at)
		case a.order.before(b.order):
			return -1
		case b.order.before(a.order):
			return 1
		}
		return 0
	})
	var out bytes.Buffer
	at := 0
	for _, one := range edits {
		out.Write(text[at:one.at])
		out.WriteString(one.text)
		at = one.end
	}
	out.Write(text[at:])
	return out.Bytes()
}
