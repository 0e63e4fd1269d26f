package wsapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// frame is one masked frame of a client.
func frame(first byte, payload string) []byte {
	out := appendHeader(nil, 0, len(payload))
	out[0], out[1] = first, out[1]|0x80
	mask := [4]byte{0x12, 0x34, 0x56, 0x78}
	out = append(out, mask[:]...)
	for i := range len(payload) {
		out = append(out, payload[i]^mask[i&3])
	}
	return out
}

func reader(limit int, in ...[]byte) *frames {
	return &frames{in: bufio.NewReaderSize(bytes.NewReader(bytes.Join(in, nil)), 256), limit: limit}
}

func TestFramesOfEveryLengthAreRead(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 125, 126, 127, 4095, 4096, 4097, 65_535, 65_536, 200_000} {
		text := strings.Repeat("é", size)[:size/2*2]
		op, got, err := reader(1<<20, frame(0x81, text)).next()
		require.NoError(t, err)
		require.EqualValues(t, opText, op)
		require.Equal(t, text, string(got))
	}
}

func TestFragmentsAreJoinedAndControlFramesMayComeBetween(t *testing.T) {
	t.Parallel()
	in := reader(100, frame(0x01, "a\xc3"), frame(0x89, "ping"), frame(0x00, "\xa9"), frame(0x80, "b"),
		frame(0x81, "next"))
	op, got, err := in.next()
	require.NoError(t, err)
	require.EqualValues(t, opPing, op)
	require.Equal(t, "ping", string(got))
	for _, want := range []string{"aéb", "next"} {
		op, got, err = in.next()
		require.NoError(t, err)
		require.EqualValues(t, opText, op)
		require.Equal(t, want, string(got))
	}
	_, _, err = in.next()
	require.ErrorIs(t, err, io.EOF)
}

func TestBreachesOfTheFramingAreClosedWithTheirCode(t *testing.T) {
	t.Parallel()
	unmasked := []byte{0x81, 1, 'x'}
	huge := []byte{0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for name, c := range map[string]struct {
		in   []byte
		code int
	}{
		"unmasked":                {unmasked, CloseProtocolError},
		"reserved bit":            {frame(0xC1, "x"), CloseProtocolError},
		"unknown data opcode":     {frame(0x83, "x"), CloseProtocolError},
		"unknown control opcode":  {frame(0x8B, "x"), CloseProtocolError},
		"fragmented ping":         {frame(0x09, "x"), CloseProtocolError},
		"long ping":               {frame(0x89, strings.Repeat("x", 126)), CloseProtocolError},
		"continuation of nothing": {frame(0x80, "x"), CloseProtocolError},
		"text within a message":   {append(frame(0x01, "x"), frame(0x81, "y")...), CloseProtocolError},
		"not UTF-8":               {frame(0x81, "\xff"), CloseInvalidText},
		"not UTF-8 once joined":   {append(frame(0x01, "\xc3"), frame(0x80, "x")...), CloseInvalidText},
		"too long":                {frame(0x81, strings.Repeat("x", 101)), CloseTooBig},
		"too long once joined": {append(frame(0x01, strings.Repeat("x", 60)), frame(0x80, strings.Repeat("x", 41))...),
			CloseTooBig},
		"a length beyond all numbers": {huge, CloseTooBig},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := reader(100, c.in).next()
			var breach *violation
			require.ErrorAs(t, err, &breach)
			require.Equal(t, c.code, breach.Code)
		})
	}
}

func TestMemoryGrowsWithWhatArrivesOnly(t *testing.T) {
	t.Parallel()
	announced := frame(0x81, strings.Repeat("x", 1<<20))[:2000]
	in := reader(1<<21, announced)
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			in := &frames{in: bufio.NewReaderSize(bytes.NewReader(announced), 256), limit: 1 << 21}
			in.next()
		}
	}).AllocedBytesPerOp()
	_, _, err := in.next()
	require.Error(t, err)
	require.Less(t, allocated, int64(16<<10))
}

func TestCloseFramesOfThePeer(t *testing.T) {
	t.Parallel()
	for payload, code := range map[string]int{
		"": closeNothingReceived, "\x03\xe8": 1000, "\x03\xe8bye": 1000, "\x0f\xa0": 4000, "\x0b\xb8": 3000,
	} {
		why, err := closing([]byte(payload))
		require.NoError(t, err)
		require.Equal(t, code, why.Code)
	}
	for payload, code := range map[string]int{
		"\x03": CloseProtocolError, "\x03\xed": CloseProtocolError, "\x03\xee": CloseProtocolError,
		"\x00\x00": CloseProtocolError,
		"\x13\x88": CloseProtocolError, "\x03\xe8\xff": CloseInvalidText,
	} {
		_, err := closing([]byte(payload))
		var breach *violation
		require.ErrorAs(t, err, &breach, "%x", payload)
		require.Equal(t, code, breach.Code, "%x", payload)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(frame(0x81, "hello"))
	f.Add(append(frame(0x01, "a"), frame(0x80, "b")...))
	f.Add(frame(0x88, "\x03\xe8bye"))
	f.Add([]byte{0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		r := reader(1000, in)
		for {
			op, payload, err := r.next()
			if err != nil {
				var breach *violation
				if !errors.As(err, &breach) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("neither a breach nor the end: %v", err)
				}
				return
			}
			if len(payload) > 1000 || op >= opClose && len(payload) > 125 {
				t.Fatalf("opcode %d of %d bytes passed", op, len(payload))
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"id":"1","type":"subscribe","payload":{"query":"{ hello }"}}`))
	f.Add([]byte(`{"type":"ping","payload":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, ok := decode(text)
		if ok && m.object() && m.named() && (len(*m.id) == 0 || len(*m.id) > maxID) {
			t.Fatalf("id %q passed", *m.id)
		}
		if ok {
			requested(m.payload)
		}
	})
}
