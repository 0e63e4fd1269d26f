package procfs

import (
	"strconv"
	"strings"
)

// Traffic returns how many bytes the interfaces in a process's network namespace have received and sent, but for the
// loopback; not ok when that cannot be read.
func Traffic(pid int) (received, sent uint64, ok bool) {
	return traffic(string(readBounded(path(pid, "net/dev"))))
}

// traffic reads lines "name: " with 16 numbers, of which the first is bytes received and the ninth bytes sent.
func traffic(text string) (received, sent uint64, ok bool) {
	for line := range strings.Lines(text) {
		name, numbers, found := strings.Cut(line, ":")
		fields := strings.Fields(numbers)
		if !found || len(fields) < 16 {
			continue
		}
		ok = true
		if strings.TrimSpace(name) == "lo" {
			continue
		}
		in, inErr := strconv.ParseUint(fields[0], 10, 64)
		out, outErr := strconv.ParseUint(fields[8], 10, 64)
		if inErr != nil || outErr != nil {
			return 0, 0, false
		}
		received, sent = received+in, sent+out
	}
	return received, sent, ok
}
