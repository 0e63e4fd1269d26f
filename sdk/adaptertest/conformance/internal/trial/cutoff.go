package trial

import (
	"bufio"
	"errors"
	"net"
	"net/url"
	"time"
)

// CutOff sends a whole request and drops the connection without reading the answer, once the
// adapter has begun or at the latest when things have settled.
func (c *Check) CutOff(l Letter, begun <-chan struct{}) {
	req, err := c.Request(c.Ctx, l)
	if err != nil {
		c.NotRun("%v", err)
	}
	at, err := url.Parse(c.URL)
	if err != nil || at.Scheme != "http" {
		c.NotRun("only the connection to an adapter with plain http can be cut")
	}
	port := at.Port()
	if port == "" {
		port = "80"
	}
	conn, err := (&net.Dialer{}).DialContext(c.Ctx, "tcp", net.JoinHostPort(at.Hostname(), port))
	c.Require(err == nil, "no connection: %v", err)
	defer conn.Close()
	writer := bufio.NewWriter(conn)
	err = req.Write(writer)
	if err == nil {
		err = writer.Flush()
	}
	c.Require(err == nil, "the request could not be sent: %v", err)
	select {
	case <-begun:
	case <-time.After(c.Bounds.Settle):
	case <-c.Ctx.Done():
	}
	c.Remember(l, Reply{}, errors.New("the suite cut the connection"))
}
