package columns_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/archtest/columns"
)

// schema has two tables with a column of the same name and of different types.
var schema = columns.Schema{
	"member":     {"id": "ids.ID", "status": "lifecycle.MemberStatus", "health": "lifecycle.Health", "note": ""},
	"allocation": {"id": "ids.ID", "status": "lifecycle.AllocationStatus", "shape": "lifecycle.Shape", "note": ""},
}

var words = map[string][]string{
	"lifecycle.MemberStatus":     {"PENDING", "ACTIVE", "REMOVED"},
	"lifecycle.AllocationStatus": {"READY", "RELEASED"},
	"lifecycle.Health":           {"HEALTHY", "UNKNOWN"},
	"lifecycle.Shape":            {"SHARED", "WHOLE"},
}

func TestProblemFindsStatesThatTheColumnCannotHave(t *testing.T) {
	t.Parallel()
	for statement, problems := range map[string]int{
		// by alias
		`SELECT m.id FROM member m WHERE m.status = 'ACTIVE'`:                                         0,
		`SELECT m.id FROM member m WHERE m.status = 'READY'`:                                          1,
		`SELECT m.id FROM member AS m JOIN allocation a ON a.id = m.id AND a.status = 'ACTIVE'`:       1,
		`SELECT m.id FROM member m, allocation a WHERE a.status <> 'READY' AND m.status <> 'REMOVED'`: 0,
		`SELECT id FROM member WHERE member.status = 'READY'`:                                         1,
		`SELECT id FROM public.member WHERE member.status = 'READY'`:                                  1,
		`DELETE FROM member m USING allocation a WHERE a.id = m.id AND a.status = 'PENDING'`:          1,
		`INSERT INTO member (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET note = ''
			WHERE excluded.status = 'READY'`: 1,
		// without one
		`SELECT id FROM member WHERE status IN ('ACTIVE', 'PENDING')`:                                          0,
		`SELECT id FROM member WHERE status NOT IN ('ACTIVE', 'READY')`:                                        1,
		`SELECT id FROM member m JOIN allocation a USING (id) WHERE health = 'READY'`:                          1,
		`UPDATE allocation SET status = 'REMOVED' WHERE id = $1`:                                               1,
		`UPDATE allocation SET status = $2::text, note = CASE WHEN $2::text = 'ACTIVE' THEN '' END`:            1,
		`SELECT id FROM member WHERE id IN (SELECT id FROM allocation WHERE status = 'ACTIVE')`:                1,
		`SELECT id FROM member WHERE id IN (SELECT id FROM allocation WHERE shape = 'WHOLE' AND health = 'X')`: 1,
		`SELECT id FROM member WHERE status = 'ACTIVE' UNION SELECT id FROM allocation WHERE status = 'READY'`: 0,
		`SELECT id FROM member WHERE status = 'READY' UNION SELECT id FROM allocation WHERE status = 'READY'`:  1,
		// in other forms
		`SELECT id FROM member WHERE status = ANY ('{ACTIVE,PENDING}')`:                                0,
		`SELECT id FROM member WHERE status = ANY ('{ACTIVE,READY}')`:                                  1,
		`SELECT id FROM member WHERE status <> ALL (ARRAY['ACTIVE', 'READY'])`:                         1,
		`SELECT id FROM member WHERE status IS DISTINCT FROM 'READY'`:                                  1,
		`SELECT id FROM member WHERE status IS NOT DISTINCT FROM 'ACTIVE'`:                             0,
		`SELECT id FROM member WHERE 'READY' = status`:                                                 1,
		`SELECT id FROM member WHERE (((status)::text = 'READY'::text) AND (health IS NULL))`:          1,
		`SELECT id FROM member WHERE coalesce(status, 'PENDING') = 'READY'`:                            1,
		`SELECT CASE status WHEN 'READY' THEN 1 ELSE 0 END FROM member`:                                1,
		`UPDATE member SET status = CASE WHEN status = 'ACTIVE' THEN 'REMOVED' ELSE 'PENDING' END`:     0,
		`UPDATE member SET status = CASE WHEN status = 'ACTIVE' THEN 'RELEASED' ELSE status END`:       1,
		`UPDATE member SET status = CASE WHEN note = '' THEN CASE WHEN true THEN 'X' END ELSE 'Y' END`: 1,
		// what is not a state of the column
		`SELECT id FROM member WHERE status IN (SELECT h.s FROM held h WHERE h.x IN ('READY'))`: 0,
		`SELECT id FROM member WHERE $1 = $2 AND $2 = $1 AND $1 = 'READY'`:                      0,
		`SELECT id FROM member WHERE note ->> 'READY' = status AND note = 'what you like'`:      0,
		`SELECT id FROM member WHERE status = 'READY' || $1 -- status = 'READY'`:                0,
	} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			require.Len(t, problemsOf(statement), problems)
		})
	}
}

