package tx

import (
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// awayStates are PostgreSQL's words for a server that is starting, stopping or full, or is not the primary any more; class
// 08 is that of connections.
var awayStates = map[string]bool{"57P01": true, "57P02": true, "57P03": true, "53300": true, readOnly: true}

// Away says whether err is that the database could not be reached, or went away in the middle: nothing
// is wrong with what was asked, and whether it was written is not known.
func Away(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return awayStates[refused.Code] || strings.HasPrefix(refused.Code, "08")
	}
	var unconnected *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &unconnected) || errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		pgconn.SafeToRetry(err)
}
