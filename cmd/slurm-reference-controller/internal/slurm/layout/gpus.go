package layout

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// beside returns the workers that may share devices with a member: those of its allocation on its node, itself among
// them.
func beside(member adapter.Member, workers []adapter.Member) (list []adapter.Member) {
	for _, other := range workers {
		if other.Node.ID == member.Node.ID && other.Node.AllocationID == member.Node.AllocationID {
			list = append(list, other)
		}
	}
	return list
}

// Equip gives a member's worker its part of the GPUs that its allocation has on its node. Devices are the device nodes
// that the member sees. What it holds it keeps, since jobs may be at work on it; else it gets an even part of what no
// worker beside it holds. Workers that make way for it do not count: it takes work when they have none left.
func (c *Cluster) Equip(member adapter.Member, devices []string, workers []adapter.Member, leaving ...string) {
	at := slices.IndexFunc(c.Workers, func(w Worker) bool { return w.MemberID == member.ID })
	if at < 0 {
		return
	}
	free, counted := firstOf(devices, member.Node.GPUs), member.Node.GPUs
	sharing := 1
	for _, other := range beside(member, workers) {
		if other.ID == member.ID || slices.Contains(leaving, other.ID) {
			continue
		}
		held, _ := c.Of(other.ID)
		free = slices.DeleteFunc(free, func(path string) bool { return slices.Contains(held.Devices, path) })
		counted -= held.GPUs
		if held.GPUs == 0 {
			sharing++
		}
	}
	worker := &c.Workers[at]
	if kept := worker.Devices; len(kept) > 0 && containsAll(free, kept) {
		return
	}
	worker.Devices, worker.GPUs = nil, 0
	if len(devices) == 0 { // no device node of a known kind: they are counted, and that is all
		worker.GPUs = part(counted, sharing)
		return
	}
	worker.Devices = firstOf(free, part(len(free), sharing))
	worker.GPUs = len(worker.Devices)
}

// part is an even part of what is there, rounded up; the last to ask gets what is left.
func part(there, sharing int) int { return (max(there, 0) + sharing - 1) / sharing }

// firstOf returns a copy of at most so many elements.
func firstOf(list []string, count int) []string {
	return slices.Clone(list[:min(len(list), max(count, 0))])
}

func containsAll(list, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(one string) bool { return !slices.Contains(list, one) })
}

// SortDevices sorts paths of device nodes by their numbers.
func SortDevices(paths []string) {
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(kindOf(a), kindOf(b)), cmp.Compare(numberOf(a), numberOf(b)))
	})
}

// kindOf returns a path without the number at its end.
func kindOf(path string) string { return strings.TrimRight(path, "0123456789") }

func numberOf(path string) int { return Number(strings.TrimPrefix(path, kindOf(path))) }

// gresMark begins the lines of slurm.conf that gres.conf is written from. To Slurm they are comments there.
const gresMark = "# gres.conf: "

// GresScript writes gres.conf again as slurm.conf says: the record stays one file.
const GresScript = `sed -n "s/^` + gresMark + `//p" ` + SlurmConfPath + ` > ` + gresConfPath + `.new && ` +
	`mv -f ` + gresConfPath + `.new ` + gresConfPath

const gresConfPath = "/etc/slurm/gres.conf"

// gresLine returns a worker's line of gres.conf: its device nodes, and the vendor whose variables name a job's devices.
// Empty for a worker without devices.
func gresLine(w Worker) string {
	if len(w.Devices) == 0 {
		return ""
	}
	flags := "nvidia_gpu_env"
	if strings.HasPrefix(w.Devices[0], "/dev/dri/") {
		flags = "amd_gpu_env"
	}
	return gresMark + "NodeName=" + w.Name() + " Name=gpu File=" + strings.Join(w.Devices, ",") + " Flags=" + flags
}

// readGresLine reads a worker's slot and its device nodes back.
func readGresLine(line string) (slot int, devices []string, ok bool) {
	line, found := strings.CutPrefix(line, gresMark)
	if !found {
		return 0, nil, false
	}
	for _, word := range strings.Fields(line) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "NodeName":
			slot, ok = workerSlot(value)
		case "File":
			devices = strings.Split(value, ",")
		}
	}
	return slot, devices, ok
}

// TaskProlog is the path of the task prolog once every worker has it, and empty before: a job fails on a worker that
// is to run one and has none.
func (c Cluster) TaskProlog() string {
	if len(c.Workers) == 0 || slices.ContainsFunc(c.Workers, func(w Worker) bool { return !w.Prolog }) {
		return ""
	}
	return TaskPrologPath
}

// GiveProlog notes that a member's worker has the task prolog.
func (c *Cluster) GiveProlog(memberID string) {
	for i := range c.Workers {
		c.Workers[i].Prolog = c.Workers[i].Prolog || c.Workers[i].MemberID == memberID
	}
}

// prologMark begins the line of slurm.conf that names the workers with the task prolog; to Slurm it is a comment.
const prologMark = "# task-prolog: "

// prologLine names the workers that have the task prolog.
func prologLine(workers []Worker) string {
	var names []string
	for _, worker := range workers {
		if worker.Prolog {
			names = append(names, worker.Name())
		}
	}
	return prologMark + strings.Join(names, ",")
}

// GPUCount reads a number of GPUs as Slurm writes it, "gpu:2"; any other text is 0.
func GPUCount(text string) int {
	count, found := strings.CutPrefix(text, "gpu:")
	if !found {
		return 0
	}
	count, _, _ = strings.Cut(count, "(")
	return Number(count)
}
