package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/volume"
)

var (
	placePattern    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	slugPattern     = regexp.MustCompile(`^[a-z][a-z0-9-]{0,38}[a-z0-9]$`)
	purposePattern  = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,62}$`)
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
)

// parser reads one document and gathers what is wrong with it.
type parser struct {
	decoder *json.Decoder
	scope   lifecycle.PolicyScope
	into    *Document
	reasons []fault.Reason
}

// Parse reads the overlay of a level. INVALID_ARGUMENT names every member at fault by its path in the
// document, such as "regions.allow.2": unknown and repeated members, words of the wrong form, lists and
// documents beyond their bounds, and a final block on another level than the platform's.
func Parse(scope lifecycle.PolicyScope, text []byte) (*Document, error) {
	p := &parser{decoder: json.NewDecoder(bytes.NewReader(text)), scope: scope, into: &Document{}}
	p.decoder.UseNumber()
	if tooLong(text) {
		p.bad(fault.TooLong, "", "the document may have at most %d bytes", MaxDocument)
		return nil, p.refusal()
	}
	err := p.object("", p.member)
	if err == nil {
		if _, err = p.decoder.Token(); err == nil {
			err = errors.New("more than one value")
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		p.bad(fault.BadValue, "", "is not a JSON object: %v", err)
	}
	if len(p.reasons) > 0 {
		return nil, p.refusal()
	}
	return p.into, nil
}

// tooLong counts without the spaces between the words, which a database that stores a document may add.
func tooLong(text []byte) bool {
	const spaced = 4 * MaxDocument
	if len(text) <= MaxDocument || len(text) > spaced {
		return len(text) > MaxDocument
	}
	var compact bytes.Buffer
	return json.Compact(&compact, text) != nil || compact.Len() > MaxDocument
}

func (p *parser) bad(code fault.Code, path, format string, args ...any) {
	if len(p.reasons) < fault.MaxReasons {
		p.reasons = append(p.reasons, fault.Reason{Code: code, Message: fmt.Sprintf(format, args...), Path: path})
	}
}

func (p *parser) refusal() error {
	return fault.New(fault.InvalidArgument, "the policy document is not valid: %s",
		p.reasons[0].Message).With(p.reasons...)
}

// object reads an object and calls member with each name in it; anything else adds a reason.
func (p *parser) object(path string, member func(path, name string) error) error {
	open, err := p.decoder.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		p.bad(fault.BadValue, path, "must be an object")
		return p.drop(open)
	}
	seen := make(map[string]bool)
	for p.decoder.More() {
		token, err := p.decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		below := join(path, name)
		if seen[name] {
			p.bad(fault.Duplicate, below, "is given twice")
			err = p.skip()
		} else {
			seen[name] = true
			err = member(below, name)
		}
		if err != nil {
			return err
		}
	}
	_, err = p.decoder.Token()
	return err
}

func join(path, name string) string {
	if len(name) > maxWord {
		name = strings.ToValidUTF8(name[:maxWord], "") + "…"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// skip passes over the next value.
func (p *parser) skip() error {
	token, err := p.decoder.Token()
	if err != nil {
		return err
	}
	return p.drop(token)
}

// drop passes over the rest of a value that token has begun.
func (p *parser) drop(token json.Token) error {
	for depth := opened(token); depth > 0; {
		next, err := p.decoder.Token()
		if err != nil {
			return err
		}
		depth += opened(next)
	}
	return nil
}

func opened(token json.Token) int {
	switch token {
	case json.Delim('{'), json.Delim('['):
		return 1
	case json.Delim('}'), json.Delim(']'):
		return -1
	}
	return 0
}

func (p *parser) unknown(path string) error {
	p.bad(fault.UnknownField, path, "a policy document has no such field")
	return p.skip()
}

// member reads a member of the document.
func (p *parser) member(path, name string) error {
	if at := slices.Index(listNames[:], name); at >= 0 {
		return p.object(path, func(path, name string) (err error) {
			switch rules := &p.into.lists[at]; name {
			case "allow":
				rules.allow, err = p.words(path, list(at))
			case "deny":
				rules.deny, err = p.words(path, list(at))
			default:
				err = p.unknown(path)
			}
			return err
		})
	}
	if at := slices.Index(ceilingNames[:], name); at >= 0 {
		n, err := p.number(path, maxCeiling)
		limit := int(n)
		p.into.ceilings[at] = &limit
		return err
	}
	switch {
	case name == hourlyCost:
		return p.cost(path)
	case name == finalWords && p.scope == lifecycle.PolicyPlatform:
		return p.object(path, p.finally)
	case name == finalWords:
		p.bad(fault.UnknownField, path, "only the platform's overlay has final rules")
		return p.skip()
	}
	return p.unknown(path)
}

func (p *parser) finally(path, name string) (err error) {
	at := slices.Index(listNames[:], name)
	if at < 0 {
		return p.unknown(path)
	}
	p.into.final[at], err = p.words(path, list(at))
	return err
}

// words reads a list of words of a dimension, in their order and normal form; never nil.
func (p *parser) words(path string, of list) ([]string, error) {
	open, err := p.decoder.Token()
	if err != nil {
		return nil, err
	}
	if open != json.Delim('[') {
		p.bad(fault.BadValue, path, "must be a list of texts")
		return []string{}, p.drop(open)
	}
	found, seen := []string{}, make(map[string]bool)
	for i := 0; p.decoder.More(); i++ {
		token, err := p.decoder.Token()
		if err != nil {
			return nil, err
		}
		if i == maxList {
			p.bad(fault.TooLong, path, "may have at most %d values", maxList)
		}
		word, code, wrong := wordOf(of, token)
		if wrong == "" && seen[word] {
			code, wrong = fault.Duplicate, "is given twice"
		}
		if wrong != "" {
			p.bad(code, path+"."+strconv.Itoa(i), "%s", wrong)
		}
		seen[word] = true
		if wrong == "" && i < maxList {
			found = append(found, word)
		}
		if err := p.drop(token); err != nil {
			return nil, err
		}
	}
	_, err = p.decoder.Token()
	return found, err
}

// wordOf is a word of a dimension in its normal form, or what is wrong with it.
func wordOf(of list, token json.Token) (word string, code fault.Code, wrong string) {
	word, ok := token.(string)
	if !ok || word == "" || len(word) > maxWord {
		return "", fault.BadValue, fmt.Sprintf("must be a text of 1 to %d bytes", maxWord)
	}
	normal, want := normalise(of, word)
	if want != "" {
		return "", fault.BadValue, "must be " + want
	}
	return normal, "", ""
}

// normalise is a word in its normal form, or what it must be.
func normalise(of list, word string) (normal, want string) {
	switch of {
	case regions, skus:
		return word, unless(placePattern.MatchString(word), "letters, digits, dot, dash and underscore, at most 64")
	case sources:
		source, ok := parseSource(word)
		return source.String(), unless(ok,
			"a registry's host, such as registry.example.com, perhaps with a port and a path below it")
	case storageClasses:
		return word, unless(volume.ValidName(word), "the name of a storage class")
	case apps:
		return word, unless(slugPattern.MatchString(word), "an app's slug")
	case versions:
		slug, wanted, ok := strings.Cut(word, "@")
		_, good := parseSpan(wanted)
		return word, unless(ok && good && slugPattern.MatchString(slug),
			"an app's slug, @ and a constraint, such as hello@>=1.2 <2")
	case modes:
		return word, unless(slices.Contains(lifecycle.OperatingMode("").Values(), word),
			"one of "+strings.Join(lifecycle.OperatingMode("").Values(), ", "))
	case classes:
		return word, unless(slices.Contains(isolation.Class("").Values(), word),
			"one of "+strings.Join(isolation.Class("").Values(), ", "))
	case profiles:
		return word, unless(slices.Contains(isolation.Profile("").Values(), word),
			"one of "+strings.Join(isolation.Profile("").Values(), ", "))
	case access:
		return word, unless(slices.Contains(accessWords, word), "one of "+strings.Join(accessWords, ", "))
	case planes:
		return word, unless(slices.Contains(lifecycle.ControlPlaneScope("").Values(), word),
			"one of "+strings.Join(lifecycle.ControlPlaneScope("").Values(), ", "))
	}
	return word, unless(purposePattern.MatchString(word),
		"a purpose: lower-case letters, digits, dot, dash and underscore, at most 63")
}

func unless(ok bool, want string) string {
	if ok {
		return ""
	}
	return want
}

// number reads a whole number from 0 on.
func (p *parser) number(path string, most int64) (int64, error) {
	token, err := p.decoder.Token()
	if err != nil {
		return 0, err
	}
	number, ok := token.(json.Number)
	n, err := number.Int64()
	if !ok || err != nil || n < 0 || n > most {
		p.bad(fault.BadValue, path, "must be a whole number from 0 to %d", most)
		return 0, p.drop(token)
	}
	return n, nil
}

// cost reads an amount of money.
func (p *parser) cost(path string) error {
	const most = 1_000_000_000_000_000_000
	cost, amount := &Cost{}, false
	err := p.object(path, func(path, name string) (err error) {
		switch name {
		case "amountMicros":
			amount = true
			cost.AmountMicros, err = p.number(path, most)
			return err
		case "currency":
			token, err := p.decoder.Token()
			if err != nil {
				return err
			}
			cost.Currency, _ = token.(string)
			return p.drop(token)
		}
		return p.unknown(path)
	})
	if err != nil {
		return err
	}
	if !amount {
		p.bad(fault.Required, path+".amountMicros", "must be given, in millionths of the currency")
	}
	if !currencyPattern.MatchString(cost.Currency) {
		p.bad(fault.BadValue, path+".currency", "must be three capital letters, as ISO 4217 has them")
	}
	p.into.cost = cost
	return nil
}
