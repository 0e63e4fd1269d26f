package wsapi

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// clientEnv makes the test binary a load client: "host:port sockets subscribe|listen".
const clientEnv = "FANOUT_CLIENT"

// TestMain runs the load client of the fan-out benchmark in a process of its own, so that
// its work and memory are not the server's.
func TestMain(m *testing.M) {
	spec := os.Getenv(clientEnv)
	if spec == "" {
		os.Exit(m.Run())
	}
	if err := runLoadClient(spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// received is what the load client saw of one round.
type roundStats struct {
	Messages int           `json:"messages"`
	P50      time.Duration `json:"p50"`
	P99      time.Duration `json:"p99"`
}

// loadClient reads many sockets on one epoll loop, as cheaply as can be.
type loadClient struct {
	epoll  int
	conns  map[int32]*loadConn
	delays []time.Duration
	seen   int
}

// loadConn is a parser of unmasked frames that skips payloads.
type loadConn struct {
	head []byte // of a frame, not yet whole
	skip int    // payload bytes still to come
}

func runLoadClient(spec string) error {
	parts := strings.Fields(spec)
	addr, err := netip.ParseAddrPort(parts[0])
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return err
	}
	c := &loadClient{conns: make(map[int32]*loadConn, n)}
	if c.epoll, err = syscall.EpollCreate1(0); err != nil {
		return err
	}
	for range n {
		if err := c.open(addr, parts[2] == "subscribe"); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		want, err := strconv.Atoi(in.Text())
		if err != nil {
			return err
		}
		stats, err := c.round(want)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(stats); err != nil {
			return err
		}
	}
	return in.Err()
}

// open connects, upgrades and, with subscribe, subscribes under the id 1.
func (c *loadClient) open(addr netip.AddrPort, subscribe bool) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	request := "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: " +
		"13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
	if err := exchange(fd, []byte(request), "\r\n\r\n"); err != nil {
		return err
	}
	if subscribe {
		if err := exchange(fd, maskedText(`{"type":"connection_init"}`), "connection_ack"); err != nil {
			return err
		}
		text := `{"id":"1","type":"subscribe","payload":{"query":"subscription { topic(name: \"t\") }"}}`
		if _, err := syscall.Write(fd, maskedText(text)); err != nil {
			return err
		}
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		return err
	}
	c.conns[int32(fd)] = &loadConn{}
	return syscall.EpollCtl(c.epoll, syscall.EPOLL_CTL_ADD, fd,
		&syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
}

// exchange sends and reads until the answer holds a mark.
func exchange(fd int, out []byte, until string) error {
	if _, err := syscall.Write(fd, out); err != nil {
		return err
	}
	var got []byte
	buf := make([]byte, 1024)
	for !bytes.Contains(got, []byte(until)) {
		n, err := syscall.Read(fd, buf)
		if err != nil || n == 0 {
			return fmt.Errorf("handshake ended after %q: %w", got, err)
		}
		got = append(got, buf[:n]...)
	}
	return nil
}

// maskedText is a client's text frame under the mask 0, which changes nothing.
func maskedText(text string) []byte {
	out := appendHeader(nil, opText, len(text))
	out[1] |= 0x80
	return append(append(out, 0, 0, 0, 0), text...)
}

// round reads until that many text messages have come in.
func (c *loadClient) round(want int) (roundStats, error) {
	c.seen, c.delays = 0, make([]time.Duration, 0, min(want, 4_000_000))
	events := make([]syscall.EpollEvent, 1024)
	buf := make([]byte, 256<<10)
	for c.seen < want {
		n, err := syscall.EpollWait(c.epoll, events, 20_000)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return roundStats{}, fmt.Errorf("%d of %d messages: %w", c.seen, want, err)
		}
		for _, event := range events[:n] {
			read, err := syscall.Read(int(event.Fd), buf)
			if err == syscall.EAGAIN {
				continue
			}
			if err != nil || read == 0 {
				return roundStats{}, fmt.Errorf("socket closed after %d of %d messages: %w", c.seen, want, err)
			}
			c.feed(c.conns[event.Fd], buf[:read], time.Now().UnixNano())
		}
	}
	slices.Sort(c.delays)
	at := func(q float64) time.Duration { return c.delays[int(q*float64(len(c.delays)-1))] }
	return roundStats{c.seen, at(0.5), at(0.99)}, nil
}

// stampAt is where a benchmark payload's send time begins, and stampEnd where it ends.
var stampAt = len(`{"id":"1","type":"next","payload":{"data":{"topic":"`)

const stampLen = 19

// feed counts the frames in data and takes the delay of those whose stamp is in it.
func (c *loadClient) feed(conn *loadConn, data []byte, now int64) {
	for len(data) > 0 {
		if conn.skip > 0 {
			n := min(conn.skip, len(data))
			conn.skip, data = conn.skip-n, data[n:]
			continue
		}
		conn.head = append(conn.head, data[0])
		data = data[1:]
		length, whole := frameLength(conn.head)
		if !whole {
			continue
		}
		if conn.head[0]&0x0f == opText && length > 100 {
			c.seen++
			if len(data) > stampAt+stampLen {
				if sent, err := strconv.ParseInt(string(data[stampAt:stampAt+stampLen]), 10, 64); err == nil {
					c.delays = append(c.delays, time.Duration(now-sent))
				}
			}
		}
		conn.head, conn.skip = conn.head[:0], length
	}
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
