package origin

import (
	"encoding/hex"
	"net/url"
	"strings"
)

// place is what of an artifact's address its source must cover: the repository of a reference in a registry, without
// tag and digest, or the whole address of a file. False when it is not in its plain form, in which alone addresses can
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

// plain reports whether a file's address is in its plain form: no user, query or fragment, a host in lower case, no
// letter encoded that a location may have, and a path whose every step goes down for any reader.
func plain(ref string) bool {
	address, err := url.Parse(ref)
	if err != nil || address.Host == "" || address.Host != strings.ToLower(address.Host) ||
		strings.ContainsAny(ref, "?#") {
		return false
	}
	path, ok := strings.CutPrefix(ref, address.Scheme+"://"+address.Host+"/")
	for i := 0; ok && i < len(path); i++ {
		one, encoded := path[i], path[i] == '%'
		if encoded {
			read, err := hex.DecodeString(path[i+1 : min(i+3, len(path))])
			if err != nil || len(read) != 1 {
				return false
			}
			one = read[0]
		}
		ok = one != '\\' && one != 0x7f && one >= ' ' && (encoded || one != ' ') && !(encoded && ofLocations(one))
	}
	return ok && steady(path)
}

// ofLocations reports whether a letter may be in a location, or would be read as the beginning of another encoded one.
func ofLocations(one byte) bool {
	return one >= 'a' && one <= 'z' || one >= 'A' && one <= 'Z' || one >= '0' && one <= '9' ||
		strings.IndexByte("._~+=@-/%", one) >= 0
}

// steady reports whether every step of a path goes down. The first and the last may be empty, as slashes at the ends
// make them.
func steady(path string) bool {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	for _, step := range strings.Split(path, "/") {
		if step == "" || step == "." || step == ".." {
			return path == ""
		}
	}
	return true
}
