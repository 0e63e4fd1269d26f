package ids

import (
	"encoding/binary"
	"strings"
)

// alphabet is Crockford's base32 in lower case: no i, l, o, u. It is in ASCII order, so text order is byte order.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// appendBase32 appends the 26 characters of raw, most significant bits first; the first character holds 3 bits.
func appendBase32(buf []byte, raw [16]byte) []byte {
	hi, lo := binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])
	var out [bodyLen]byte
	for i := bodyLen - 1; i >= 0; i-- {
		out[i] = alphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return append(buf, out[:]...)
}

// leadingBits is the first 48 of the 128 bits of a valid body: the milliseconds of a UUIDv7. The first character
// holds 3 of them and each of the next nine 5.
func leadingBits(body string) (bits int64) {
	for i := range 10 {
		bits = bits<<5 | int64(strings.IndexByte(alphabet, body[i]))
	}
	return bits
}

// validBody reports whether body is what appendBase32 would write for some 16 bytes. Only one spelling is
// accepted: upper case and the look-alikes i, l, o are refused, so that an id compares as plain text.
func validBody(body string) bool {
	if len(body) != bodyLen || body[0] > '7' {
		return false
	}
	for i := range len(body) {
		if !validChar[body[i]] {
			return false
		}
	}
	return true
}

// validChar marks the 32 bytes of the alphabet.
var validChar = func() (table [256]bool) {
	for i := range len(alphabet) {
		table[alphabet[i]] = true
	}
	return table
}()
