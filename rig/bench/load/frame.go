package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"syscall"
)

const (
	opText      = 1
	opClose     = 8
	opPing      = 9
	opPong      = 10
	numberChars = 8
	// shortest is the length below which a text frame is the protocol's own and no event.
	shortest = 100
	// headLimit bounds the part of a message that is looked at.
	headLimit = 256
)

// conn is a parser of unmasked frames that looks at the beginning of each and skips the rest.
type conn struct {
	numberAt int
	head     []byte // of a frame, not yet whole
	length   int    // of the payload under way
	text     bool
	closed   bool
	begin    []byte // of the payload, as far as it is looked at
	skip     int    // payload bytes still to come; 0 between frames
	pinged   bool   // a ping came that was not answered
}

// feed counts the messages that end in data.
func (c *conn) feed(data []byte, message func(number int)) error {
	for len(data) > 0 {
		if c.skip > 0 {
			n := min(c.skip, len(data))
			if room := headLimit - len(c.begin); room > 0 && (c.text || c.closed) {
				c.begin = append(c.begin, data[:min(n, room)]...)
			}
			c.skip, data = c.skip-n, data[n:]
			if c.skip == 0 {
				if err := c.end(message); err != nil {
					return err
				}
			}
			continue
		}
		c.head = append(c.head, data[0])
		data = data[1:]
		if length, whole := frameLength(c.head); whole {
			switch c.head[0] & 0x0f {
			case opClose:
				c.closed = true
			case opPing:
				c.pinged = true
			}
			c.text, c.length, c.skip, c.head, c.begin = c.head[0]&0x0f == opText, length, length, c.head[:0],
				c.begin[:0]
		}
	}
	return nil
}

func (c *conn) end(message func(number int)) error {
	if c.closed && len(c.begin) >= 2 {
		return fmt.Errorf("the server closed a socket: %d %s", binary.BigEndian.Uint16(c.begin), c.begin[2:])
	}
	if !c.text || c.length < shortest {
		return nil
	}
	if len(c.begin) < c.numberAt+numberChars {
		return fmt.Errorf("a message without a number: %q", c.begin)
	}
	number, err := strconv.Atoi(string(c.begin[c.numberAt : c.numberAt+numberChars]))
	if err != nil {
		return fmt.Errorf("a message without a number: %q", c.begin)
	}
	message(number)
	return nil
}

func frameLength(head []byte) (length int, whole bool) {
	if len(head) < 2 {
		return 0, false
	}
	switch head[1] {
	case 126:
		if len(head) < 4 {
			return 0, false
		}
		return int(binary.BigEndian.Uint16(head[2:])), true
	case 127:
		if len(head) < 10 {
			return 0, false
		}
		return int(binary.BigEndian.Uint64(head[2:])), true
	}
	return int(head[1]), true
}

// Frame is an unmasked text frame, as servers send it.
func Frame(text []byte) []byte {
	return append(header(len(text), 0), text...)
}

// pong is an unasked pong, which counts as a sign of life like any other frame.
var pong = []byte{0x80 | opPong, 0x80, 0, 0, 0, 0}

// masked is a client's text frame under the mask 0, which changes nothing.
func masked(text string) []byte {
	return append(append(header(len(text), 0x80), 0, 0, 0, 0), text...)
}

func header(length int, mask byte) []byte {
	switch {
	case length < 126:
		return []byte{0x80 | opText, mask | byte(length)}
	case length < 1<<16:
		return binary.BigEndian.AppendUint16([]byte{0x80 | opText, mask | 126}, uint16(length))
	}
	return binary.BigEndian.AppendUint64([]byte{0x80 | opText, mask | 127}, uint64(length))
}

// handshake sends and reads until the answer holds a mark.
func handshake(fd int, out []byte, until string) error {
	if _, err := syscall.Write(fd, out); err != nil {
		return err
	}
	var got []byte
	buffer := make([]byte, 1024)
	for !bytes.Contains(got, []byte(until)) {
		n, err := syscall.Read(fd, buffer)
		if err != nil || n == 0 {
			return fmt.Errorf("handshake ended after %.200q: %w", got, err)
		}
		got = append(got, buffer[:n]...)
	}
	return nil
}
