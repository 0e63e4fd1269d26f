package auditchain

import (
	"encoding/json"
	"strconv"
)

// Bounds of guessing which field was changed: values remembered of each field, and repeats tried.
const (
	maxValues  = 1_000
	maxRepeats = 1_000
)

// members is the entry's canonical form, member by member; nil when it has none.
func members(e Entry) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if own, err := e.Canonical(); err != nil || json.Unmarshal(own, &all) != nil {
		return nil
	}
	return all
}

// note remembers an entry's values, as what a changed field may have held.
func (v *Verifier) note(e Entry) {
	if v.values == nil {
		v.values = make(map[string]map[string]json.RawMessage)
	}
	for name, value := range members(e) {
		if v.values[name] == nil {
			v.values[name] = make(map[string]json.RawMessage)
		}
		if len(v.values[name]) < maxValues {
			v.values[name][string(value)] = value
		}
	}
}

// guess returns the field that was changed: the one with which, set to a likely value or to that of another
// entry, the entry has the sealed hash. A hash cannot be inverted; most tampering can be found by trial.
func (v *Verifier) guess(e Entry, sealed func(Hash) bool) string {
	now := members(e)
	for name, held := range now {
		for _, candidate := range v.candidates(name) {
			now[name] = candidate
			encoded, err := json.Marshal(now)
			if err != nil {
				continue
			}
			value, err := document(encoded)
			if err != nil {
				continue
			}
			form, err := appendValue(nil, value, 0)
			if err == nil && sealed(Leaf(form)) {
				return name
			}
		}
		now[name] = held
	}
	return ""
}

// candidates are what a field may have held.
func (v *Verifier) candidates(name string) []json.RawMessage {
	var out []json.RawMessage
	switch name {
	case "allowed", "breakGlass":
		return []json.RawMessage{json.RawMessage("true"), json.RawMessage("false")}
	case "repeats":
		for n := range maxRepeats {
			out = append(out, json.RawMessage(strconv.Itoa(n+1)))
		}
		return out
	case "before", "after":
		out = append(out, json.RawMessage("null"), json.RawMessage("{}"))
	case "tenantId", "projectId":
		out = append(out, json.RawMessage("null"))
	case "reason", "code", "objectId", "origin":
		out = append(out, json.RawMessage(`""`))
	}
	for _, value := range v.values[name] {
		out = append(out, value)
	}
	return out
}
