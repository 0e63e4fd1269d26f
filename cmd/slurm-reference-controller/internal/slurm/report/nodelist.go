package report

import (
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
)

// FirstNode returns the first name of a node list such as "w[0-2,5]" or "w3,w7".
func FirstNode(list string) string {
	prefix, rest, bracket := strings.Cut(list, "[")
	if !bracket || strings.Contains(prefix, ",") {
		name, _, _ := strings.Cut(list, ",")
		return name
	}
	if end := strings.IndexAny(rest, "-,]"); end >= 0 {
		rest = rest[:end]
	}
	return prefix + rest
}

// NodeNames returns all names of a node list such as "w[0-2,5]" or "w3,w7".
func NodeNames(list string) (names []string) {
	for list != "" {
		prefix, rest, bracket := strings.Cut(list, "[")
		if name, after, comma := strings.Cut(list, ","); comma && !(bracket && len(name) > len(prefix)) {
			names, list = append(names, name), after
			continue
		}
		if !bracket {
			return append(names, list)
		}
		inside, after, _ := strings.Cut(rest, "]")
		for _, part := range strings.Split(inside, ",") {
			first, last, span := strings.Cut(part, "-")
			if !span {
				last = first
			}
			for i := layout.Number(first); i <= min(layout.Number(last), layout.PortBlock); i++ {
				names = append(names, prefix+strconv.Itoa(i))
			}
		}
		list = strings.TrimPrefix(after, ",")
	}
	return names
}
