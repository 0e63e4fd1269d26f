package edge

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/gpuaas/app-platform/transport"
)

// Header fields in which a proxy names the caller that it forwards.
const (
	XForwardedFor = "X-Forwarded-For"
	Forwarded     = "Forwarded"
)

// Bounds of what is read of these fields.
const (
	maxHops    = 32
	maxForward = 4 << 10 // bytes
)

// Proxies are the peers that are trusted to report the caller's address and scheme. The zero value trusts no peer.
type Proxies struct {
	trusted []netip.Prefix
	field   string
}

// ParseProxies reads the addresses or CIDR ranges of proxies, and the one header field that they
// write: XForwardedFor, with X-Forwarded-Proto beside it, or Forwarded of RFC 7239. Only the one is
// read, since a proxy that writes one passes the other on as the caller sent it.
func ParseProxies(ranges []string, field string) (Proxies, error) {
	proxies := Proxies{field: http.CanonicalHeaderKey(field)}
	if proxies.field != XForwardedFor && proxies.field != Forwarded {
		return Proxies{}, fmt.Errorf("trusted proxies: the header must be %s or %s, not %q", XForwardedFor,
			Forwarded, field)
	}
	for _, text := range ranges {
		text = strings.TrimSpace(text)
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			single, single4 := netip.ParseAddr(text)
			if single4 != nil {
				return Proxies{}, fmt.Errorf("trusted proxies: %q is neither an address nor a range", text)
			}
			single = single.Unmap()
			prefix = netip.PrefixFrom(single, single.BitLen())
		}
		proxies.trusted = append(proxies.trusted, prefix.Masked())
	}
	return proxies, nil
}

type clientKey struct{}

// Handler notes, for Address and transport.Secure, where a request comes from. For a peer that is not a proxy of ours
// only the connection counts, whatever its headers claim.
func (p Proxies) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, secure := p.caller(r)
		ctx := context.WithValue(r.Context(), clientKey{}, address)
		if secure {
			ctx = transport.WithSecure(ctx)
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Address returns the caller's address without a port, as far as it can be trusted.
func Address(r *http.Request) string {
	if r == nil {
		return ""
	}
	if address, ok := r.Context().Value(clientKey{}).(string); ok {
		return address
	}
	return peer(r)
}

// Network returns what one caller can change at will: an IPv4 address, or the /64 of an IPv6 one.
func Network(address string) string {
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	parsed = parsed.Unmap().WithZone("")
	if parsed.Is4() {
		return parsed.String()
	}
	return netip.PrefixFrom(parsed, 64).Masked().String()
}

func peer(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

func (p Proxies) trusts(address string) bool {
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	parsed = parsed.Unmap().WithZone("")
	for _, prefix := range p.trusted {
		if prefix.Contains(parsed) {
			return true
		}
	}
	return false
}

// caller returns the address at the far end of our proxies, and whether the request came over TLS.
func (p Proxies) caller(r *http.Request) (address string, secure bool) {
	address, secure = peer(r), r.TLS != nil
	if !p.trusts(address) {
		return address, secure
	}
	hops, scheme := p.hops(r.Header)
	if scheme != "" {
		secure = scheme == "https"
	}
	// The right end was written by the proxy that we talk to; what lies left of the first untrusted address was written
	// by the machine there.
	for i := len(hops) - 1; i >= 0 && p.trusts(address); i-- {
		hop, ok := hopAddress(hops[i])
		if !ok {
			break
		}
		address = hop
	}
	return address, secure
}

// hops returns the addresses that the field names, the nearest last, and the scheme that the nearest proxy was called
// with; "" when the field does not name it.
func (p Proxies) hops(header http.Header) (hops []string, scheme string) {
	joined := strings.Join(header.Values(p.field), ",")
	if len(joined) > maxForward {
		_, joined, _ = strings.Cut(joined[len(joined)-maxForward:], ",") // without the hop that was cut in two
	}
	parts := strings.Split(joined, ",")
	if len(parts) > maxHops {
		parts = parts[len(parts)-maxHops:]
	}
	if p.field == XForwardedFor {
		said := strings.Split(strings.Join(header.Values("X-Forwarded-Proto"), ","), ",")
		return parts, strings.ToLower(strings.TrimSpace(said[len(said)-1]))
	}
	for i, part := range parts {
		var proto string
		parts[i], proto = element(part)
		scheme = proto // the last one stays
	}
	return parts, scheme
}

// element reads one element of Forwarded: `for=192.0.2.60;proto=http;by=203.0.113.43`.
func element(text string) (address, scheme string) {
	for _, pair := range strings.Split(text, ";") {
		name, value, _ := strings.Cut(pair, "=")
		value = strings.TrimSpace(value)
		if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
			value = value[1 : len(value)-1]
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "for":
			address = value
		case "proto":
			scheme = strings.ToLower(value)
		}
	}
	return address, scheme
}

// hopAddress reads an address with or without a port, in brackets or not.
func hopAddress(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if parsed, err := netip.ParseAddrPort(text); err == nil {
		return parsed.Addr().Unmap().WithZone("").String(), true
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	parsed, err := netip.ParseAddr(text)
	if err != nil {
		return "", false
	}
	return parsed.Unmap().WithZone("").String(), true
}
