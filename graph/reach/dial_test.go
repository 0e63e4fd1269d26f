package reach

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// finishing is a connection whose far end sends its last bytes and ends when it is closed here.
type finishing struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
	sent   bool
}

func (f *finishing) Read(p []byte) (int, error) {
	<-f.closed
	if f.sent {
		return 0, io.EOF
	}
	f.sent = true
	return copy(p, "0\r\n\r\n"), nil
}

func (f *finishing) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

func (*finishing) SetDeadline(time.Time) error { return nil }

// An answer that is cut when a right ends must not look whole to whoever reads it.
func TestACutConnectionDoesNotEndWell(t *testing.T) {
	left := 0
	conn := &counted{Conn: &finishing{closed: make(chan struct{})}, leave: func() { left++ }}
	var raw []byte
	done := make(chan error, 1)
	go func() {
		var err error
		raw, err = io.ReadAll(conn)
		done <- err
	}()
	require.NoError(t, conn.Close())
	require.ErrorIs(t, <-done, net.ErrClosed)
	require.Empty(t, raw, "bytes that the far end sent because of the close")
	require.Equal(t, 1, left)
}
