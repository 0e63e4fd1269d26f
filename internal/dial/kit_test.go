package dial

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// resolver is a name server of the test's own: every name has, at its nth question for IPv4, the nth
// of the addresses, and the last one from then on.
func resolver(t *testing.T, addresses ...string) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	asked := new(atomic.Int32)
	go func() {
		in := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(in)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(answerTo(in[:n], addresses, asked), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// answerTo is the DNS message that answers one question, without an address where the question is
// for another family.
func answerTo(question []byte, addresses []string, asked *atomic.Int32) []byte {
	end := 12
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	end += 5 // the last label, the type and the class
	kind := binary.BigEndian.Uint16(question[end-4:])
	out := append([]byte{question[0], question[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question[12:end]...)
	next := addresses[min(int(asked.Load()), len(addresses)-1)]
	ip := netip.MustParseAddr(next)
	if kind == 1 {
		asked.Add(1)
	}
	if (kind == 1) != ip.Is4() {
		return out
	}
	out[7] = 1
	out = append(out, 0xc0, 12, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(ip.BitLen()/8))
	return append(out, ip.AsSlice()...)
}
