package compress

import (
	"net/http"
	"strings"
)

// Encoding is a content coding, by its name in HTTP.
type Encoding string

// Content codings of an answer.
const (
	Identity Encoding = ""
	Gzip     Encoding = "gzip"
	Brotli   Encoding = "br"
)

// maxCodings bounds the codings read of a request; the rest is ignored.
const maxCodings = 32

// absent is the weight of a coding that the header does not name; a named one has at most 1000 thousandths.
const absent = -1

// weights are those that a request gives to each coding, in thousandths.
type weights struct{ brotli, gzip, identity, others int }

// Preferred returns the coding that a request's Accept-Encoding prefers. Where it likes two equally, the shorter answer
// wins: br before gzip, gzip before none. A request without the header gets its answer plain. Answers are plain also
// for a client that refuses identity and takes neither of ours. It allocates nothing.
func Preferred(header http.Header) Encoding {
	given := header["Accept-Encoding"]
	if len(given) == 0 {
		return Identity
	}
	asked := read(given)
	brotli, gzip := or(asked.brotli, asked.others, 0), or(asked.gzip, asked.others, 0)
	if max(brotli, gzip) == 0 || asked.identity > max(brotli, gzip) {
		return Identity
	}
	if brotli >= gzip {
		return Brotli
	}
	return Gzip
}

// or returns the first weight that is not absent.
func or(weights ...int) int {
	for _, each := range weights {
		if each != absent {
			return each
		}
	}
	return absent
}

// read takes the weights of the codings that we know from the lines of a header.
func read(lines []string) weights {
	found := weights{absent, absent, absent, absent}
	left := maxCodings
	for _, line := range lines {
		for more := true; more && left > 0; left-- {
			var item string
			item, line, more = strings.Cut(line, ",")
			name, parameter, _ := strings.Cut(item, ";")
			if to := found.of(strings.TrimSpace(name)); to != nil {
				*to = weight(strings.TrimSpace(parameter))
			}
		}
	}
	return found
}

// of returns where the weight of a coding is kept, and nil for one that we do not know.
func (w *weights) of(name string) *int {
	switch {
	case name == "*":
		return &w.others
	case strings.EqualFold(name, "br"):
		return &w.brotli
	case strings.EqualFold(name, "gzip"), strings.EqualFold(name, "x-gzip"):
		return &w.gzip
	case strings.EqualFold(name, "identity"):
		return &w.identity
	default:
		return nil
	}
}

// weight returns "q=0.5" as thousandths: 1000 for an empty parameter, and 0 for one that is not a weight.
func weight(parameter string) int {
	if parameter == "" {
		return 1000
	}
	name, value, _ := strings.Cut(parameter, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !strings.EqualFold(name, "q") || value == "" || len(value) > len("0.000") || len(value) > 1 && value[1] != '.' {
		return 0
	}
	sum, unit := 0, 1000
	for i := range len(value) {
		digit := value[i]
		if i == 1 {
			continue
		}
		if digit < '0' || digit > '9' {
			return 0
		}
		sum += int(digit-'0') * unit
		unit /= 10
	}
	if sum > 1000 {
		return 0
	}
	return sum
}
