package transport

import (
	"bytes"
	"encoding/json"
	"strings"
)

// repeated returns the path of the first member that an object of a JSON value has twice, such as
// "input.document.apps"; empty for none. A decoder keeps the last of them, so that what one reader approved another
// would never see. The text is valid JSON.
func repeated(raw []byte) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return repeatedIn(dec, nil)
}

// repeatedIn reads one value.
func repeatedIn(dec *json.Decoder, path []string) string {
	open, err := dec.Token()
	if err != nil {
		return ""
	}
	switch open {
	case json.Delim('{'):
		return repeatedMember(dec, path)
	case json.Delim('['):
		for dec.More() {
			if found := repeatedIn(dec, path); found != "" {
				return found
			}
		}
		_, _ = dec.Token()
	}
	return ""
}

// repeatedMember reads the rest of an object.
func repeatedMember(dec *json.Decoder, path []string) string {
	var names []string // few in most objects: a map is made for the rest
	var seen map[string]bool
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return ""
		}
		name, _ := token.(string)
		below := append(path[:len(path):len(path)], name)
		if has(names, seen, name) {
			return strings.Join(below, ".")
		}
		names = append(names, name)
		if len(names) > fewMembers {
			seen = remember(seen, names)
		}
		if found := repeatedIn(dec, below); found != "" {
			return found
		}
	}
	_, _ = dec.Token()
	return ""
}

// fewMembers is up to how many names a list is faster than a map.
const fewMembers = 16

// has reports whether a name was read before.
func has(names []string, seen map[string]bool, name string) bool {
	if seen != nil {
		return seen[name]
	}
	for _, known := range names {
		if known == name {
			return true
		}
	}
	return false
}

// remember adds the last name, and the first time all of them.
func remember(seen map[string]bool, names []string) map[string]bool {
	if seen != nil {
		seen[names[len(names)-1]] = true
		return seen
	}
	seen = make(map[string]bool, 2*len(names))
	for _, name := range names {
		seen[name] = true
	}
	return seen
}
