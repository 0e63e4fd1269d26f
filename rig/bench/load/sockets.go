package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/rig/bench/process"
)

// SocketsRole is the child that holds many WebSocket connections.
const SocketsRole process.Role = "sockets"

// patience bounds waiting for messages that do not come.
const patience = time.Minute

// SocketsConfig says where to connect and what to subscribe to.
type SocketsConfig struct {
	Address string
	Sockets int
	// Subscribe says to speak graphql-transport-ws; otherwise the sockets only listen.
	Subscribe bool
	Tokens    []string // dealt to the sockets in turn
	Document  string
	Instance  string
	Afters    []string // cursors, dealt to the sockets in turn
	// NumberAt is the offset in a message of the event's number, which is eight digits long.
	NumberAt int
}

// delivery is one message that came.
type delivery struct {
	number int32
	at     int64 // nanoseconds since 1970
}

// client reads many sockets on one epoll loop, as cheaply as can be.
type client struct {
	config SocketsConfig
	epoll  int
	conns  map[int32]*conn

	mu         sync.Mutex
	changed    *sync.Cond
	deliveries []delivery
	seen       int
	failure    error
}

// Sockets is a child that opens its connections. Its commands are "receive", which reads until so many messages have
// come; "forget", which drops what was noted; and "delays".
func Sockets(_ context.Context, raw json.RawMessage) (process.Commands, func(), error) {
	c := &client{}
	c.changed = sync.NewCond(&c.mu)
	if err := json.Unmarshal(raw, &c.config); err != nil {
		return nil, nil, err
	}
	if err := c.openAll(); err != nil {
		return nil, nil, err
	}
	go c.listen() // it ends with the process
	return process.Commands{
		"receive": func(arg json.RawMessage) (any, error) {
			var want int
			if err := json.Unmarshal(arg, &want); err != nil {
				return nil, err
			}
			return nil, c.receive(want)
		},
		"forget": func(json.RawMessage) (any, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.deliveries = c.deliveries[:0]
			return nil, nil
		},
		"delays": func(arg json.RawMessage) (any, error) {
			sent := map[int32]int64{}
			if err := json.Unmarshal(arg, &sent); err != nil {
				return nil, err
			}
			return c.delays(sent)
		},
	}, nil, nil
}

func (c *client) openAll() (err error) {
	address, err := netip.ParseAddrPort(c.config.Address)
	if err != nil {
		return err
	}
	c.conns = make(map[int32]*conn, c.config.Sockets)
	if c.epoll, err = syscall.EpollCreate1(0); err != nil {
		return err
	}
	for n := range c.config.Sockets {
		if err := c.open(n, address); err != nil {
			return fmt.Errorf("socket %d: %w", n, err)
		}
	}
	return nil
}

// open connects, upgrades and, if so configured, subscribes under the id 1.
func (c *client) open(n int, address netip.AddrPort) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(address.Port()),
		Addr: address.Addr().As4()}); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := c.greet(fd, n); err != nil {
		return err
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		return err
	}
	c.conns[int32(fd)] = &conn{numberAt: c.config.NumberAt}
	return syscall.EpollCtl(c.epoll, syscall.EPOLL_CTL_ADD, fd,
		&syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
}

func (c *client) greet(fd, n int) error {
	request := "GET /graphql HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\nConnection: " +
		"Upgrade\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n"
	if len(c.config.Tokens) > 0 {
		request += "Authorization: Bearer " + c.config.Tokens[n%len(c.config.Tokens)] + "\r\n"
	}
	if err := handshake(fd, []byte(request+"\r\n"), "\r\n\r\n"); err != nil {
		return err
	}
	if !c.config.Subscribe {
		return nil
	}
	if err := handshake(fd, masked(`{"type":"connection_init"}`), "connection_ack"); err != nil {
		return err
	}
	subscribe, err := json.Marshal(map[string]any{"id": "1", "type": "subscribe", "payload": map[string]any{
		"query": c.config.Document, "variables": map[string]string{"id": c.config.Instance,
			"after": c.config.Afters[n%len(c.config.Afters)]},
	}})
	if err != nil {
		return err
	}
	_, err = syscall.Write(fd, masked(string(subscribe)))
	return err
}

// listen reads from all sockets until one fails; it answers pings, as the server drops who does not.
func (c *client) listen() {
	events := make([]syscall.EpollEvent, 1024)
	buffer := make([]byte, 256<<10)
	for {
		n, err := syscall.EpollWait(c.epoll, events, -1)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		c.mu.Lock()
		for _, event := range events[:max(n, 0)] {
			failed := c.read(event.Fd, buffer)
			if err == nil {
				err = failed
			}
		}
		c.failure = err
		c.changed.Broadcast()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// receive waits until that many messages have come in, all sockets together, since it last did.
func (c *client) receive(want int) error {
	late := false
	timer := time.AfterFunc(patience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		late = true
		c.changed.Broadcast()
	})
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.seen < want {
		if c.failure != nil || late {
			return fmt.Errorf("%d of %d messages arrived: %w", c.seen, want, c.failure)
		}
		c.changed.Wait()
	}
	c.seen -= want
	return nil
}

func (c *client) read(fd int32, buffer []byte) error {
	n, err := syscall.Read(int(fd), buffer)
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return nil
	case err != nil:
		return err
	case n == 0:
		return errors.New("a socket was closed")
	}
	now := time.Now().UnixNano()
	one := c.conns[fd]
	err = one.feed(buffer[:n], func(number int) {
		c.seen++
		c.deliveries = append(c.deliveries, delivery{int32(number), now})
	})
	if one.pinged {
		one.pinged = false
		_, err2 := syscall.Write(int(fd), pong)
		err = errors.Join(err, err2)
	}
	return err
}

// Delays are how long messages took.
type Delays struct {
	P50, P99 time.Duration
	Count    int
}

// delays compares arrivals with when each event was there to be sent.
func (c *client) delays(sent map[int32]int64) (Delays, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]time.Duration, 0, len(c.deliveries))
	for _, one := range c.deliveries {
		at, ok := sent[one.number]
		if !ok {
			return Delays{}, fmt.Errorf("event %d arrived but was not sent", one.number)
		}
		all = append(all, time.Duration(max(one.at-at, 0)))
	}
	return Delays{P50: Quantile(all, 0.5), P99: Quantile(all, 0.99), Count: len(all)}, nil
}
