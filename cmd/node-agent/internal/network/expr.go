package network

import (
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// The parts of rules. Each returns expressions that let a packet go on to the next ones when it fits.

const (
	register    = 1
	offsetSaddr = 12 // in an IPv4 header
	offsetDaddr = 16
)

func join(parts ...[]expr.Any) (out []expr.Any) {
	for _, part := range parts {
		out = append(out, part...)
	}
	return out
}

func matches(op expr.CmpOp, data []byte, load expr.Any) []expr.Any {
	return []expr.Any{load, &expr.Cmp{Op: op, Register: register, Data: data}}
}

// from and to fit packets whose device has a name that begins so.
func from(prefix string) []expr.Any {
	return matches(expr.CmpOpEq, []byte(prefix), &expr.Meta{Key: expr.MetaKeyIIFNAME, Register: register})
}

func to(prefix string) []expr.Any {
	return matches(expr.CmpOpEq, []byte(prefix), &expr.Meta{Key: expr.MetaKeyOIFNAME, Register: register})
}

func notTo(prefix string) []expr.Any {
	return matches(expr.CmpOpNeq, []byte(prefix), &expr.Meta{Key: expr.MetaKeyOIFNAME, Register: register})
}

func ipv4() []expr.Any { return family(unix.NFPROTO_IPV4) }

func ipv6() []expr.Any { return family(unix.NFPROTO_IPV6) }

func family(which byte) []expr.Any {
	return matches(expr.CmpOpEq, []byte{which}, &expr.Meta{Key: expr.MetaKeyNFPROTO, Register: register})
}

// address loads an address of the IPv4 header.
func address(offset uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4}
}

// within fits addresses of a block, and outside the others.
func within(offset uint32, block netip.Prefix) []expr.Any { return masked(expr.CmpOpEq, offset, block) }

func outside(offset uint32, block netip.Prefix) []expr.Any {
	return masked(expr.CmpOpNeq, offset, block)
}

func masked(op expr.CmpOp, offset uint32, block netip.Prefix) []expr.Any {
	mask := ^uint32(0) << (32 - block.Bits())
	return append(ipv4(), address(offset),
		&expr.Bitwise{SourceRegister: register, DestRegister: register, Len: 4,
			Mask: binaryutil.BigEndian.PutUint32(mask), Xor: make([]byte, 4)},
		&expr.Cmp{Op: op, Register: register, Data: block.Masked().Addr().AsSlice()})
}

// inSet fits addresses of a set; of a map of verdicts it does what the map says of the address.
func inSet(offset uint32, set *nftables.Set) []expr.Any {
	lookup := &expr.Lookup{SourceRegister: register, SetName: set.Name, SetID: set.ID}
	if set.IsMap {
		lookup.IsDestRegSet = true
	}
	return append(ipv4(), address(offset), lookup)
}

// replies fits packets of connections that were let through before, and errors about them.
func replies() []expr.Any {
	state := expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED
	return []expr.Any{
		&expr.Ct{Register: register, Key: expr.CtKeySTATE},
		&expr.Bitwise{SourceRegister: register, DestRegister: register, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(state), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: register, Data: make([]byte, 4)},
	}
}

// forged fits packets whose sender the node would not reach through the device that they came from.
func forged() []expr.Any {
	return matches(expr.CmpOpEq, make([]byte, 4), &expr.Fib{Register: register, ResultOIF: true, FlagSADDR: true,
		FlagIIF: true})
}

// port fits packets to a port.
func port(p Port) []expr.Any {
	protocol := byte(unix.IPPROTO_TCP)
	if p.Protocol == "udp" {
		protocol = unix.IPPROTO_UDP
	}
	return append(matches(expr.CmpOpEq, []byte{protocol}, &expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register}),
		matches(expr.CmpOpEq, binaryutil.BigEndian.PutUint16(p.Number),
			&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2})...)
}

func accept() []expr.Any { return []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}} }

func drop() []expr.Any { return []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}} }

func jump(chain string) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: expr.VerdictJump, Chain: chain}}
}

// reset and unreachable answer the sender at once, so that a program that connects to a closed port fails instead of
// waiting. The kernel sends resets without a bound, and messages at its own pace for them.
func reset() []expr.Any {
	return append(matches(expr.CmpOpEq, []byte{unix.IPPROTO_TCP},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register}),
		&expr.Reject{Type: unix.NFT_REJECT_TCP_RST})
}

func unreachable() []expr.Any {
	return []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED}}
}

func masquerade() []expr.Any { return []expr.Any{&expr.Masq{}} }
