package wsapi

import (
	"bufio"
	"encoding/binary"
	"io"
	"unicode/utf8"
)

// Opcodes of RFC 6455.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA
)

// violation is a breach of the protocol by the peer, and how to close for it.
type violation struct{ CloseReason }

// Error implements error.
func (v *violation) Error() string { return v.Reason }

func violate(code int, reason string) error { return &violation{CloseReason{code, reason}} }

// frames reads a client's messages. Memory grows with what has arrived, never with what a
// header announces.
type frames struct {
	in      *bufio.Reader
	limit   int
	scratch [8]byte

	partial   []byte // of a fragmented message
	partialOp byte   // its opcode; 0 when there is none
}

// header of one frame from a client.
type header struct {
	fin    bool
	op     byte
	length uint64
	mask   [4]byte
}

// next returns the next whole message or control frame.
func (f *frames) next() (op byte, payload []byte, err error) {
	for {
		h, err := f.header()
		if err != nil {
			return 0, nil, err
		}
		if h.op >= opClose {
			payload, err = f.payload(nil, h)
			return h.op, payload, err
		}
		if f.partial, err = f.payload(f.partial, h); err != nil {
			return 0, nil, err
		}
		if h.op != opContinuation {
			f.partialOp = h.op
		}
		if h.fin {
			op, payload = f.partialOp, f.partial
			f.partial, f.partialOp = nil, 0
			if op == opText && !utf8.Valid(payload) {
				return 0, nil, violate(CloseInvalidText, "the message is not UTF-8")
			}
			return op, payload, nil
		}
	}
}

func (f *frames) header() (h header, err error) {
	b := f.scratch[:2]
	if _, err := io.ReadFull(f.in, b); err != nil {
		return h, err
	}
	h.fin, h.op, h.length = b[0]&0x80 != 0, b[0]&0x0f, uint64(b[1]&0x7f)
	masked := b[1]&0x80 != 0
	if b[0]&0x70 != 0 {
		return h, violate(CloseProtocolError, "reserved bits are set")
	}
	if !masked {
		return h, violate(CloseProtocolError, "frames from a client must be masked")
	}
	if err := f.allowed(h); err != nil {
		return h, err
	}
	if err := f.length(&h); err != nil {
		return h, err
	}
	_, err = io.ReadFull(f.in, h.mask[:])
	return h, err
}

// allowed checks a frame's kind against the message that is being read.
func (f *frames) allowed(h header) error {
	switch {
	case h.op > opPong, h.op > opBinary && h.op < opClose:
		return violate(CloseProtocolError, "unknown opcode")
	case h.op >= opClose && (!h.fin || h.length > 125):
		return violate(CloseProtocolError, "a control frame is not fragmented and has at most 125 bytes")
	case h.op == opContinuation && f.partialOp == 0:
		return violate(CloseProtocolError, "a continuation frame without a message that was begun")
	case h.op != opContinuation && h.op < opClose && f.partialOp != 0:
		return violate(CloseProtocolError, "a new message begins before the last one has ended")
	}
	return nil
}

func (f *frames) length(h *header) error {
	switch h.length {
	case 126:
		if _, err := io.ReadFull(f.in, f.scratch[:2]); err != nil {
			return err
		}
		h.length = uint64(binary.BigEndian.Uint16(f.scratch[:2]))
	case 127:
		if _, err := io.ReadFull(f.in, f.scratch[:8]); err != nil {
			return err
		}
		h.length = binary.BigEndian.Uint64(f.scratch[:8])
	}
	room := uint64(f.limit - len(f.partial)) // #nosec G115 -- what is gathered never passes the limit
	if h.op < opClose && h.length > room {
		return violate(CloseTooBig, "the message is too big")
	}
	return nil
}

// chunk is how much is allocated ahead of what has arrived.
const chunk = 4 << 10

// payload appends a frame's unmasked payload to into.
func (f *frames) payload(into []byte, h header) ([]byte, error) {
	start := len(into)
	left := int(h.length) // #nosec G115 -- a data frame's was held against the limit, a control frame's is at most 125
	for left > 0 {
		n := min(left, chunk)
		at := len(into)
		into = append(into, make([]byte, n)...)
		if _, err := io.ReadFull(f.in, into[at:]); err != nil {
			return nil, err
		}
		left -= n
	}
	for i := range into[start:] {
		into[start+i] ^= h.mask[i&3]
	}
	return into, nil
}

// closing reads the payload of a close frame: the code to answer with.
func closing(payload []byte) (CloseReason, error) {
	if len(payload) == 0 {
		return CloseReason{Code: closeNothingReceived}, nil
	}
	if len(payload) == 1 {
		return CloseReason{}, violate(CloseProtocolError, "a close code has two bytes")
	}
	code := int(binary.BigEndian.Uint16(payload))
	if !validCode(code) {
		return CloseReason{}, violate(CloseProtocolError, "the close code may not be sent")
	}
	if !utf8.Valid(payload[2:]) {
		return CloseReason{}, violate(CloseInvalidText, "the close reason is not UTF-8")
	}
	return CloseReason{Code: code}, nil
}

func validCode(code int) bool {
	switch {
	case code >= 1000 && code <= 1003, code >= 1007 && code <= 1014, code >= 3000 && code <= 4999:
		return true
	}
	return false
}

// appendHeader writes the header of an unmasked, whole frame.
func appendHeader(out []byte, op byte, length int) []byte {
	switch {
	case length < 126:
		return append(out, 0x80|op, byte(length))
	case length < 1<<16:
		return binary.BigEndian.AppendUint16(append(out, 0x80|op, 126),
			uint16(length)) // #nosec G115 -- this case is of lengths below 65,536
	default:
		return binary.BigEndian.AppendUint64(append(out, 0x80|op, 127), uint64(length))
	}
}

// headerSize is the length that appendHeader adds.
func headerSize(length int) int {
	switch {
	case length < 126:
		return 2
	case length < 1<<16:
		return 4
	default:
		return 10
	}
}

// closeFrame is a whole close frame; the reason is cut to what fits, on a rune's edge.
func closeFrame(why CloseReason) []byte {
	if why.Code == closeNothingReceived {
		return appendHeader(nil, opClose, 0)
	}
	reason := why.Reason
	for len(reason) > 123 {
		_, size := utf8.DecodeLastRuneInString(reason)
		reason = reason[:len(reason)-size]
	}
	out := appendHeader(nil, opClose, 2+len(reason))
	out = binary.BigEndian.AppendUint16(out, uint16(why.Code)) // #nosec G115 -- close codes are constants below 5,000
	return append(out, reason...)
}
