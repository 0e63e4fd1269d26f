package e2e_test

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// walk is a document, and what it takes to do as it says.
type walk struct {
	file   string
	staff  []string                        // parts of lines that the platform's staff runs
	by     map[string]string               // parts of lines that others run, and who: who is nobody yet, or a person
	left   map[string]string               // parts of lines that are not run, with the reason
	stands map[string]string               // words of the document, and what they stand for here
	goesOn []string                        // parts of lines that are programs: they run until the walk ends
	setUp  func(*walker)                   // makes what the document says is there
	makes  map[string]func(*walker) string // makes what a placeholder stands for, by its prefix
}

// walker is a person at a terminal, with the values for a document's placeholders.
type walker struct {
	t       *testing.T
	ctx     context.Context
	home    string // what the person's command line keeps
	dir     string // where commands run
	bin     string // the programs
	project string
	known   map[string]string // ids by their prefix, and words in capitals
	seen    map[string]string // ids that commands of this walk have printed, the last of each prefix
	stands  map[string]string
	said    string // all that commands of this walk have printed
	makes   map[string]func(*walker) string
	demo    string          // the instance
	waits   map[string]bool // its operations that wait for work

	people    map[string]string // users, by what the walk calls them
	variables []string          // more of the environment
	gone      bool              // the walk deletes its project
}

// TestGuidesAreTrueToTheLetter walks the documents: those that speak of one running cluster one after the other, and
// beside them each of the others in a project of its own.
func TestGuidesAreTrueToTheLetter(t *testing.T) {
	needsRoot(t)
	t.Run("a cluster", func(t *testing.T) {
		t.Parallel()
		w := newWalker(t, "demo")
		w.cluster()
		t.Run("wrong input", func(t *testing.T) {
			walked := *w
			walked.t = t
			walked.refuses()
		})
		for _, one := range walks {
			t.Run(filepath.Base(one.file), func(t *testing.T) {
				walked := *w
				walked.t = t
				walked.walk(one)
			})
		}
	})
	for _, one := range apart {
		t.Run(one.name(), func(t *testing.T) {
			t.Parallel()
			newWalker(t, one.name()).walk(one)
		})
	}
}

// name is what a walk's project is called.
func (one walk) name() string {
	base := strings.TrimSuffix(filepath.Base(one.file), ".md")
	if base == "README" {
		base = strings.ToLower(filepath.Base(filepath.Join("/readme", filepath.Dir(one.file))))
	}
	return base
}

