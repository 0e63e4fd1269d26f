package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
)

// WithMeasures adds the commands that every child has: "memory", in bytes of heap and stacks without garbage,
// "resident", the bytes of it that the system counts, "goroutines", and "profile", which begins a CPU profile in the
// named file and ends it when the name is empty.
func WithMeasures(commands Commands) Commands {
	var file *os.File
	commands["memory"] = func(json.RawMessage) (any, error) { return memory(), nil }
	commands["resident"] = func(json.RawMessage) (any, error) { return resident() }
	commands["goroutines"] = func(json.RawMessage) (any, error) { return runtime.NumGoroutine(), nil }
	commands["profile"] = func(arg json.RawMessage) (any, error) {
		var name string
		if err := json.Unmarshal(arg, &name); err != nil {
			return nil, err
		}
		if name == "" {
			if file == nil {
				return nil, errors.New("no profile was begun")
			}
			pprof.StopCPUProfile()
			err := file.Close()
			file = nil
			return nil, err
		}
		var err error
		if file, err = os.Create(name); err != nil {
			return nil, err
		}
		return nil, pprof.StartCPUProfile(file)
	}
	return commands
}

// memory is what the process holds in heap and stacks, in bytes, garbage left out.
func memory() uint64 {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// resident is what the system counts as the process's memory, in bytes.
func resident() (uint64, error) {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, pages uint64
	if _, err := fmt.Sscan(string(raw), &size, &pages); err != nil {
		return 0, err
	}
	return pages * uint64(os.Getpagesize()), nil
}
