// Package migrations holds the database's versioned migrations, forward only, and applies them.
//
// Two kinds of file stand here in one order: tables and indexes, which internal/tools/migratediff
// writes from ent/schema, and guards (roles, policies, foreign keys, functions), which are written
// by hand because Ent has no word for them.
package migrations

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed *.sql bootstrap/roles.sql
var files embed.FS

// Roles are the login roles of the database, each under row-level security.
var Roles = []string{"app_api", "app_operator", "app_node", "app_worker"}

// migrationLock is the advisory lock that lets one process migrate at a time.
const migrationLock = 7305119001

// Hash names the state of the migrations: it changes with any byte of any file.
func Hash() string {
	sum := sha256.New()
	names, err := fs.Glob(files, "*.sql")
	names = append(names, "bootstrap/roles.sql")
	if err != nil {
		panic(err) // the pattern is constant
	}
	for _, name := range names {
		content, _ := files.ReadFile(name)
		fmt.Fprintf(sum, "%s %d\n", name, len(content))
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// Up makes the roles and applies every migration that is missing, as app_owner. dsn is an
// administrator's: a superuser, or a role that may create roles and owns the database.
func Up(ctx context.Context, dsn string) error {
	config, err := parse(dsn)
	if err != nil {
		return err
	}
	admin, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect as administrator: %w", err)
	}
	defer func() { _ = admin.Close(context.WithoutCancel(ctx)) }()
	if _, err := admin.Exec(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
		return fmt.Errorf("wait for other migrations: %w", err)
	}
	if err := prepare(ctx, admin, config); err != nil {
		return err
	}
	return apply(ctx, config)
}

// EnsureRoles makes the roles that the guards name, for tools that replay the files themselves.
// Roles belong to the whole server, so the lock is taken in one database for all of them.
func EnsureRoles(ctx context.Context, admin *pgx.Conn) error {
	statements, err := files.ReadFile("bootstrap/roles.sql")
	if err != nil {
		return err
	}
	if _, err := admin.Exec(ctx, string(statements)); err != nil {
		return fmt.Errorf("make the roles: %w", err)
	}
	return nil
}

// prepare makes the roles, gives them their passwords and hands the database to app_owner.
func prepare(ctx context.Context, admin *pgx.Conn, config *pgx.ConnConfig) error {
	if err := EnsureRoles(ctx, admin); err != nil {
		return err
	}
	database := pgx.Identifier{config.Database}.Sanitize()
	grants := []string{
		"GRANT app_owner TO current_user",
		"GRANT CREATE ON DATABASE " + database + " TO app_owner",
		"GRANT ALL ON SCHEMA public TO app_owner",
		"REVOKE CREATE ON SCHEMA public FROM PUBLIC",
	}
	for _, role := range append([]string{"app_owner"}, Roles...) {
		grants = append(grants, "GRANT CONNECT ON DATABASE "+database+" TO "+role)
		if password := rolePassword(config.Password, role); password != "" {
			grants = append(grants, fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", role, password))
		}
	}
	for _, grant := range grants {
		if _, err := admin.Exec(ctx, grant); err != nil {
			return fmt.Errorf("prepare the database: %w", err)
		}
	}
	return nil
}

// apply runs what is missing as app_owner, so that everything belongs to it.
func apply(ctx context.Context, config *pgx.ConnConfig) error {
	owner := config.Copy()
	owner.RuntimeParams["role"] = "app_owner"
	db := stdlib.OpenDB(*owner)
	defer func() { _ = db.Close() }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// parse reads an administrator's address. Of several hosts only one that takes writes is connected to.
func parse(dsn string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("database address: %w", err)
	}
	OnlyPrimary(&config.Config)
	return config, nil
}

// OnlyPrimary makes a configuration with several hosts connect only to one that takes writes, as
// target_session_attrs=read-write does, unless the address asks for something else.
func OnlyPrimary(config *pgconn.Config) {
	hosts := map[string]bool{net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))): true}
	for _, other := range config.Fallbacks {
		hosts[net.JoinHostPort(other.Host, strconv.Itoa(int(other.Port)))] = true
	}
	if len(hosts) > 1 && config.ValidateConnect == nil {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
}

// RoleDSN is the address of the same database for one of its login roles. The role's password
// is derived from the administrator's, so that one secret configures them all; without one (a
// socket that trusts) there is none. The hosts stay as they are, however many.
func RoleDSN(dsn, role string) (string, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "", fmt.Errorf("database address: %w", err)
	}
	password := rolePassword(config.Password, role)
	scheme, rest, isURL := strings.Cut(dsn, "://")
	if !isURL {
		return fmt.Sprintf("%s user=%s password='%s'", dsn, role, password), nil
	}
	// Hosts are cut out by hand: a list of them with ports is no URL to the standard library.
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	hosts := rest[strings.LastIndex(rest[:end], "@")+1 : end]
	tail, err := url.Parse("postgres://host" + rest[end:])
	if err != nil {
		return "", fmt.Errorf("database address: %w", errors.Unwrap(err))
	}
	login := url.User(role)
	if password != "" {
		login = url.UserPassword(role, password)
	}
	query := tail.Query()
	query.Del("user")
	query.Del("password")
	tail.RawQuery = query.Encode()
	return scheme + "://" + login.String() + "@" + hosts + strings.TrimPrefix(tail.String(), "postgres://host"), nil
}

func rolePassword(secret, role string) string {
	if secret == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("app-platform role " + role))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