func TestProblemTakesAnyTypesStatesWhereTheTableIsNotKnown(t *testing.T) {
	t.Parallel()
	for statement, problems := range map[string]int{
		`SELECT x.id FROM (SELECT * FROM member) x WHERE x.status = 'READY'`:                    0,
		`SELECT x.id FROM (SELECT * FROM member) x WHERE x.status = 'REDY'`:                     1,
		`SELECT x.id FROM (SELECT * FROM member) x WHERE x.status IN ('READY', 'ACTIVE')`:       1,
		`WITH member AS (SELECT 1) SELECT FROM member WHERE status = 'READY'`:                   0,
		`SELECT FROM other.member WHERE status = 'READY'`:                                       0,
		`SELECT FROM platform.held($1) h WHERE h.status = 'READY'`:                              0,
		`SELECT FROM platform.held($1) WITH ORDINALITY h JOIN member m ON m.status = 'READY'`:   1,
		` FROM x) q JOIN member m ON m.status = 'READY'`:                                        1,
		`status = 'READY') q JOIN member m ON true WHERE q.status = 'READY'`:                    0,
		`' AND status = 'REDY' ORDER BY id`:                                                     1,
		`SELECT FROM member WHERE note = 'NOTHING'`:                                             1,
		`SELECT FROM member WHERE extract(epoch FROM now()) > 1 AND status IS DISTINCT FROM $1`: 0,
	} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			require.Len(t, problemsOf(statement), problems)
		})
	}
	require.Equal(t, []string{"m.status is of type lifecycle.MemberStatus, which has no 'READY'"},
		problemsOf(`SELECT FROM member m WHERE m.status = 'READY'`))
}

func problemsOf(statement string) (problems []string) {
	for _, comparison := range columns.Comparisons(statement, schema) {
		if problem := comparison.Problem(words); problem != "" {
			problems = append(problems, problem)
		}
	}
	return problems
}

// declared is a schema with each way in which a column is declared.
const declared = `package schema
func id(name, comment string) ent.Field { return field.String(name).GoType(ids.ID("")).Comment(comment) }
func created() ent.Field { return field.Time("created_at").Default(now) }
type identified struct{ mixin.Schema }
func (identified) Fields() []ent.Field { return []ent.Field{id("id", "its own")} }
type Member struct{ ent.Schema }
func (Member) Annotations() []schema.Annotation { return append(table("member"), Pipelined{}) }
func (Member) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }
func (Member) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("status").GoType(lifecycle.MemberStatus("")).Default(string(lifecycle.MemberPending)),
		field.Enum("class").GoType(isolation.Class("")).Optional(),
		field.Int("number").StorageKey("seq"), created(), field.JSON("walls", &isolation.Walls{}),
	}
}
func (Member) Indexes() []ent.Index {
	return []ent.Index{index.Fields("id").Annotations(entsql.IndexWhere("((status)::text = " + "'READY'::text)"))}
}
type Nameless struct{ ent.Schema }
func (Nameless) Annotations() []schema.Annotation { return nil }
`

func TestReadFindsTheTypesOfColumns(t *testing.T) {
	t.Parallel()
	files := []*ast.File{parsed(t, declared)}
	schema, missing := columns.Read(files, words)
	require.Equal(t, columns.Schema{"member": {"id": "ids.ID", "status": "lifecycle.MemberStatus", "seq": "",
		"class": "isolation.Class", "created_at": "", "walls": ""}}, schema)
	require.Equal(t, []string{"Nameless", "isolation.Class"}, missing)
	var problems []string
	columns.Conditions(files, func(_ token.Pos, statement string) { problems = problemsOf(statement) })
	require.Len(t, problems, 1)
}

func TestReadFindsTheStatesOfTheHouse(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../../ent/schema/*.go")
	require.NoError(t, err)
	var files []*ast.File
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	house, _ := columns.Read(files, nil)
	require.Greater(t, len(house), 30)
	require.Equal(t, "lifecycle.MemberStatus", house["member"]["status"])
	require.Equal(t, "lifecycle.NodeStatus", house["compute_node"]["status"])
	require.Equal(t, "lifecycle.Stage", house["promotion"]["to_stage"])
	require.Equal(t, "ids.ID", house["operation"]["tenant_id"])
}

func TestWordsAreTheConstantsOfEachType(t *testing.T) {
	t.Parallel()
	words := columns.Words([]*ast.File{
		parsed(t, "package lifecycle\nconst (\n\tA Stage = \"A\"\n\tB Stage = \"B\"\n\tlimit = 3\n)\n"+
			"const Run = Kind(nodetask.Run)\nconst plain = \"PLAIN\"\n"),
		parsed(t, "package nodetask\nconst Run Kind = \"RUN\"\n"),
	})
	require.Equal(t, map[string][]string{"lifecycle.Stage": {"A", "B"}, "lifecycle.Kind": {"RUN"},
		"nodetask.Kind": {"RUN"}}, words)
}

func TestTextsAddsUp(t *testing.T) {
	t.Parallel()
	file := parsed(t, "package x\nconst where = ` WHERE ` + `id = $1`\n"+
		"func f(n string) string { return `SELECT ` + n + ` FROM x` + where + g(`alone`) }\n")
	named := columns.Named{}
	named.Add("x", file)
	var texts []string
	columns.Texts(file, named["x"], func(_ token.Pos, text string) { texts = append(texts, text) })
	require.Equal(t, []string{" WHERE id = $1", "SELECT  _elsewhere  FROM x WHERE id = $1 _elsewhere ", "alone"},
		texts)
}

func TestFunctionsKeepsTheNewest(t *testing.T) {
	t.Parallel()
	functions := columns.Functions{}
	functions.Add("1.sql", "-- +goose Up\nCREATE FUNCTION platform.f(a text) RETURNS text AS $$\nold\n$$;\n")
	functions.Add("2.sql", "-- +goose Up\nCREATE OR REPLACE FUNCTION platform.f(a text) RETURNS text\n"+
		"LANGUAGE sql AS $f$ new $f$;\n-- +goose Down\nCREATE OR REPLACE FUNCTION platform.f(a text) AS $$ old $$;\n")
	require.Equal(t, columns.Functions{"platform.f": {Path: "2.sql", Line: 3, Body: " new "}}, functions)
}

func parsed(t *testing.T, source string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	return file
}
