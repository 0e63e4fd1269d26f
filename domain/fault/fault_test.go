package fault

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with the file, or writes it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "run go test ./domain/fault -update and read the difference")
}

func TestCatalogueIsTheGoldenOne(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, entry := range Catalogue() {
		fmt.Fprintf(&out, "%-26s %3d  %-5t  %s\n", entry.Code, entry.HTTP, entry.Retryable, entry.Text)
	}
	golden(t, "testdata/catalogue.golden", out.String())
}

func TestDocumentationListsTheCatalogue(t *testing.T) {
	t.Parallel()
	golden(t, "../../docs/errors.md", document())
}

// document is docs/errors.md.
func document() string {
	var out strings.Builder
	out.WriteString(`# Errors

Written by ` + "`go test ./domain/fault -update`" + ` from the catalogue in ` + "`domain/fault/catalogue.go`" + `.

Every error carries the same envelope, in GraphQL under ` + "`extensions`" + `:

` + "```json" + `
{
  "code": "CONFIG_INVALID",
  "correlation_id": "c-01jd3v6x2c",
  "retryable": false,
  "reasons": [{"code": "BAD_VALUE", "message": "must match the pattern ^[a-z]+$", "path": "input.config.name"}]
}
` + "```" + `

` + "`retryable`" + ` says whether the same request may succeed later, unchanged; an error can differ from this
table. A code never changes its meaning, and new ones may be added: treat one that you do not know by its HTTP status
or as INTERNAL. Where the installation sends traces, an error of a request has its "trace_id" beside the correlation id.

## Codes

| code | HTTP | retryable | meaning |
|---|---|---|---|
`)
	rows(&out, func(e Entry) bool { return e.HTTP != 0 })
	out.WriteString("\n## Codes that appear only in `reasons`\n\n| code | meaning |\n|---|---|\n")
	rows(&out, func(e Entry) bool { return e.HTTP == 0 })
	return out.String()
}

// rows writes the table's rows of the entries kept.
func rows(out io.Writer, keep func(Entry) bool) {
	for _, e := range Catalogue() {
		switch {
		case !keep(e):
		case e.HTTP == 0:
			fmt.Fprintf(out, "| `%s` | %s |\n", e.Code, e.Text)
		default:
			fmt.Fprintf(out, "| `%s` | %d | %s | %s |\n", e.Code, e.HTTP,
				map[bool]string{true: "yes", false: "no"}[e.Retryable], e.Text)
		}
	}
}

func TestEveryCodeIsDescribedOnceAndWellFormed(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[A-Z]+(_[A-Z]+)*$`)
	seen := map[Code]bool{}
	for _, entry := range Catalogue() {
		require.False(t, seen[entry.Code], entry.Code)
		seen[entry.Code] = true
		require.Regexp(t, form, string(entry.Code))
		require.True(t, strings.HasSuffix(entry.Text, "."), entry.Code)
		require.True(t, entry.Code.Known())
		require.Equal(t, entry, Lookup(entry.Code))
		if entry.HTTP != 0 {
			require.GreaterOrEqual(t, entry.HTTP, 400)
		}
	}
}

func TestEveryCodeOfTheSourceIsInTheCatalogue(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("catalogue.go")
	require.NoError(t, err)
	constants := regexp.MustCompile(`(?m)^\t\w+\s+Code = "([A-Z_]+)"$`).FindAllStringSubmatch(string(source), -1)
	require.Len(t, constants, len(Catalogue()))
	for _, constant := range constants {
		require.True(t, Code(constant[1]).Known(), constant[1])
	}
}

func TestUnknownCodeCountsAsInternal(t *testing.T) {
	t.Parallel()
	require.False(t, Code("NEVER_HEARD").Known())
	require.Equal(t, 500, Lookup("NEVER_HEARD").HTTP)
	require.False(t, New("NEVER_HEARD", "x").CanRetry())
	require.Equal(t, 500, New(BadValue, "a code of reasons at the top").HTTPStatus())
}

func TestFaultKeepsItsCauseForTheLogAlone(t *testing.T) {
	t.Parallel()
	f := New(Unavailable, "the database is away").Because(io.ErrUnexpectedEOF)
	require.ErrorIs(t, f, io.ErrUnexpectedEOF)
	require.Equal(t, "the database is away", f.Message)
	require.Equal(t, "UNAVAILABLE: the database is away: unexpected EOF", f.Error())
	require.ErrorIs(t, New(Internal, "read: %w", io.EOF), io.EOF)
	require.Nil(t, New(Internal, "plain").Unwrap())
}

func TestReasonsNameTheFieldAndAreBounded(t *testing.T) {
	t.Parallel()
	f := New(InvalidArgument, "count is too large").At("input.count")
	require.Equal(t, []Reason{{InvalidArgument, "count is too large", "input.count"}}, f.Reasons)
	require.Equal(t, "INVALID_ARGUMENT: count is too large (at input.count)", f.Error())
	require.Contains(t, f.With(Reason{BadValue, "not even", "x"}).Error(), "; not even (at x)")
	require.Len(t, f.With(make([]Reason, 500)...).Reasons, MaxReasons)
}

func TestBuildersLeaveTheOriginalAlone(t *testing.T) {
	t.Parallel()
	base := New(Conflict, "busy")
	first, second := base.At("a"), base.At("b")
	base.With(Reason{Path: "c"}).Retry(false)
	require.Empty(t, base.Reasons)
	require.True(t, base.CanRetry())
	require.False(t, base.Retry(false).CanRetry())
	require.Equal(t, "a", first.Reasons[0].Path)
	require.Equal(t, "b", second.Reasons[0].Path)
	x := first.At("x")
	first.At("y")
	require.Equal(t, "x", x.Reasons[1].Path)
}

func TestFaultIsFoundInAChain(t *testing.T) {
	t.Parallel()
	inner := New(NotFound, "gone")
	wrapped := fmt.Errorf("load: %w", inner)
	found, ok := As(wrapped)
	require.True(t, ok)
	require.Same(t, inner, found)
	require.True(t, Is(wrapped, NotFound))
	require.False(t, Is(New(Internal, "outer").Because(inner), NotFound),
		"the outermost fault is what the caller is told")
	require.False(t, Is(nil, NotFound))
	_, ok = As(io.EOF)
	require.False(t, ok)
}

func TestAnyOtherErrorBecomesInternalWithoutItsText(t *testing.T) {
	t.Parallel()
	require.Nil(t, From(nil))
	secret := errors.New(`pq: relation "users" does not exist`)
	f := From(fmt.Errorf("query: %w", secret))
	require.Equal(t, Internal, f.Code)
	require.NotContains(t, f.Message, "users")
	require.ErrorIs(t, f, secret)
	known := New(Conflict, "busy")
	require.Same(t, known, From(fmt.Errorf("verb: %w", known)))
}

func TestNoSuchTellsNothingOfTheObject(t *testing.T) {
	t.Parallel()
	require.Equal(t, NoSuch(), NoSuch())
	require.Equal(t, 404, NoSuch().HTTPStatus())
}

func TestPrefixedPutsTheInputsNameBeforeEveryPath(t *testing.T) {
	t.Parallel()
	reasons := []Reason{{Path: "config.a"}, {Path: ""}}
	require.Equal(t, []Reason{{Path: "input.config.a"}, {Path: "input"}}, Prefixed("input", reasons))
	require.Equal(t, reasons, Prefixed("", reasons))
	require.Equal(t, "config.a", reasons[0].Path)
}
