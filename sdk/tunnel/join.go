package tunnel

import (
	"io"
	"net"
	"sync"
	"time"
)

// Join passes bytes both ways until both have ended, then closes both. Where one side ends its writing and the
// connection can signal that, the other side may go on writing. A side that breaks ends both.
func Join(a, b io.ReadWriteCloser) {
	var ways sync.WaitGroup
	for _, way := range [][2]io.ReadWriteCloser{{a, b}, {b, a}} {
		ways.Go(func() {
			if _, err := io.Copy(way[0], way[1]); err != nil {
				abort(a)
				abort(b)
				return
			}
			if endWriting(way[0]) != nil {
				abort(way[0])
			}
		})
	}
	ways.Wait()
	_, _ = a.Close(), b.Close()
}

// endWriting signals the other side that nothing more follows. A stream of a session does so by its Close, after
// which it can still be read.
func endWriting(conn io.Closer) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return conn.Close()
}

// abort ends reading and writing at once.
func abort(conn io.Closer) {
	if timed, ok := conn.(net.Conn); ok {
		_ = timed.SetDeadline(time.Unix(1, 0))
	}
	_ = conn.Close()
}
