package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// commandLine is a line of a block that a person types.
	commandLine = regexp.MustCompile(
		`^(export|eval|chmod|curl --fail|node|npm|make|cosign|go (build|test)|[A-Z_]+=\S+) ?` +
			`|(^|[ (/])(appctl|app-platform|node-agent|pulse|adapter-in-an-hour|[a-z-]+-controller) `)
	// placeholder is an id, a code or a digest that a document leaves open.
	placeholder = regexp.MustCompile(`\b(gpu_[a-z]{3}_|[a-z]{2,3}_|sha256:)…`)
	// printed is an id, a code or a digest in what a command prints.
	printed = regexp.MustCompile(`\b(gpu_[a-z]{3}_)[0-9A-Za-z_-]+|` +
		`\b(?:([a-z]{2,3}_)[0-9a-hjkmnp-tv-z]{26}|(sha256:)[0-9a-f]{64})\b`)
	// remark is what follows a command on its line.
	remark = regexp.MustCompile(`\s{2,}#.*$|\s+# [^"']*$`)
)

// blocksOf reads the indented blocks of a document that have commands; a line that ends in \ goes on.
func blocksOf(t *testing.T, file string) (blocks [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	require.NoError(t, err)
	var block []string
	for _, line := range append(strings.Split(string(text), "\n"), "") {
		body, indented := strings.CutPrefix(line, "    ")
		if indented {
			if last := len(block) - 1; last >= 0 && strings.HasSuffix(block[last], `\`) {
				block[last] = strings.TrimSuffix(block[last], `\`) + strings.TrimSpace(body)
			} else {
				block = append(block, body)
			}
			continue
		}
		if lines := commandsOf(block); len(lines) > 0 {
			blocks = append(blocks, lines)
		}
		block = nil
	}
	return blocks
}

// commandsOf drops lines that are not commands: those of another language's program or of an answer.
func commandsOf(block []string) (lines []string) {
	for _, line := range block {
		line = remark.ReplaceAllString(line, "")
		if commandLine.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}

func part(line string, of map[string]string) string {
	for key := range of {
		if strings.Contains(line, key) {
			return key
		}
	}
	return ""
}

func among(line string, parts []string) bool {
	for _, one := range parts {
		if strings.Contains(line, one) {
			return true
		}
	}
	return false
}

// wholeWord returns a pattern of a word that is not part of a longer one.
func wholeWord(word string) *regexp.Regexp {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`)
}

// kindOf is the prefix without what parts it from the rest.
func kindOf(prefix string) string { return strings.TrimRight(prefix, "_:") }
