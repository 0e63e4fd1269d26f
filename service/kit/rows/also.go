package rows

import "github.com/jackc/pgx/v5"

// Also is a row with more columns than its scan function knows: Into takes those that follow.
type Also struct {
	pgx.CollectableRow
	Into []any
}

// Scan reads the columns of the scan function, and then the further ones.
func (a Also) Scan(into ...any) error { return a.CollectableRow.Scan(append(into, a.Into...)...) }
