package authhttp

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// FuzzTarget: what follows a login is a path of this site or a port of the person's own machine, in
// whatever way browsers read it.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"/", "/instances?x=1#y", "//evil.test", "/\\evil.test", "https://evil.test",
		"/\t/evil.test", "/auth/logout", "javascript:alert(1)", "/%2f/evil", "/..//evil.test", "/.//evil.test", ""} {
		f.Add(seed, "", "")
	}
	f.Add("", "8123", strings.Repeat("a", 43))
	f.Add("", "80", "x")
	site, _ := url.Parse("https://console.test/auth/oidc/callback")
	cli := regexp.MustCompile(`^cli:[0-9]{4,5}:[A-Za-z0-9_-]{43}$`)
	f.Fuzz(func(t *testing.T, returnTo, port, challenge string) {
		target, err := targetOf(url.Values{"returnTo": {returnTo}, "cli": {port}, "challenge": {challenge}})
		if err != nil || cli.MatchString(target) {
			return
		}
		to, err := url.Parse(target)
		if err != nil {
			t.Fatalf("%q cannot be read", target)
		}
		if led := site.ResolveReference(to); led.Host != site.Host || led.Scheme != "https" ||
			strings.Contains(target, `\`) {
			t.Fatalf("%q leads to %s", target, led)
		}
	})
}
