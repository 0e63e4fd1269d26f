package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// impure are packages with the world, time's flow or chance in them.
var impure = []string{
	"os", "os/exec", "os/signal", "net", "net/http", "context", "database/sql", "io/fs", "math/rand", "math/rand/v2",
	"crypto/rand", "log", "log/slog", "syscall", "path/filepath", "github.com/jackc/pgx/v5", "entgo.io/ent",
}

// clocks are the functions of package time that read the clock or wait for it.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// Impure finds I/O, clock, chance and context in the domain.
func Impure(tree *Tree) (found []Finding) {
	for _, file := range tree.Written() {
		if file.Test || !within(file.Dir, "domain") {
			continue
		}
		for _, spec := range imports(file) {
			if name := pathOf(spec); slices.Contains(impure, name) {
				found = append(found, Finding{file.Path, tree.line(spec.Pos()), file.Dir + " -> " + name,
					"the domain is pure, and this imports " + name})
			}
		}
		for _, at := range calls(file.AST, "time", clocks) {
			found = append(found, Finding{file.Path, tree.line(at.Pos()), file.Dir + " time",
				"the domain does not read the clock: pass the instant in"})
		}
	}
	return found
}

// OwnClock finds verbs and ledgers that read the process's clock: what is stored, and what is compared with it, is by
// the database's (tx.Tx.Now, tx.DB.Now).
func OwnClock(tree *Tree) (found []Finding) {
	for _, file := range tree.Written() {
		if file.Test || !within(file.Dir, "service") {
			continue
		}
		for _, at := range calls(file.AST, "time", []string{"Now"}) {
			found = append(found, Finding{file.Path, tree.line(at.Pos()), file.Path,
				"verbs go by the database's clock"})
		}
	}
	return found
}

// calls is every call of one of a package's functions, by the package's usual name.
func calls(in ast.Node, of string, names []string) (found []ast.Node) {
	ast.Inspect(in, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok && selects(call.Fun, of, names) {
			found = append(found, node)
		}
		return true
	})
	return found
}

func selects(expression ast.Expr, of string, names []string) bool {
	selector, ok := expression.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	left, ok := selector.X.(*ast.Ident)
	return ok && left.Name == of && slices.Contains(names, selector.Sel.Name)
}

var (
	// handles are what gives access to the database rather than a row of it.
	handles = []string{"Client", "Tx", "Open", "NewClient", "NewTxContext", "FromContext", "TxFromContext", "Debug",
		"Driver"}
	// reads are tx's ways to a statement.
	statements = []string{"Row", "Rows", "Query", "Optional", "Exec", "Tx"}
	// stored are methods of generated entities and builders that go to the database.
	stored = regexp.MustCompile(`^(Query[A-Z]\w*|SaveX?|ExecX?|OnlyX?|AllX?|FirstX?|CountX?|ForUpdate)$`)
	// sql is the beginning of a statement.
	sql = regexp.MustCompile("^[`\"]\\s*(SELECT|INSERT|UPDATE|DELETE|WITH|NOTIFY|LISTEN|CALL)\\b")
)

// translators are the packages that turn GraphQL into verbs and back.
func translator(file *File) bool {
	return within(file.Dir, "graph") && !file.Generated && !file.Test && file.AST != nil
}

// Reaching finds a graph package that reads or writes by itself instead of through a verb.
func Reaching(tree *Tree) (found []Finding) {
	for _, file := range tree.Files {
		if !translator(file) {
			continue
		}
		add := func(at token.Pos, text string) {
			found = append(found, Finding{file.Path, tree.line(at), file.Path + " " + strings.Fields(text)[0],
				text + ": only verbs read and write"})
		}
		for _, spec := range imports(file) {
			name := pathOf(spec)
			if strings.HasPrefix(name, "github.com/jackc/") || name == "database/sql" ||
				strings.HasPrefix(name, "entgo.io/") || within(strings.TrimPrefix(name, Module+"/"), "workers") {
				add(spec.Pos(), name+" is imported")
			}
		}
		ast.Inspect(file.AST, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.SelectorExpr:
				if selects(node, "db", handles) || selects(node, "tx", statements) {
					add(node.Pos(), fmt.Sprintf("%s.%s is used", node.X.(*ast.Ident).Name, node.Sel.Name))
				}
			case *ast.CallExpr:
				if method, ok := node.Fun.(*ast.SelectorExpr); ok && stored.MatchString(method.Sel.Name) {
					add(node.Pos(), "."+method.Sel.Name+"() is called")
				}
			case *ast.BasicLit:
				if node.Kind == token.STRING && sql.MatchString(node.Value) {
					add(node.Pos(), "SQL is written")
				}
			}
			return true
		})
	}
	return found
}

// appWords are names of apps, of their programs and of what runs them. None means anything to the
// platform: the adapter owns what an app is and what its parts are for.
var appWords = regexp.MustCompile(`(?i)slurm|munge|\bsinfo\b|\bsrun\b|\bsqueue\b|sbatch|scancel|rke2|kubernetes|\bk8s\b|kubelet|kubectl|\bhelm\b|jupyter|vllm|pytorch|hello-cluster|\bray\b`)

// neutral lists where no app's name may be written.
var neutral = []string{
	"domain", "ent/schema", "authz", "service", "graph", "workers", "server", "transport", "migrations", "internal/tx",
	"internal/adapterclient", "cmd/app-platform", "cmd/node-agent", "cmd/appctl", "sdk", "web/src",
}

// AppNames finds an app's name or role in what must work for every app: code, SQL, the SDL and the
// permission policy, comments included.
func AppNames(tree *Tree) (found []Finding) {
	for _, file := range tree.Files {
		above := func(dir string) bool { return within(file.Dir, dir) }
		if file.Test || file.Document() || !slices.ContainsFunc(neutral, above) {
			continue
		}
		for i, line := range strings.Split(string(file.Source), "\n") {
			if word := appWords.FindString(line); word != "" {
				found = append(found, Finding{file.Path, i + 1, file.Path + " " + strings.ToLower(word),
					fmt.Sprintf("%q is a word of an app: the platform knows no app", word)})
			}
		}
	}
	return found
}
