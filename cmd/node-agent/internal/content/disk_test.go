package content

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pattern returns bytes whose values depend on their positions.
func pattern(size int64) []byte {
	raw := make([]byte, size)
	for n := range raw {
		raw[n] = byte(n*7 + n>>8)
	}
	return raw
}

func TestAFileIsTheSameHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*disk){
		"as the filesystem lets it": func(*disk) {},
		"without direct writes":     func(d *disk) { d.direct = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "part")
			raw := pattern(3*Buffer + 17)
			var at int64
			for _, upTo := range []int64{0, 1, block - 1, block, 5*block + 3, Buffer, Buffer + block, 3 * Buffer,
				3*Buffer + 17} {
				d, err := openDisk(file) // gone on with, as after a crash
				require.NoError(t, err)
				spoil(d)
				sum := sha256.New()
				_, _ = sum.Write(raw[:at])
				w := d.writer(at, upTo-at, sum)
				for at < upTo {
					piece, ok := w.piece()
					require.True(t, ok)
					n := copy(piece[:min(int64(len(piece))-at%block, upTo-at)], raw[at:upTo])
					at += int64(n)
					w.full <- piece[:n]
				}
				end, err := w.finish()
				require.NoError(t, err)
				require.Equal(t, upTo, end)
				want := sha256.Sum256(raw[:upTo])
				require.Equal(t, want[:], sum.Sum(nil))
				d.close()
				got, err := os.ReadFile(file)
				require.NoError(t, err)
				require.True(t, bytes.Equal(raw[:upTo], got), "%d bytes", upTo)
			}
		})
	}
}

func TestAFilesystemThatRefusesDirectWritesGetsOthers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "part")
	d, err := openDisk(file)
	require.NoError(t, err)
	defer d.close()
	if d.direct == nil {
		t.Skip("no direct writes in " + file)
	}
	raw := pattern(2*block + 1)[1:] // memory that no direct write can be made from
	_, err = d.direct.WriteAt(raw, 0)
	require.ErrorIs(t, err, unix.EINVAL)
	require.NoError(t, d.writeAt(raw, 0))
	require.Nil(t, d.direct, "it is not tried again")
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, raw, got)
}

func TestTheFirstWriteThatFailsEndsTheWriting(t *testing.T) {
	t.Parallel()
	plain, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no disk that is always full: " + err.Error())
	}
	d := &disk{plain: plain}
	defer d.close()
	w := d.writer(0, 100*Buffer, sha256.New())
	for range 100 { // more pieces than there are: they come back only when they were written
		piece, ok := w.piece()
		if !ok {
			break
		}
		w.full <- piece
	}
	end, err := w.finish()
	require.ErrorIs(t, err, unix.ENOSPC)
	require.Zero(t, end)
}

func TestAPieceIsNoLargerThanWhatIsLeft(t *testing.T) {
	t.Parallel()
	for left, want := range map[int64]int{1: block, block: block, block + 1: 2 * block, Buffer - 1: Buffer,
		10 * Buffer: Buffer} {
		require.Len(t, newPiece(left), want, "%d left", left)
	}
	d := &disk{}
	for left, want := range map[int64]int{0: 0, 1: 1, Buffer: 1, Buffer + 1: 2, 100 * Buffer: pieces} {
		w := d.writer(0, left, sha256.New())
		require.Len(t, w.free, want, "%d left", left)
		_, err := w.finish()
		require.NoError(t, err)
	}
}
