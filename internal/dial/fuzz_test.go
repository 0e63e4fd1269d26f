package dial

import (
	"net/netip"
	"net/url"
	"testing"
)

// FuzzCheck: an address that names an IP, and passes, is one of the public Internet; and a policy
// allows what it says alone.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{"https://8.8.8.8", "http://127.1", "http://[::ffff:127.0.0.1]", "https://0x7f.1",
		"https://1.1.1.1.", "http://a.1", "https://[fe80::1%25eth0]:443", "//x", "https://x:0"} {
		f.Add(seed, "10.0.0.0/8:8443, [fd00::/8]:443, ::1")
	}
	f.Fuzz(func(t *testing.T, text, rules string) {
		address, err := url.Parse(text)
		if err != nil {
			return
		}
		if Check(Policy{}, true, address) == nil {
			if ip, err := netip.ParseAddr(address.Hostname()); err == nil && !Public(ip) {
				t.Fatalf("%s leads inside", text)
			}
			if address.Scheme != "http" && address.Scheme != "https" {
				t.Fatalf("%s is not asked over HTTP", text)
			}
		}
		policy, err := ParsePolicy(rules)
		if err != nil {
			return
		}
		if len(policy.rules) == 0 && policy.Allows(netip.MustParseAddrPort("127.0.0.1:80")) {
			t.Fatal("no rule allows something")
		}
	})
}
