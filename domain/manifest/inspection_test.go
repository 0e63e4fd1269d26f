package manifest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/manifest"
)

func looking() *manifest.Manifest {
	return &manifest.Manifest{Inspections: []manifest.Inspection{
		{Name: "jobs", Command: []string{"squeue", "--json", "--job={job}", "--state", "{state}"}, User: "nobody",
			Arguments: []manifest.InspectionArgument{{Name: "job", Type: "integer"},
				{Name: "state", Type: "choice", Values: []string{"RUNNING", "PENDING"}}}},
		{Name: "log", Command: []string{"tail", "{name}"},
			Arguments: []manifest.InspectionArgument{{Name: "name", Type: "word"}}},
	}}
}

func TestOnlyWhatTheManifestNamesIsAnInspection(t *testing.T) {
	t.Parallel()
	m := looking()
	name, ok := m.Inspects([]string{"squeue", "--json", "--job=12", "--state", "PENDING"}, "nobody")
	require.True(t, ok)
	require.Equal(t, "jobs", name)
	_, ok = m.Inspects([]string{"tail", "job-7.out"}, "")
	require.True(t, ok)
	for what, one := range map[string]struct {
		user    string
		command []string
	}{
		"another program":     {"nobody", []string{"scancel", "--json", "--job=12", "--state", "PENDING"}},
		"one argument more":   {"", []string{"tail", "a", "b"}},
		"none at all":         {"", nil},
		"another user":        {"", []string{"squeue", "--json", "--job=12", "--state", "PENDING"}},
		"an option as a word": {"", []string{"tail", "--follow"}},
		"a path":              {"", []string{"tail", "../../etc/shadow"}},
		"a shell's words":     {"", []string{"tail", "a;reboot"}},
		"a new line":          {"", []string{"tail", "a\nb"}},
		"no number":           {"nobody", []string{"squeue", "--json", "--job=1;id", "--state", "PENDING"}},
		"no choice":           {"nobody", []string{"squeue", "--json", "--job=1", "--state", "PENDING2"}},
		"an empty value":      {"", []string{"tail", ""}},
		"the placeholder":     {"", []string{"tail", "{name}"}},
	} {
		_, ok := m.Inspects(one.command, one.user)
		require.False(t, ok, what)
	}
}

// An adapter chooses an argument's value, and nothing else of the command: least of all the program that runs.
func TestAnInspectionsArgumentsFitItsCommand(t *testing.T) {
	t.Parallel()
	full, err := os.ReadFile("testdata/full.json")
	require.NoError(t, err)
	const word, choice = `"arguments": [{"name": "x", "type": "word"}]`, `"arguments": [{"name": "x", "type": "choice"`
	for inspections, path := range map[string]string{
		`{"name": "a", "command": ["date"]}`:                                                "",
		`{"name": "a", "command": ["tail", "{x}"], ` + word + `}`:                           "",
		`{"name": "a", "command": ["list", "--at={x}"], ` + choice + `, "values": ["A"]}]}`: "",
		`{"name": "a", "command": ["list", "{x}"], ` + choice + `, "values": []}]}`:         "inspections.0.arguments",
		`{"name": "a", "command": ["list", "{x}"], ` + choice + `}]}`:                       "inspections.0.arguments",
		`{"name": "a", "command": ["{x}"], ` + word + `}`:                                   "inspections.0.command",
		`{"name": "a", "command": ["/bin/{x}", "x"], ` + word + `}`:                         "inspections.0.command",
		`{"name": "a", "command": ["tail", "x"], ` + word + `}`:                             "inspections.0.arguments",
		`{"name": "a", "command": ["date"]}, {"name": "a", "command": ["who"]}`:             "inspections.1.name",
	} {
		document := strings.Replace(string(full), `"docs":`, `"inspections": [`+inspections+`], "docs":`, 1)
		_, err := manifest.Parse([]byte(document))
		if path == "" {
			require.NoError(t, err, inspections)
			continue
		}
		require.True(t, fault.Is(err, fault.ManifestInvalid), inspections)
		require.Len(t, fault.From(err).Reasons, 1, inspections)
		require.Equal(t, path, fault.From(err).Reasons[0].Path, inspections)
	}
}
