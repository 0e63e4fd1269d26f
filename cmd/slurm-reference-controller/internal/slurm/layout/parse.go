package layout

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// hostLine matches SlurmctldHost's value: host name and address.
var hostLine = regexp.MustCompile(`^([^()\s]+)\(([^()\s]+)\)$`)

// Parse reads back what [RenderSlurmConf] wrote, except for the configuration, which is the
// instance's. It skips lines of workers in reserve, which earlier versions wrote.
func Parse(text string) (Cluster, error) {
	var cluster Cluster
	devices := make(map[int][]string)
	var prologs []string
	for _, line := range strings.Split(text, "\n") {
		if slot, paths, ok := readGresLine(line); ok {
			devices[slot] = paths
		}
		if names, ok := strings.CutPrefix(line, prologMark); ok {
			prologs = strings.Split(names, ",")
		}
		if version, ok := strings.CutPrefix(line, "# version "); ok {
			cluster.Version = strings.TrimSpace(version)
		}
		key, value, _ := strings.Cut(line, "=")
		switch key {
		case "SlurmctldHost":
			if part := hostLine.FindStringSubmatch(value); part != nil {
				cluster.Host, cluster.Address = part[1], part[2]
			}
		case "SlurmctldPort":
			cluster.Port = Number(value)
		case "FirstJobId":
			cluster.FirstJob = Number(value)
		case "NodeName":
			if worker, ok := ParseWorker(line); ok {
				cluster.Workers = append(cluster.Workers, worker)
			}
		}
	}
	if cluster.Port == 0 || cluster.Host == "" {
		return Cluster{}, fmt.Errorf("slurm.conf names no controller")
	}
	for i, worker := range cluster.Workers {
		cluster.Workers[i].Devices = devices[worker.Slot]
		cluster.Workers[i].Prolog = slices.Contains(prologs, worker.Name())
	}
	slices.SortFunc(cluster.Workers, func(a, b Worker) int { return a.Slot - b.Slot })
	return cluster, nil
}

// ParseWorker reads one worker's line; ok is false for a line of workers in reserve.
func ParseWorker(line string) (worker Worker, ok bool) {
	line, comment, _ := strings.Cut(line, " # member ")
	worker.MemberID = strings.TrimSpace(comment)
	for _, word := range strings.Fields(line) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "NodeName":
			worker.Slot, ok = workerSlot(value)
		case "NodeAddr":
			worker.Address = value
		case "NodeHostname":
			worker.Host = value
		case "CPUs":
			worker.CPUs = Number(value)
		case "RealMemory":
			worker.MemoryMiB = Number(value)
		case "Gres":
			worker.GPUs = GPUCount(value)
		case "Feature":
			worker.Features = strings.Split(value, ",")
		}
	}
	return worker, ok && worker.Address != ""
}

// Claim assigns workers without a member, as earlier versions wrote them, to the members with their
// indexes.
func (c *Cluster) Claim(indexes map[int]string) {
	for i, worker := range c.Workers {
		if worker.MemberID == "" {
			c.Workers[i].MemberID = indexes[worker.Slot]
		}
	}
}

// Number reads a decimal number; any other text is 0.
func Number(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0
	}
	return n
}
