package manifest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

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
