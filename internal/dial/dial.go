// Package dial is the only way out of the platform to an address that another party chose: an
// adapter's, a registry's, a webhook's, an identity provider's.
//
// What may be dialled is judged on the address that is about to be connected to, in the dialer and after any name was
// resolved, so that a name which turns into another address meanwhile gets round nothing. Hosts that are numbers in any
// spelling but the plain one are refused unresolved, since libraries differ about which address they are. Proxies that
// the environment names are ignored: one would connect in our stead, to an unjudged address. Redirects are not
// followed, answers are bounded.
package dial

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// connectTimeout bounds one connection, from the name's resolution on.
const connectTimeout = 5 * time.Second

// Refused is an address that may not be dialled. It is for logs and for the user that chose the address.
type Refused struct{ Address string }

// Error says what was refused.
func (r *Refused) Error() string { return fmt.Sprintf("%.200s may not be dialled", r.Address) }

// Func connects like net.Dialer.DialContext, with a Refused in the error's chain for an address
// that may not be dialled.
type Func func(ctx context.Context, network, address string) (net.Conn, error)

// To is a Func that connects to what the policy allows and, when public is set, to every address of
// the public Internet besides.
func To(policy Policy, public bool) Func { return to(policy, public, nil) }

// to is To with a resolver of a test's own; nil is the system's.
func to(policy Policy, public bool, resolver *net.Resolver) Func {
	dialer := &net.Dialer{Timeout: connectTimeout, Resolver: resolver,
		Control: func(_, address string, _ syscall.RawConn) error {
			parsed, err := netip.ParseAddrPort(address)
			if err != nil || !reachable(policy, public, parsed) {
				return &Refused{Address: address}
			}
			return nil
		}}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil || disguised(host) || !strings.HasPrefix(network, "tcp") {
			return nil, &Refused{Address: address}
		}
		return dialer.DialContext(ctx, network, address)
	}
}

func reachable(policy Policy, public bool, address netip.AddrPort) bool {
	return address.Port() != 0 && (policy.Allows(address) || public && Public(address.Addr()))
}

// Check judges an address before anything is dialled, as far as possible without resolving a name: it must be http or
// https without a user, and a host that is an IP must be one that To connects to. A Refused reports that it is not. A
// name is judged when it is dialled.
func Check(policy Policy, public bool, address *url.URL) error {
	refused := &Refused{Address: address.Host}
	host := address.Hostname()
	port := map[string]uint16{"http": 80, "https": 443}[address.Scheme]
	if port == 0 || address.User != nil || host == "" || disguised(host) {
		return refused
	}
	if text := address.Port(); text != "" {
		number, err := net.LookupPort("tcp", text)
		if err != nil {
			return refused
		}
		port = uint16(number) // #nosec G115 -- LookupPort answers 0 to 65535
	}
	if ip, err := netip.ParseAddr(host); err == nil && !reachable(policy, public, netip.AddrPortFrom(ip, port)) {
		return refused
	}
	return nil
}

// disguised reports whether a host's last label is a number though the whole is not a plain IP: 127.1, 0x7f000001,
// 017700000001, 2130706433. Some resolvers take it for an IPv4 address.
func disguised(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	host = strings.TrimSuffix(host, ".")
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	if last == "" {
		return true
	}
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}
