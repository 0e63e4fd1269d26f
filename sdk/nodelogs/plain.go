package nodelogs

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escapes are the sequences by which a program moves, colours or reprograms a terminal: of ECMA-48, section 5.4 and
// 5.6.
var escapes = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]`)

// Plain returns text that does nothing to a terminal or a page: valid UTF-8, without escape sequences, and with U+FFFD
// in place of control characters and of those that turn the direction of writing. Tabs are kept.
func Plain(printed []byte) string {
	printed = trimReturn(printed)
	if IsPlain(printed) {
		return string(printed)
	}
	kept := escapes.ReplaceAll(printed, nil)
	return strings.Map(func(r rune) rune {
		if r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == 0x2028 || r == 0x2029) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(string(kept), string(utf8.RuneError)))
}

// trimReturn drops the carriage returns of a line that ends as on other systems.
func trimReturn(line []byte) []byte {
	for len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	return line
}

// IsPlain reports whether there is nothing but printable ASCII and tabs.
func IsPlain(line []byte) bool {
	for _, b := range line {
		if (b < ' ' || b > '~') && b != '\t' {
			return false
		}
	}
	return true
}
