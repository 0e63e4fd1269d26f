package cloudinit

import (
	"fmt"
	"io"
	"os"
	"time"
)

// followEvery is how often the log is looked at while it grows.
const followEvery = 100 * time.Millisecond

// follower passes a growing file on.
type follower struct {
	file   *os.File
	out    io.Writer
	offset int64
	end    chan struct{}
	ended  chan struct{}
}

// followFrom begins at the file's end as it is now.
func followFrom(file *os.File, out io.Writer) (*follower, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("follow the output: %w", err)
	}
	f := &follower{file: file, out: out, offset: info.Size(), end: make(chan struct{}), ended: make(chan struct{})}
	go f.run()
	return f, nil
}

func (f *follower) run() {
	defer close(f.ended)
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.pass()
		case <-f.end:
			f.pass()
			return
		}
	}
}

// pass copies what is new. It goes on when no one reads it.
func (f *follower) pass() {
	info, err := f.file.Stat()
	if err != nil || info.Size() <= f.offset {
		return
	}
	n, _ := io.Copy(f.out, io.NewSectionReader(f.file, f.offset, info.Size()-f.offset))
	f.offset += n
}

// stop passes on what is there and ends.
func (f *follower) stop() {
	close(f.end)
	<-f.ended
}
