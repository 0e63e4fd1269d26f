package supportbundle

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Masked replaces a word that is not let through.
const Masked = "[…]"

// Clean returns a sentence with every word masked that does not look like a word of the platform's, and false where
// something in it, or in what it encodes, looks like a secret: then nothing of it may be shown.
//
// Words are let through by their form: plain words, codes, numbers, times and typed ids. A key, a token, a password of
// a connection, their encodings and pieces of them have none of these forms, and an address does not count as a number.
// What is let through has at most MaxText bytes; another Clean lets it through unchanged.
func Clean(text string) (string, bool) {
	if len(text) > MaxText {
		text = strings.ToValidUTF8(text[:MaxText-len(cut)], "") + cut
	}
	if !utf8.ValidString(text) || secret(text, maxDepth) {
		return "", false
	}
	words, hide := strings.Fields(text), false
	for i, word := range words {
		inner := strings.Trim(word, `()[]{}<>"'“”‘’.,;:!?`)
		switch {
		case inner == "" || word == Masked:
			hide = hide && inner == ""
		case hide && joining.MatchString(inner):
		case hide || !plain.MatchString(inner) || address.MatchString(inner):
			words[i], hide = Masked, false
		default:
			hide = names.MatchString(inner)
		}
	}
	return bounded(words), true
}

// cut ends a text of which the rest is left out.
const cut = " " + Masked

// bounded joins words to at most MaxText bytes: what is masked may be longer than it was.
func bounded(words []string) string {
	text := strings.Join(words, " ")
	if len(text) <= MaxText {
		return text
	}
	for len(text)+len(cut) > MaxText {
		text = text[:max(strings.LastIndexByte(text, ' '), 0)]
	}
	return text + cut
}

// plain matches the words that are let through, without the marks around them.
var plain = regexp.MustCompile(`^(` + strings.Join([]string{
	`[A-Z]?[a-z]{1,18}(['’-][a-z]{1,14}){0,3}`,                     // a word
	`[A-Z]{1,20}(_[A-Z]{1,20}){0,5}`,                               // a code
	`-?[0-9]{1,9}([.:,/][0-9]{1,6}){0,3}(%|ms|s|m|h|[KMGT]i?B|B)?`, // a number
	`[0-9]{1,3}h[0-9]{1,2}m[0-9]{1,2}s|[0-9]{1,3}m[0-9]{1,2}s`,     // a duration
	`[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]{5,18}Z?)?`,                // a time
	`[a-z]{2,3}_[0-7][0-9a-hjkmnp-tv-z]{25}`,                       // a typed id
	`[-–—/&+=()|,.:;…%*]{1,3}`,                                     // a mark
}, "|") + `)$`)

// address matches the beginning of a network address, which looks like a number with points.
var address = regexp.MustCompile(`^-?([0-9]{1,3}\.){3}[0-9]`)

// names are words after which a secret may follow that looks like a word.
var names = regexp.MustCompile(
	`(?i)^(password|passwd|passphrase|pass|pwd|secret|token|bearer|credential|authorization|apikey|` +
		`key|pin|login)$`)

// joining are words that may be between such a word and the secret.
var joining = regexp.MustCompile(`(?i)^(is|was|are|were|of|for|from|the|a|an|its|to|by|with|and|or|that|has|had)$`)

// maxDepth is how often what a text encodes is decoded again.
const maxDepth = 4

// secrets are what secrets look like, in a text and in the same text without its white space.
var secrets = regexp.MustCompile(
	`(?i)(-----\s*BEGIN|PRIVATE\s*KEY|ssh-(rsa|ed25519)|[a-z][a-z0-9+.-]*://[^/\s:@]*:[^@\s]+@|` +
		`bearer\s*[=:]?\s*[a-z0-9._~+/=-]*[0-9_.~+/=][a-z0-9._~+/=-]*|gpu_[a-z]{2,4}_[a-z0-9]|eyJ[a-z0-9_-]{10}|\b(AKIA|ASIA)[A-Z0-9]{12}|` +
		`(password|passwd|secret|token|api_?key|authorization)["']?\s*[:=]\s*["']?[^\s"']|gh[pousr]_[a-z0-9]{10}|xox[abprs]-[a-z0-9])`)

// marks are what every match of secrets has in it, in small letters: a text without any of them need not be searched.
var marks = []string{"begin", "private", "ssh-", "://", "bearer", "gpu_", "eyj", "akia", "asia", "password",
	"passwd", "secret", "token", "api", "authorization", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "xox"}

func matches(text string) bool {
	small := strings.ToLower(text)
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(small, mark) }) &&
		secrets.MatchString(text)
}

// secret reports whether a text, or what it encodes, looks like a secret.
func secret(text string, depth int) bool {
	bare := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	if matches(text) || matches(bare) {
		return true
	}
	if depth == 0 {
		return false
	}
	for _, decoded := range decodings(text, bare) {
		if secret(decoded, depth-1) {
			return true
		}
	}
	return false
}

// Runs that may encode something.
var (
	base64Run = regexp.MustCompile(`[A-Za-z0-9+/_-]{16,}={0,2}`)
	hexRun    = regexp.MustCompile(`(?i)[0-9a-f]{32,}`)
)

// decodings are what a text encodes: by JSON, as a part of an address, in base64, in hexadecimal digits, and packed.
func decodings(text, bare string) (all []string) {
	for _, from := range slices.Compact([]string{text, bare}) {
		if strings.Contains(from, `\`) {
			if decoded, err := strconv.Unquote(`"` + strings.NewReplacer(`\/`, `/`, `"`, `\"`, `\"`, `\"`, "\n", `\n`).
				Replace(from) + `"`); err == nil && decoded != from {
				all = append(all, decoded)
			}
		}
		if decoded, err := url.QueryUnescape(from); err == nil && decoded != from {
			all = append(all, decoded)
		}
		for _, run := range base64Run.FindAllString(from, -1) {
			all = append(all, unpacked(run)...)
		}
		for _, run := range hexRun.FindAllString(from, -1) {
			if decoded, err := hex.DecodeString(run[:len(run)&^1]); err == nil {
				all = append(all, readable(decoded)...)
			}
		}
	}
	return all
}

// unpacked returns the readable texts that a run of base64 may encode. Its beginning may belong to the text before it.
func unpacked(run string) (all []string) {
	run = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(run, "="))
	for skip := range 4 {
		if part := run[min(skip, len(run)):]; len(part) >= 4 {
			if decoded, err := base64.RawStdEncoding.DecodeString(part[:len(part)-rest(len(part))]); err == nil {
				all = append(all, readable(decoded)...)
			}
		}
	}
	return all
}

// rest is how many letters at the end of a run of base64 encode no byte.
func rest(length int) int {
	if length%4 == 1 {
		return 1
	}
	return 0
}

// readable returns bytes as a text, unpacked where they are gzip; nothing where the result is not text. Most runs of
// letters do not decode to text.
func readable(decoded []byte) []string {
	if packed, err := gzip.NewReader(bytes.NewReader(decoded)); err == nil {
		if plain, _ := io.ReadAll(io.LimitReader(packed, MaxText)); len(plain) > 0 {
			decoded = plain
		}
	}
	printed := 0
	for _, one := range decoded {
		if one >= ' ' && one < 0x7f || one == '\n' || one == '\t' || one == '\r' {
			printed++
		}
	}
	if printed == 0 || printed*10 < len(decoded)*8 {
		return nil
	}
	return []string{strings.ToValidUTF8(string(decoded), "\n")}
}
