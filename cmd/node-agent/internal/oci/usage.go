package oci

import (
	"math"
	"path"
	"strconv"
	"strings"
)

// Usage is what the processes of a group have used since it was created, and what they may use. NaN is what the node's
// cgroups do not report.
type Usage struct {
	// CPUSeconds is processor time, and CPULimit the most of it in a second.
	CPUSeconds, CPULimit float64
	// Memory is bytes that cannot be taken back without writing them away, and MemoryLimit the most of it.
	Memory, MemoryLimit float64
	// DiskRead and DiskWritten are bytes that reached block devices.
	DiskRead, DiskWritten float64
}

// Usage reads what a group uses, with all below it. Limits are the lowest of the group and of those above it that bound
// it.
func (c *Cgroups) Usage(group string) Usage {
	unknown := math.NaN()
	u := Usage{unknown, unknown, unknown, unknown, unknown, unknown}
	for _, h := range c.roots {
		dir := c.at(group)
		if c.Version == 2 {
			u.unified(h, dir, path.Dir(dir))
			continue
		}
		u.legacy(h, dir, path.Dir(dir))
	}
	return u
}

// unlimited is where the kernel's number for "no limit" begins, which depends on the size of its pages.
const unlimited = 1 << 60

func (u *Usage) unified(h hierarchy, dir, above string) {
	u.CPUSeconds = h.field(dir, "cpu.stat", "usage_usec") / 1e6
	u.Memory = floored(h.number(dir, "memory.current"), h.field(dir, "memory.stat", "inactive_file"))
	for _, group := range []string{dir, above} {
		u.MemoryLimit = lower(u.MemoryLimit, h.number(group, "memory.max"))
		if quota, period, ok := strings.Cut(h.text(group, "cpu.max"), " "); ok {
			u.CPULimit = lower(u.CPULimit, number(quota)/number(period))
		}
	}
	for line := range strings.Lines(h.text(dir, "io.stat")) {
		for _, word := range strings.Fields(line) {
			name, value, _ := strings.Cut(word, "=")
			u.disk(name == "rbytes", name == "wbytes", value)
		}
	}
	u.readDisk(h.text(dir, "cgroup.controllers"), "io")
}

func (u *Usage) legacy(h hierarchy, dir, above string) {
	if h.has("cpuacct") {
		u.CPUSeconds = h.number(dir, "cpuacct.usage") / 1e9
	}
	if h.has("cpu") {
		for _, group := range []string{dir, above} {
			if quota := h.number(group, "cpu.cfs_quota_us"); quota > 0 {
				u.CPULimit = lower(u.CPULimit, quota/h.number(group, "cpu.cfs_period_us"))
			}
		}
	}
	if h.has("memory") {
		u.Memory = floored(h.number(dir, "memory.usage_in_bytes"), h.field(dir, "memory.stat", "total_inactive_file"))
		if limit := h.field(dir, "memory.stat", "hierarchical_memory_limit"); limit < unlimited {
			u.MemoryLimit = limit
		}
	}
	if h.has("blkio") {
		text := h.text(dir, "blkio.throttle.io_service_bytes_recursive")
		for line := range strings.Lines(text) {
			if words := strings.Fields(line); len(words) == 3 {
				u.disk(words[1] == "Read", words[1] == "Write", words[2])
			}
		}
		u.readDisk(text, "Total")
	}
}

// disk adds what one device says.
func (u *Usage) disk(read, written bool, value string) {
	switch {
	case read:
		u.DiskRead = add(u.DiskRead, number(value))
	case written:
		u.DiskWritten = add(u.DiskWritten, number(value))
	}
}

// readDisk is 0 instead of unknown where the kernel counts, and has counted nothing yet.
func (u *Usage) readDisk(text, counted string) {
	if strings.Contains(text, counted) {
		u.DiskRead, u.DiskWritten = add(u.DiskRead, 0), add(u.DiskWritten, 0)
	}
}

func (h hierarchy) text(dir, name string) string {
	raw, err := h.root.ReadFile(path.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

func (h hierarchy) number(dir, name string) float64 { return number(h.text(dir, name)) }

// field reads one of the lines "name number" of a file.
func (h hierarchy) field(dir, file, name string) float64 {
	for line := range strings.Lines(h.text(dir, file)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return number(strings.TrimSpace(value))
		}
	}
	return math.NaN()
}

// number reads a count; NaN for a text that is not one, such as "max".
func number(text string) float64 {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil || value < 0 {
		return math.NaN()
	}
	return float64(value)
}

func add(sum, value float64) float64 {
	if math.IsNaN(sum) {
		return value
	}
	return sum + value
}

// lower is the lower of two limits of which either may be unknown.
func lower(a, b float64) float64 {
	if math.IsNaN(a) || b < a {
		return b
	}
	return a
}

// floored subtracts what is part of a number that was read a moment before.
func floored(from, part float64) float64 {
	if math.IsNaN(part) {
		return from
	}
	return max(0, from-part)
}
