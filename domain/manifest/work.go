package manifest

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Work is how people see and stop what an app works on, such as jobs: which of its actions list it, show what one
// prints, stop one and begin one. The platform reads no more meaning into an action than this.
type Work struct {
	// Title is what a list of it is called, such as "Jobs".
	Title string `json:"title"`
	// Kind is what one of it is called in a sentence, such as "job".
	Kind string `json:"kind"`
	// List lists it.
	List WorkList `json:"list"`
	// Output shows what one of it printed; nil for nothing.
	Output *WorkOutput `json:"output,omitempty"`
	// Cancel stops one of it; nil where none can be stopped.
	Cancel *WorkVerb `json:"cancel,omitempty"`
	// Submit begins one of it; nil where people begin none.
	Submit *WorkVerb `json:"submit,omitempty"`
}

// WorkList is an action of risk read that needs no input and answers the newest first.
type WorkList struct {
	// Action is the action's name.
	Action string `json:"action"`
	// Items is the field of its output with the list, of objects.
	Items string `json:"items"`
	// ID, State and Columns are fields of each object: what names it, how it is now, and what a table shows, in order.
	ID      string   `json:"id"`
	State   string   `json:"state"`
	Columns []string `json:"columns"`
	// Ended are the values of State that do not change any more.
	Ended []string `json:"ended"`
}

// WorkOutput is an action of risk read that answers the end of what one piece of work printed.
type WorkOutput struct {
	// Action is the action's name.
	Action string `json:"action"`
	// ID is the field of its input that takes the id, the only one it needs.
	ID string `json:"id"`
	// Text is the field of its output with the text.
	Text string `json:"text"`
}

// WorkVerb is an action that changes work.
type WorkVerb struct {
	// Action is the action's name.
	Action string `json:"action"`
	// ID is the field with the id: of the input, and the only one it needs, to stop; of the output to begin.
	ID string `json:"id"`
}

// object is what the lint of work reads of a JSON Schema.
type object struct {
	Type       string            `json:"type"`
	Properties map[string]object `json:"properties"`
	Required   []string          `json:"required"`
	Items      *object           `json:"items"`
}

// needsOnly reports whether nothing but the field must be given.
func (o object) needsOnly(field string) bool {
	return !slices.ContainsFunc(o.Required, func(name string) bool { return name != field })
}

// work checks the declaration of work against the actions that it names.
func (l *linter) work(m *Manifest) {
	if m.Work == nil {
		return
	}
	l.workList(m, m.Work.List)
	if output := m.Work.Output; output != nil {
		in, out, ok := l.workAction(m, "work.output", output.Action, true)
		if ok {
			l.workID("work.output.id", in, output.ID)
			if out.Properties[output.Text].Type != "string" {
				l.add(fault.BadValue, "work.output.text", "must name a text in the properties of the action's output")
			}
		}
	}
	if cancel := m.Work.Cancel; cancel != nil {
		if in, _, ok := l.workAction(m, "work.cancel", cancel.Action, false); ok {
			l.workID("work.cancel.id", in, cancel.ID)
		}
	}
	if submit := m.Work.Submit; submit != nil {
		if _, out, ok := l.workAction(m, "work.submit", submit.Action, false); ok && !plain(out.Properties[submit.ID]) {
			l.add(fault.BadValue, "work.submit.id",
				"must name a text or a whole number in the properties of the action's output")
		}
	}
}

// workList checks the fields of the list against the output of its action.
func (l *linter) workList(m *Manifest, list WorkList) {
	in, out, ok := l.workAction(m, "work.list", list.Action, true)
	if !ok {
		return
	}
	if len(in.Required) > 0 {
		l.add(fault.BadValue, "work.list.action", "must name an action that needs no input")
	}
	items := out.Properties[list.Items]
	if items.Type != "array" || items.Items == nil || items.Items.Type != "object" {
		l.add(fault.BadValue, "work.list.items", "must name a list of objects in the properties of the action's output")
		return
	}
	for path, field := range map[string]string{"work.list.id": list.ID, "work.list.state": list.State} {
		if !plain(items.Items.Properties[field]) {
			l.add(fault.BadValue, path, "must name a text or a whole number of each object")
		}
	}
	for i, column := range list.Columns {
		if _, ok := items.Items.Properties[column]; !ok {
			l.add(fault.BadValue, "work.list.columns."+strconv.Itoa(i), "must name a property of each object")
		}
	}
}

// workAction returns an action with its schemas. It adds a finding and returns false when it is missing or unfit.
func (l *linter) workAction(m *Manifest, path, name string, reads bool) (in, out object, ok bool) {
	action, found := m.Action(name)
	switch {
	case !found:
		l.add(fault.BadValue, path+".action", "is not an action of this manifest")
	case reads && action.Risk != riskRead:
		l.add(fault.BadValue, path+".action", "must name an action of risk read")
	case !reads && action.Risk == riskRead:
		l.add(fault.BadValue, path+".action", "must name an action that changes something: its risk is read")
	case json.Unmarshal(action.InputSchema, &in) != nil || json.Unmarshal(action.OutputSchema, &out) != nil:
		l.add(fault.BadValue, path+".action", "must name an action whose schemas have one type for each property")
	default:
		return in, out, true
	}
	return in, out, false
}

// workID notes an input that does not take an id, or needs more than it.
func (l *linter) workID(path string, in object, field string) {
	if !plain(in.Properties[field]) || !in.needsOnly(field) {
		l.add(fault.BadValue, path, "must name a text or a whole number in the properties of the action's input, "+
			"and be the only field that it needs")
	}
}

// plain reports whether a field can be an id.
func plain(field object) bool { return field.Type == "string" || field.Type == "integer" }
