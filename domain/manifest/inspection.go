package manifest

import (
	"regexp"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Inspection is a command that only looks: what an adapter may run in a member while it observes, plans or answers an
// action of risk "read". Its arguments are fixed but for values of a stated type, none of which can be an option or
// hold a character that a shell reads.
type Inspection struct {
	// Name is unique in the manifest.
	Name string `json:"name"`
	// Command is the program and its arguments. An argument's name in braces, as in "--job={job}", means its value.
	Command []string `json:"command"`
	// Arguments are the values that differ from call to call.
	Arguments []InspectionArgument `json:"arguments,omitempty"`
	// User is who runs it, as in a node task; empty for root of the member.
	User string `json:"user,omitempty"`
}

// InspectionArgument is a typed value of an inspection's command.
type InspectionArgument struct {
	// Name is what the command has in braces.
	Name string `json:"name"`
	// Type is "integer", "word" (letters, digits and . _ : @ -, not first a dash) or "choice".
	Type string `json:"type"`
	// Values are those of a choice.
	Values []string `json:"values,omitempty"`
}

// patterns are what a value of each type looks like.
var patterns = map[string]string{"integer": `[0-9]{1,15}`, "word": `[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}`}

func (a InspectionArgument) pattern() string {
	if a.Type != "choice" {
		return patterns[a.Type]
	}
	quoted := make([]string, len(a.Values))
	for i, value := range a.Values {
		quoted[i] = regexp.QuoteMeta(value)
	}
	return "(?:" + strings.Join(quoted, "|") + ")"
}

// fits reports whether an element of a command is the inspection's.
func (i Inspection) fits(element, given string) bool {
	pattern := regexp.QuoteMeta(element)
	for _, argument := range i.Arguments {
		pattern = strings.ReplaceAll(pattern, regexp.QuoteMeta("{"+argument.Name+"}"), argument.pattern())
	}
	matched, err := regexp.MatchString(`\A(?:`+pattern+`)\z`, given)
	return err == nil && matched
}

// Inspects returns the name of the inspection whose command this is, run by that user; false when the manifest names
// none.
func (m *Manifest) Inspects(command []string, user string) (name string, ok bool) {
	for _, one := range m.Inspections {
		if len(one.Command) != len(command) || one.User != user {
			continue
		}
		ok = true
		for i, element := range one.Command {
			ok = ok && one.fits(element, command[i])
		}
		if ok {
			return one.Name, true
		}
	}
	return "", false
}

// inspections checks each argument against its command.
func (l *linter) inspections(m *Manifest) {
	l.unique(len(m.Inspections), func(i int) string { return m.Inspections[i].Name }, at("inspections", "name"))
	for i, one := range m.Inspections {
		for _, argument := range one.Arguments {
			mark := "{" + argument.Name + "}"
			switch {
			case argument.Type == "choice" && len(argument.Values) == 0:
				l.add(fault.BadValue, at("inspections", "arguments")(i), "the choice "+argument.Name+" needs values")
			case strings.Contains(one.Command[0], mark):
				l.add(fault.BadValue, at("inspections", "command")(i), "the program itself must be fixed")
			case !strings.Contains(strings.Join(one.Command, " "), mark):
				l.add(fault.BadValue, at("inspections", "arguments")(i), "the command does not use "+mark)
			}
		}
	}
}
