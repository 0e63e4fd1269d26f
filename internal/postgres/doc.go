// Package postgres runs a PostgreSQL server of its own from the server programs found on the machine.
//
// Start creates the cluster when the data directory is empty, attaches when a live server already owns it, and
// otherwise starts one. It touches no system service and opens no TCP port: the server listens on a unix socket in a
// directory that only the server's account (and root) may enter, which is why "trust" authentication is safe there.
//
// PostgreSQL refuses to run as root. Started as root, the package runs it as the account "postgres", or "nobody" where
// that one does not exist; a data directory that already holds a cluster keeps its owner. That account may be unable to
// walk to the data directory (a checkout below /root, a 0700 temporary folder): the server then gets the directory as
// an inherited descriptor and names it /proc/self/fd/3, which needs no right on the folders above it.
//
// Two profiles exist: Durable keeps every promise of PostgreSQL, Throwaway trades crash safety for speed in tests.
package postgres
