package telemetry

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// PoolWait is the name of the span of the wait for a connection. Without it a statement that waits for the pool looks
// like one that is slow.
const PoolWait = "pool wait"

// Statements returns the tracer of a database's connections; nil when telemetry is off. A statement has a span only
// within a recorded span, so that neither polls nor open subscriptions make any. A span is named by the kind of
// statement and the first table or function: neither SQL nor arguments are in it.
func (s *Source) Statements() pgx.QueryTracer {
	if s.off {
		return nil
	}
	return statements{s.Tracer()}
}

// statements implements pgx's and its pool's tracers.
type statements struct{ tracer trace.Tracer }

var (
	_ pgx.BatchTracer       = statements{}
	_ pgx.CopyFromTracer    = statements{}
	_ pgxpool.AcquireTracer = statements{}
)

// TraceQueryStart implements pgx.QueryTracer.
func (s statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return s.start(ctx, data.SQL)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (statements) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	end(ctx, data.Err)
}

// TraceBatchStart implements pgx.BatchTracer.
func (s statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return s.open(ctx, "batch")
}

// TraceBatchQuery implements pgx.BatchTracer. The span is from when the answer began to be read.
func (s statements) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	if opened(ctx) == nil {
		return
	}
	end(s.start(ctx, data.SQL, trace.WithTimestamp(data.ReadStartTime)), data.Err)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (statements) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	end(ctx, data.Err)
}

// TraceCopyFromStart implements pgx.CopyFromTracer.
func (s statements) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn,
	data pgx.TraceCopyFromStartData) context.Context {
	return s.open(ctx, "COPY "+strings.Join(data.TableName, "."))
}

// TraceCopyFromEnd implements pgx.CopyFromTracer.
func (statements) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromEndData) {
	end(ctx, data.Err)
}

// TraceAcquireStart implements pgxpool.AcquireTracer.
func (s statements) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool,
	_ pgxpool.TraceAcquireStartData) context.Context {
	return s.open(ctx, PoolWait)
}

// TraceAcquireEnd implements pgxpool.AcquireTracer.
func (statements) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, data pgxpool.TraceAcquireEndData) {
	end(ctx, data.Err)
}

// start opens the span of a statement.
func (s statements) start(ctx context.Context, sql string, options ...trace.SpanStartOption) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return s.open(ctx, "")
	}
	verb, target := Statement(sql)
	attributes := []attribute.KeyValue{attribute.String("db.operation.name", verb)}
	if target != "" {
		attributes = append(attributes, attribute.String("db.collection.name", target))
	}
	return s.open(ctx, strings.TrimSpace(verb+" "+target), append(options, trace.WithAttributes(attributes...))...)
}

// spanKey is where a statement's own span is, apart from the one that it is within: the end of a statement without a
// span must not end the caller's.
type spanKey struct{}

// opened returns the span that open put in ctx; nil for none.
func opened(ctx context.Context) trace.Span {
	span, _ := ctx.Value(spanKey{}).(trace.Span)
	return span
}

// open opens a span within one that is recorded.
func (s statements) open(ctx context.Context, name string, options ...trace.SpanStartOption) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return context.WithValue(ctx, spanKey{}, nil)
	}
	options = append(options, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("db.system.name", "postgresql")))
	ctx, span := s.tracer.Start(ctx, name, options...)
	return context.WithValue(ctx, spanKey{}, span)
}

// end ends the span that open opened. Of an error it has PostgreSQL's code alone: messages quote values.
func end(ctx context.Context, err error) {
	span := opened(ctx)
	if span == nil {
		return
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		code := "connection"
		var refused *pgconn.PgError
		switch {
		case errors.As(err, &refused):
			code = refused.Code
		case ctx.Err() != nil:
			code = "canceled"
		}
		span.SetAttributes(attribute.String("error.type", code))
		span.SetStatus(codes.Error, code)
	}
	span.End()
}

// verbs are the kinds of statement that spans are named by.
var verbs = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "BEGIN", "COMMIT", "ROLLBACK",
	"SAVEPOINT", "RELEASE", "SET", "LOCK", "LISTEN", "UNLISTEN", "NOTIFY"}

// target finds a statement's first table, or the function that it calls.
var target = regexp.MustCompile(`(?i)\b(?:from|into|update)\s+([a-z_][a-z0-9_.]{0,62}|"[a-z_][a-z0-9_]{0,62}")` +
	`|^\s*select\s+([a-z_][a-z0-9_.]{0,62})\(`)

// Statement returns the kind of an SQL statement and its first table or function, which name its span; "statement" for
// a kind that is not known, and "" without a table or function.
func Statement(sql string) (verb, name string) {
	sql = strings.TrimSpace(sql)
	word, _, _ := strings.Cut(sql, " ")
	if fields := strings.Fields(word); len(fields) > 0 {
		word = fields[0]
	}
	word = strings.ToUpper(strings.TrimRight(word, ";"))
	if !slices.Contains(verbs, word) {
		return "statement", ""
	}
	found := target.FindStringSubmatch(sql)
	if found == nil {
		return word, ""
	}
	return word, strings.Trim(found[1]+found[2], `"`)
}
