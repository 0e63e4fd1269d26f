package dial

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// maxRules bounds the rules of a policy.
const maxRules = 256

// Policy is an operator's allow-list of addresses and ports. The zero value allows nothing.
type Policy struct {
	rules []rule
	local bool // nothing but loopback addresses, whatever the rules allow
}

// rule allows a range of addresses, on one port or on all.
type rule struct {
	prefix netip.Prefix
	port   uint16 // 0 for all
}

// Loopback is the policy for development: this machine alone.
func Loopback() Policy {
	policy, err := ParsePolicy("127.0.0.0/8,::1/128")
	if err != nil {
		return Policy{} // allows nothing
	}
	return policy
}

// Local returns the policy narrowed to this machine: of what it allows, the loopback addresses.
func (p Policy) Local() Policy {
	p.local = true
	return p
}

// ParsePolicy reads rules separated by commas: an address or a CIDR range, each with an optional
// port, such as "127.0.0.0/8", "10.77.0.0/24:8443" or "[fd00::/8]:443". Nothing else is allowed; an
// empty text allows nothing.
func ParsePolicy(text string) (Policy, error) {
	var policy Policy
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if len(policy.rules) == maxRules {
			return Policy{}, fmt.Errorf("dial policy: more than %d rules", maxRules)
		}
		parsed, err := parseRule(part)
		if err != nil {
			return Policy{}, err
		}
		policy.rules = append(policy.rules, parsed)
	}
	return policy, nil
}

func parseRule(text string) (rule, error) {
	address, port := splitPort(text)
	parsed := rule{}
	if port != "" {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return rule{}, fmt.Errorf("dial policy: %q has no port from 1 to 65535", text)
		}
		parsed.port = uint16(number)
	}
	if prefix, err := netip.ParsePrefix(address); err == nil {
		parsed.prefix = prefix.Masked()
		return parsed, nil
	}
	single, err := netip.ParseAddr(address)
	if err != nil {
		return rule{}, fmt.Errorf("dial policy: %q is neither an address nor a range", text)
	}
	single = single.Unmap()
	parsed.prefix = netip.PrefixFrom(single, single.BitLen())
	return parsed, nil
}

// splitPort takes a port off: what follows the brackets, or the only colon of an IPv4 rule.
func splitPort(text string) (address, port string) {
	if rest, ok := strings.CutPrefix(text, "["); ok {
		address, port, closed := strings.Cut(rest, "]")
		if !closed {
			return text, "" // which is no address
		}
		return address, strings.TrimPrefix(port, ":")
	}
	if strings.Count(text, ":") == 1 {
		address, port, _ = strings.Cut(text, ":")
		return address, port
	}
	return text, ""
}

// Allows reports whether the address may be dialled.
func (p Policy) Allows(address netip.AddrPort) bool {
	host := address.Addr().Unmap().WithZone("")
	if p.local && !host.IsLoopback() {
		return false
	}
	for _, allowed := range p.rules {
		if allowed.prefix.Contains(host) && (allowed.port == 0 || allowed.port == address.Port()) {
			return true
		}
	}
	return false
}