// newWalker gives a walk a project of its own, which Dana administers.
func newWalker(t *testing.T, project string) *walker {
	t.Helper()
	bin, err := filepath.Abs("../../bin")
	require.NoError(t, err)
	w := &walker{t: t, ctx: bounded(t), home: t.TempDir(), dir: t.TempDir(), bin: bin,
		waits: make(map[string]bool), people: map[string]string{"dana": shared.Demo.AdminID,
			"staff": shared.Demo.OperatorID}}
	made, err := gql.CreateProject(w.ctx, shared.Operator,
		gql.CreateProjectInput{TenantId: shared.Demo.TenantID, Slug: project,
			DisplayName: strings.ToUpper(project[:1]) + project[1:], IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	w.project = made.CreateProject.Id
	w.t.Cleanup(func() { w.ended() })
	for _, person := range []string{shared.Demo.AdminID, shared.Demo.OperatorID} {
		_, err = gql.GrantRole(w.ctx, shared.Operator, gql.GrantRoleInput{SubjectId: person, Role: "project_admin",
			ProjectId: w.project, Reason: "end-to-end test"})
		require.NoError(t, err)
	}
	_, err = gql.GrantEntitlement(w.ctx, shared.Operator, w.project, "hello-cluster", nil, nil, "")
	require.NoError(t, err)
	w.known = map[string]string{"prj": w.project, "ten": shared.Demo.TenantID}
	return w
}

// walk runs a document's blocks, and requires that each line that is left out is there.
func (w *walker) walk(one walk) {
	w.t.Helper()
	w.seen, w.stands, w.makes = make(map[string]string), make(map[string]string), one.makes
	maps.Copy(w.stands, one.stands)
	if one.setUp != nil {
		one.setUp(w)
	}
	left, ran := make(map[string]bool), 0
	for _, block := range blocksOf(w.t, one.file) {
		var script []string
		who := ""
		w.freshTerminals()
		w.settled()
		flush := func() {
			w.runs(who, script)
			ran += len(script)
			script = nil
		}
		for _, line := range block {
			if key := part(line, one.left); key != "" {
				left[key] = true
				continue
			}
			by := one.person(line)
			if by != who || w.unknown(line) || among(line, one.goesOn) {
				flush() // the line may be of what those before it make
				who = by
			}
			if among(line, one.goesOn) {
				w.starts(who, w.filled(line))
				ran++
				continue
			}
			script = append(script, w.filled(line))
		}
		flush()
	}
	require.NotZero(w.t, ran)
	for key := range one.left {
		require.True(w.t, left[key], "the document has no line with %q any more: take the exception away", key)
	}
}

// person is who runs a line: as the longest part of it says, or Dana.
func (one walk) person(line string) string {
	who, longest := "dana", ""
	for part, by := range one.by {
		if strings.Contains(line, part) && len(part) > len(longest) {
			who, longest = by, part
		}
	}
	if longest == "" && among(line, one.staff) {
		return "staff"
	}
	return who
}

// unknown reports whether a line has a placeholder whose value lines before it may create.
func (w *walker) unknown(line string) bool {
	for _, found := range placeholder.FindAllStringSubmatch(line, -1) {
		if w.known[kindOf(found[1])] == "" {
			return true
		}
	}
	return false
}

// id returns the value for placeholders of a prefix: what the walk knows, or creates, or has seen last.
func (w *walker) id(prefix string) string {
	w.t.Helper()
	if w.known[prefix] != "" {
		return w.known[prefix]
	}
	return cmp.Or(w.made(prefix), w.seen[prefix])
}

// filled returns a line with the values of its placeholders and of the document's words.
func (w *walker) filled(line string) string {
	w.t.Helper()
	for word, id := range w.known {
		if strings.ToUpper(word) == word {
			line = wholeWord(word).ReplaceAllLiteralString(line, id)
		}
	}
	line = placeholder.ReplaceAllStringFunc(line, func(found string) string {
		id := w.id(kindOf(placeholder.FindStringSubmatch(found)[1]))
		require.NotEmpty(w.t, id, "%q needs an id of a kind that the walk does not have", line)
		return id
	})
	for _, word := range slices.SortedFunc(maps.Keys(w.stands), longestFirst) {
		line = strings.ReplaceAll(line, word, w.stands[word])
	}
	return line
}

func longestFirst(a, b string) int { return len(b) - len(a) }

// made creates the value of a placeholder, where a document has not created one before.
func (w *walker) made(prefix string) string {
	w.t.Helper()
	if do := w.makes[prefix]; do != nil {
		return do(w)
	}
	switch prefix {
	case "op":
		return w.waitingDrain()
	case "sa":
		if w.says("dana", "appctl admin service-account list -q") == "" {
			return w.says("dana", "appctl admin service-account create walker --permission project.read -q")
		}
		return w.newest("appctl admin service-account list -q")
	case "key":
		return w.says("dana", "appctl admin key create "+w.newest("appctl admin service-account list -q")+
			" -q | sed -E 's/^gpu_sa_([0-9a-z]+)_.*/key_\\1/'")
	}
	return ""
}

// saw is the first of what commands of this walk have printed that a pattern finds.
func (w *walker) saw(pattern string) string {
	w.t.Helper()
	found := regexp.MustCompile(pattern).FindString(w.said)
	require.NotEmpty(w.t, found, pattern)
	return found
}

// newest is the last id that a command lists.
func (w *walker) newest(command string) string {
	w.t.Helper()
	ids := strings.Fields(w.says("dana", command))
	require.NotEmpty(w.t, ids, command)
	return ids[len(ids)-1]
}
