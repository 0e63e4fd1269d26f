package adaptertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// Inspection is a command that an adapter runs while it only reads, as its manifest names it under "inspections": in
// observations, plans and actions of risk "read".
type Inspection struct {
	// Name is unique in the manifest.
	Name string `json:"name"`
	// Command is the program and its arguments; an argument's name in braces, as in "{job}", is replaced by its value.
	Command []string `json:"command"`
	// Arguments are the values that differ from call to call.
	Arguments []InspectionArgument `json:"arguments,omitempty"`
	// User is the member's user that runs it; empty for root.
	User string `json:"user,omitempty"`
}

// InspectionArgument is a typed value of an inspection's command.
type InspectionArgument struct {
	// Name is the name that the command has in braces.
	Name string `json:"name"`
	// Type is "integer", "word" or "choice".
	Type string `json:"type"`
	// Values are those of a choice.
	Values []string `json:"values,omitempty"`
}

// Inspections fails the test unless the manifest in the file names exactly these inspections. With rewrite it writes
// them into the file instead, which must have an "inspections" list already.
func Inspections(t testing.TB, file string, rewrite bool, wanted ...Inspection) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Inspections json.RawMessage `json:"inspections"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var named bytes.Buffer
	if err := json.Compact(&named, document.Inspections); err != nil {
		t.Fatalf("%s names no inspections: %v", file, err)
	}
	compact, indented, err := encoded(wanted)
	switch {
	case err != nil:
		t.Fatal(err)
	case rewrite:
		const key = `"inspections": `
		text = bytes.Replace(text, append([]byte(key), document.Inspections...), []byte(key+indented), 1)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	case compact != named.String():
		t.Errorf("%s does not name what the adapter runs to observe. It names\n%s\nbut the adapter runs\n%s", file,
			named.String(), compact)
	}
}

// encoded returns the inspections as JSON, without spaces and as a manifest has them.
func encoded(list []Inspection) (compact, indented string, err error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(list); err != nil {
		return "", "", fmt.Errorf("encode the inspections: %w", err)
	}
	var lines bytes.Buffer
	if err := json.Indent(&lines, bytes.TrimSpace(out.Bytes()), "  ", "  "); err != nil {
		return "", "", fmt.Errorf("encode the inspections: %w", err)
	}
	return string(bytes.TrimSpace(out.Bytes())), lines.String(), nil
}
