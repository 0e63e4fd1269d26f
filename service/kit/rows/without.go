package rows

import (
	"slices"
	"strings"
)

// Without returns a list of columns with NULL in place of some, which hold JSON: a row of it scans as a whole one does, and
// has nothing there. It panics at a name that is none of the columns.
func Without(columns string, names ...string) string {
	list := strings.Split(columns, ",")
	for _, name := range names {
		at := slices.IndexFunc(list, func(column string) bool { return strings.TrimSpace(column) == name })
		list[at] = " NULL::jsonb"
	}
	return strings.Join(list, ",")
}
