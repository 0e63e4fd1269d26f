package tx

import (
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// awayStates are PostgreSQL's codes for a server that is starting, stopping or full, or is not the primary any more;
// class 08 is that of connections.
var awayStates = map[string]bool{"57P01": true, "57P02": true, "57P03": true, "53300": true, readOnly: true}

// Away reports whether err means that the database could not be reached, or went away in the middle: nothing is wrong
// with the request, and whether it was written is not known.
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

// passing are the classes of refusals that do not depend on what was written, so that PostgreSQL may take the same
// write the next time: connections, states of the transaction, rollbacks, resources, locks, an operator's
// interventions, the system and faults of the server.
var passing = []string{"08", "25", "40", "53", "55", "57", "58", "XX"}

// Passing reports whether err is a refusal of the moment: PostgreSQL may take the same write the next time.
func Passing(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && slices.Contains(passing, class(refused))
}

// class returns the first part of a refusal's SQLSTATE.
func class(refused *pgconn.PgError) string { return refused.Code[:min(2, len(refused.Code))] }

// Refusal returns what the database refused a write by, its SQLSTATE and the constraint's name, and whether the refusal
// lasts: a guard, a constraint or a value, which the same write meets again.
func Refusal(err error) (by string, lasting bool) {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || slices.Contains(passing, class(refused)) {
		return "", false
	}
	by = refused.Code
	if refused.ConstraintName != "" {
		by += ", " + refused.ConstraintName
	}
	return by, true
}
