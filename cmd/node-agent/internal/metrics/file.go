package metrics

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"

	"github.com/gpuaas/app-platform/sdk/nodemetrics"
)

const (
	valuesBytes = 8 * int(nodemetrics.Measures)
	// A place begins with its time and its count of samples, and ends with its checksum.
	headBytes, sumBytes = 8, 8
	fineBytes           = headBytes + valuesBytes + sumBytes
	coarseBytes         = headBytes + 2*valuesBytes + sumBytes
	finePlaces          = nodemetrics.FineSpan / nodemetrics.FineStep
	coarsePlaces        = nodemetrics.CoarseSpan / nodemetrics.CoarseStep
	coarseBegin         = finePlaces * fineBytes
	// FileBytes is the longest that the file of a member becomes.
	FileBytes = coarseBegin + coarsePlaces*coarseBytes
)

// place is one measurement of a ring, or that of several.
type place struct {
	at            int64
	samples       int
	average, most nodemetrics.Values
}

// encode writes a place of a ring; those of the fine one have no maxima of their own.
func (p *place) encode(coarse bool) []byte {
	raw := make([]byte, 0, coarseBytes)
	raw = binary.LittleEndian.AppendUint32(raw, uint32(p.at))      // #nosec G115 -- until 2106
	raw = binary.LittleEndian.AppendUint32(raw, uint32(p.samples)) // #nosec G115 -- at most 60
	for _, value := range p.average {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(value))
	}
	if coarse {
		for _, value := range p.most {
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(value))
		}
	}
	return binary.LittleEndian.AppendUint64(raw, uint64(crc32.ChecksumIEEE(raw)))
}

// decode reads a place; not ok for one that was never written, or not as a whole.
func decode(raw []byte, coarse bool) (p place, ok bool) {
	body := raw[:len(raw)-sumBytes]
	p.at, p.samples = int64(binary.LittleEndian.Uint32(raw)), int(binary.LittleEndian.Uint32(raw[4:]))
	if p.samples == 0 || binary.LittleEndian.Uint64(raw[len(body):]) != uint64(crc32.ChecksumIEEE(body)) {
		return p, false
	}
	for i := range p.average {
		p.average[i] = math.Float64frombits(binary.LittleEndian.Uint64(body[headBytes+8*i:]))
	}
	p.most = p.average
	if coarse {
		for i := range p.most {
			p.most[i] = math.Float64frombits(binary.LittleEndian.Uint64(body[headBytes+valuesBytes+8*i:]))
		}
	}
	return p, true
}

// fineAt and coarseAt are where the place of a time lies.
func fineAt(at int64) int64 { return at / nodemetrics.FineStep % finePlaces * int64(fineBytes) }

func coarseAt(at int64) int64 {
	return int64(coarseBegin) + at/nodemetrics.CoarseStep%coarsePlaces*int64(coarseBytes)
}

// file is the whole file of a member, as it was read.
type file []byte

// readFile reads a member's file. What it is too short for was never written.
func readFile(name string) (file, error) {
	raw, err := os.ReadFile(name) // #nosec G304 -- the agent's own file
	if err != nil {
		return nil, err
	}
	return append(raw, make([]byte, max(0, FileBytes-len(raw)))...), nil
}

// fine returns the sample of a time.
func (f file) fine(at int64) (place, bool) {
	p, ok := decode(f[fineAt(at):][:fineBytes], false)
	return p, ok && p.at == at
}

// coarse returns what was measured in the ten minutes that end at a time: as it was written, or else from the samples.
func (f file) coarse(end int64) (place, bool) {
	if p, ok := decode(f[coarseAt(end):][:coarseBytes], true); ok && p.at == end {
		return p, true
	}
	var sum nodemetrics.Sum
	for at := end - nodemetrics.CoarseStep + nodemetrics.FineStep; at <= end; at += nodemetrics.FineStep {
		if p, ok := f.fine(at); ok {
			sum.Add(1, p.average, p.most)
		}
	}
	return place{at: end, samples: sum.Samples, average: sum.Average(), most: sum.Max()}, sum.Samples > 0
}

// appendSample writes a sample to a member's file. With roll it also writes the averages of those ten minutes before
// the sample that have ended and have none yet. It skips a sample of a time that is there already.
func appendSample(name string, at int64, values nodemetrics.Values, roll bool) (err error) {
	out, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600) // #nosec G304 -- the agent's own file
	if err != nil {
		return fmt.Errorf("write the series: %w", err)
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			err = fmt.Errorf("write the series: %w", err)
		}
	}()
	there := make([]byte, fineBytes)
	if _, err := out.ReadAt(there, fineAt(at)); err == nil {
		if kept, ok := decode(there, false); ok && kept.at == at {
			return nil
		}
	}
	if roll {
		if err := rollUp(name, out, at); err != nil {
			return err
		}
	}
	_, err = out.WriteAt((&place{at: at, samples: 1, average: values}).encode(false), fineAt(at))
	return err
}

// rollUp writes the averages of the ten minutes that have ended before a time, of whichever samples the file has: after
// hours in which nothing was measured they are of before.
func rollUp(name string, out *os.File, at int64) error {
	kept, err := readFile(name)
	if err != nil {
		return err
	}
	now := nodemetrics.End(at, nodemetrics.CoarseStep)
	for i := range finePlaces {
		sample, ok := decode(kept[i*fineBytes:][:fineBytes], false)
		end := nodemetrics.End(sample.at, nodemetrics.CoarseStep)
		if !ok || end >= now || sample.at <= at-nodemetrics.CoarseSpan {
			continue
		}
		where := kept[coarseAt(end):][:coarseBytes]
		if p, ok := decode(where, true); ok && p.at == end {
			continue
		}
		if p, ok := kept.coarse(end); ok {
			if _, err := out.WriteAt(copyOf(where, p.encode(true)), coarseAt(end)); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyOf notes what is written in what was read, so that it is written once.
func copyOf(where, what []byte) []byte {
	copy(where, what)
	return what
}
