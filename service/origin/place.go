package origin

import (
	"net/url"
	"strings"
)

// place is what of an artifact's address its source must cover: the repository of a reference in a registry, without tag
// and digest, or the whole address of a file. False when it is not in its plain form, in which alone addresses can
// be compared: one host and path must not have two spellings.
func place(ref string) (named string, file, ok bool) {
	if strings.Contains(ref, "://") {
		return ref, true, plain(ref)
	}
	named, _, _ = strings.Cut(ref, "@")
	if last := strings.LastIndexByte(named, '/'); last >= 0 {
		if colon := strings.IndexByte(named[last:], ':'); colon > 0 {
			named = named[:last+colon]
		}
	}
	return named, false, strings.ToLower(named) == named && !strings.ContainsAny(named, " \\%?#") && steady(named)
}

// plain says whether a file's address is in its plain form: no user, query or fragment, a host in lower case, nothing
// encoded that need not be, and a path whose every step goes down, whoever reads it.
func plain(ref string) bool {
	address, err := url.Parse(ref)
	if err != nil || address.Host == "" || address.Host != strings.ToLower(address.Host) {
		return false
	}
	again := url.URL{Scheme: address.Scheme, Host: address.Host, Path: address.Path}
	return again.String() == ref && !strings.ContainsAny(address.Path, "\\\x00") && steady(address.Path)
}

// steady says whether no step of a path stands still or goes up. The first and the last may be empty, as slashes at the
// ends make them.
func steady(path string) bool {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	for _, step := range strings.Split(path, "/") {
		if step == "" || step == "." || step == ".." {
			return path == ""
		}
	}
	return true
}
