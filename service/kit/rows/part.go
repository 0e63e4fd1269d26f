package rows

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/ent/generated/db/rows"
)

// Fields are fields of an object of the API, each by its path below the object, and the columns that it is read from.
// What is below a field is of the same row where the table has such a path, and of another row where it has none.
type Fields map[string][]string

// Leading returns the fields below which others are of the same row.
func (f Fields) Leading() map[string]bool {
	leading := make(map[string]bool)
	for path := range f {
		if at := strings.LastIndexByte(path, '.'); at >= 0 {
			leading[path[:at]] = true
		}
	}
	return leading
}

// Part is some of the columns of a table. What a row has in other columns stays zero, so that a part serves only
// callers that show nothing else.
type Part[T any] struct {
	// Columns are the part's, as they are selected.
	Columns string
	table   []rows.Column[T]
}

// PartOf returns the part of a table that fields are read from, with other columns that it always has. It panics at a
// name that is not a column's.
func PartOf[T any](table []rows.Column[T], fields Fields, always ...string) Part[T] {
	wanted := make(map[string]bool)
	for _, columns := range append(slices.Collect(maps.Values(fields)), always) {
		for _, name := range columns {
			wanted[name] = true
		}
	}
	var part Part[T]
	var selected []string
	for _, column := range table {
		if wanted[column.Name] {
			part.table, selected = append(part.table, column), append(selected, column.SQL)
			delete(wanted, column.Name)
		}
	}
	if len(wanted) > 0 {
		panic(fmt.Sprintf("no such columns: %v", slices.Sorted(maps.Keys(wanted))))
	}
	part.Columns = strings.Join(selected, ", ")
	return part
}

// Scan scans a row of the part's columns.
func (p Part[T]) Scan(row pgx.CollectableRow) (*T, error) { return rows.Scan(row, p.table) }
