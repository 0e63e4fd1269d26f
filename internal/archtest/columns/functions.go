package columns

import (
	"regexp"
	"strings"
)

// Function is a function of the database, as the newest migration creates it.
type Function struct {
	// Path is the migration, and Line where the body begins.
	Path string
	Line int
	Body string
}

// Functions are the functions of the database, by name.
type Functions map[string]Function

// created is the head of a function, up to the mark that its body begins and ends with.
var created = regexp.MustCompile(`CREATE (?:OR REPLACE )?FUNCTION ([a-z_.]+)[^$]*?\bAS\s+(\$[a-z_]*\$)`)

// Add adds the functions that a migration creates. In the migrations' order, the newest of each name is kept.
func (f Functions) Add(path, source string) {
	up, _, _ := strings.Cut(source, "-- +goose Down")
	for _, at := range created.FindAllStringSubmatchIndex(up, -1) {
		name, mark := up[at[2]:at[3]], up[at[4]:at[5]]
		if body, _, ends := strings.Cut(up[at[1]:], mark); ends {
			f[name] = Function{path, strings.Count(up[:at[1]], "\n") + 1, body}
		}
	}
}
