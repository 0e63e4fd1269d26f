package source

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// maxLocation bounds a location, in bytes.
const maxLocation = 400

const (
	registryForm = "must be host[:port][/path] in lower case, such as registry.example.com/team, without a scheme, a " +
		"tag or a closing slash"
	addressForm = "must be an https address in its plain form that ends with a slash, without user, query or " +
		"fragment, and without the port 443"
	bucketForm = addressForm + ": https://endpoint/bucket/[prefix/]"
)

var (
	hostForm       = regexp.MustCompile(`^(?:[a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	repositoryForm = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$`)
	stepForm       = regexp.MustCompile(`^[A-Za-z0-9._~+=@-]+$`)
	bucketName     = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionForm     = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$`)
)

// address parses a location strictly, since it is compared with artifacts' addresses letter by letter. It returns the
// address that Service.Allow checks, or nil and the form that the location should have.
func address(kind lifecycle.SourceKind, location string) (at *url.URL, should string) {
	var host, path, form string
	switch kind {
	case lifecycle.SourceOCI:
		form = registryForm
		host, path, _ = strings.Cut(location, "/")
		if strings.HasSuffix(location, "/") || !steps(path, repositoryForm) {
			return nil, form
		}
	default:
		form = addressForm
		if kind == lifecycle.SourceS3 {
			form = bucketForm
		}
		rest, secure := strings.CutPrefix(location, "https://")
		inner, closed := strings.CutSuffix(rest, "/")
		host, path, _ = strings.Cut(inner, "/")
		bucket, _, _ := strings.Cut(path, "/")
		if !secure || !closed || strings.HasSuffix(inner, "/") || !steps(path, stepForm) ||
			kind == lifecycle.SourceS3 &&
				!bucketName.MatchString(bucket) {
			return nil, form
		}
	}
	if len(location) > maxLocation || !sound(host) || kind == lifecycle.SourceOCI && !strings.ContainsAny(host, ".:") &&
		host != "localhost" {
		return nil, form
	}
	return &url.URL{Scheme: "https", Host: host, Path: "/" + path}, ""
}

// steps reports whether every step of a path, which may be empty, has a form and goes down.
func steps(path string, form *regexp.Regexp) bool {
	if path == "" {
		return true
	}
	for _, step := range strings.Split(path, "/") {
		if step == "." || step == ".." || !form.MatchString(step) {
			return false
		}
	}
	return true
}

// sound reports whether text is a host in lower case, a name or an IP in its one spelling, with or without a port other
// than that of HTTPS.
func sound(text string) bool {
	host, port := text, ""
	if at := strings.LastIndexByte(text, ':'); at >= 0 && !strings.HasSuffix(text, "]") {
		host, port = text[:at], text[at+1:]
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 || number == 443 || strconv.FormatUint(number, 10) != port {
			return false
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		ip, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		return err == nil && ip.Is6() && ip.Zone() == "" && "["+ip.String()+"]" == host
	}
	return len(host) <= 253 && hostForm.MatchString(host)
}
