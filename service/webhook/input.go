package webhook

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/kit/check"
)

// Bounds of a webhook.
const (
	maxURL         = 2_000 // characters
	maxDescription = 200   // characters
	maxTypes       = 50
	maxType        = 100 // characters
)

var typePattern = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*(\.\*)?$`)

// checkTypes wants 1 to 50 event types, or prefixes of some that end in `.*`.
func checkTypes(input *check.Input, path string, types []string) {
	if len(types) < 1 || len(types) > maxTypes {
		input.Bad(path, "must have 1 to %d event types", maxTypes)
		return
	}
	for _, one := range types {
		if len(one) > maxType || !typePattern.MatchString(one) || !known(one) {
			input.Bad(path, "%.100q is neither an event type nor a prefix of event types that ends in .*", one)
			return
		}
	}
}

// known reports whether a type or prefix chooses any event.
func known(pattern string) bool {
	return slices.ContainsFunc(lifecycle.EventTypes(), func(known lifecycle.EventType) bool {
		return Chooses([]string{pattern}, string(known))
	})
}

// Chooses reports whether any of a webhook's types or prefixes matches an event.
func Chooses(types []string, event string) bool {
	return slices.ContainsFunc(types, func(one string) bool {
		if prefix, ok := strings.CutSuffix(one, "*"); ok {
			return strings.HasPrefix(event, prefix)
		}
		return one == event
	})
}

// checkURL refuses all but an absolute http or https address, without user and fragment, that the operator allows.
func (s *Service) checkURL(input *check.Input, path, address string) error {
	parsed, err := url.Parse(address)
	switch {
	case utf8.RuneCountInString(address) > maxURL:
		input.Bad(path, "must have at most %d characters", maxURL)
	case err != nil || parsed.Host == "" || parsed.Hostname() == "" ||
		(parsed.Scheme != "https" && parsed.Scheme != "http"):
		input.Bad(path, "must be an address such as https://example.com/hook")
	case parsed.User != nil:
		input.Bad(path, "must not contain a user or password: receivers check the signature")
	case parsed.Fragment != "":
		input.Bad(path, "must not contain a fragment")
	default:
		if err := s.Allow(parsed); err != nil {
			return fault.From(err).At(path)
		}
	}
	return nil
}
