package dial

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddressesThatLeadInsideAreNotPublic(t *testing.T) {
	t.Parallel()
	for _, inner := range []string{
		"127.0.0.1", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254",
		"100.100.100.200",
		"192.0.0.192",
		"198.18.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "::ffff:10.0.0.1", "::ffff:100.64.0.1",
		"fe80::1%eth0",
		"fd00::1",
		"64:ff9b::a00:1", "2002:a00:1::1", "2001:0:a00:1::1",
	} {
		require.False(t, Public(netip.MustParseAddr(inner)), inner)
	}
	for _, outer := range []string{"1.1.1.1", "100.63.255.255", "100.128.0.1", "::ffff:8.8.8.8", "2606:4700::1111",
		"2001:4860:4860::8888"} {
		require.True(t, Public(netip.MustParseAddr(outer)), outer)
	}
}
