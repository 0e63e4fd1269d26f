package policy

import (
	"regexp"
	"strings"
)

// sourcePattern is host, port and path of a registry or of repositories in it, lower case.
var sourcePattern = regexp.MustCompile(
	`^([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::([0-9]{1,5}))?((?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*)$`)

// source is where artifacts come from.
type source struct {
	host, port string // no port for all of them
	path       string // "/a/b", or empty for every repository
}

// parseSource reads a rule's source, or a reference without its digest; false when it is malformed. Names of
// one host become equal: in any case, with a closing dot or without, and docker.io, the alias of
// index.docker.io.
func parseSource(text string) (source, bool) {
	text = strings.ToLower(text)
	if host, path, _ := strings.Cut(text, "/"); strings.HasSuffix(host, ".") {
		text = strings.TrimSuffix(host, ".") + text[len(host):len(text)-len(path)] + path
	}
	found := sourcePattern.FindStringSubmatch(text)
	if found == nil {
		return source{}, false
	}
	out := source{host: found[1], port: found[2], path: found[3]}
	if out.host == "docker.io" {
		out.host = "index.docker.io"
	}
	return out, true
}

// String returns the normal form.
func (s source) String() string {
	if s.port == "" {
		return s.host + s.path
	}
	return s.host + ":" + s.port + s.path
}

// sourceOf returns where a pinned reference, host/repository@digest, or a file's address comes from. Without a port it
// is that of HTTPS.
func sourceOf(ref string) (source, bool) {
	if address, file := fileAddress(ref); file {
		out, ok := parseFile(address)
		return out, ok && out.path != ""
	}
	named, _, _ := strings.Cut(ref, "@")
	if last := strings.LastIndexByte(named, '/'); last >= 0 { // a tag beside the digest
		if colon := strings.IndexByte(named[last:], ':'); colon > 0 {
			named = named[:last+colon]
		}
	}
	out, ok := parseSource(named)
	if out.port == "" {
		out.port = "443"
	}
	return out, ok && out.path != ""
}

// locationOf returns what an artifact source covers: host[:port][/path], or an address that ends with a slash.
func locationOf(location string) (source, bool) {
	if address, file := fileAddress(location); file {
		return parseFile(strings.TrimSuffix(address, "/"))
	}
	out, ok := parseSource(location)
	if out.port == "" {
		out.port = "443"
	}
	return out, ok
}

// fileAddress returns a file's address without its scheme; false for a reference.
func fileAddress(ref string) (string, bool) {
	scheme, address, ok := strings.Cut(ref, "://")
	return address, ok && (scheme == "https" || scheme == "http")
}

// parseFile reads a file's address without its scheme: its path may hold more characters than a repository's, and must
// go down with each step. Rules are in lower case, so paths that differ in case alone are equal.
func parseFile(address string) (source, bool) {
	host, path, deep := strings.Cut(address, "/")
	out, ok := parseSource(host)
	if out.port == "" {
		out.port = "443"
	}
	if !ok || !deep {
		return out, ok
	}
	out.path = "/" + strings.ToLower(path)
	for _, step := range strings.Split(out.path[1:], "/") {
		if step == "" || step == "." || step == ".." || strings.ContainsAny(step, "\\?# ") ||
			strings.Contains(step, "%2e") || strings.Contains(step, "%2f") || strings.Contains(step, "%5c") {
			return source{}, false
		}
	}
	return out, true
}

// within reports whether one of the words, in their normal form, is the source or holds it: the host at any port
// or at the same, and the path or one above it.
func (s source) within(has func(word string) bool) bool {
	for _, port := range []string{"", s.port} {
		at := source{host: s.host, port: port, path: s.path}
		for {
			if has(at.String()) {
				return true
			}
			if at.path == "" {
				break
			}
			at.path = at.path[:strings.LastIndexByte(at.path, '/')]
		}
	}
	return false
}
