package slurm

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"text/template"
)

//go:embed templates
var templates embed.FS

// slot is a run of workers that may come later.
type slot struct{ Names, Ports string }

// view is what the template sees.
type view struct {
	Cluster
	Spare                  []slot
	SpareCPUs, SpareMemory int
	MaxTime                string
}

// renderSlurmConf writes slurm.conf. Equal clusters give equal bytes.
func renderSlurmConf(cluster Cluster) (string, error) {
	functions := template.FuncMap{"workerPort": workerPort}
	parsed, err := template.New("slurm.conf.tmpl").Funcs(functions).ParseFS(templates, "templates/slurm.conf.tmpl")
	if err != nil {
		return "", fmt.Errorf("render slurm.conf: %w", err)
	}
	v := view{Cluster: cluster, Spare: spare(cluster), SpareCPUs: 1, SpareMemory: minMemory, MaxTime: "INFINITE"}
	for i, worker := range cluster.Workers {
		if i == 0 || worker.CPUs < v.SpareCPUs {
			v.SpareCPUs = worker.CPUs
		}
		if i == 0 || worker.MemoryMiB < v.SpareMemory {
			v.SpareMemory = worker.MemoryMiB
		}
	}
	if cluster.MaxJobMinutes > 0 {
		v.MaxTime = strconv.Itoa(cluster.MaxJobMinutes)
	}
	var out strings.Builder
	if err := parsed.Execute(&out, v); err != nil {
		return "", fmt.Errorf("render slurm.conf: %w", err)
	}
	return out.String(), nil
}

// renderCgroupConf returns cgroup.conf.
func renderCgroupConf() (string, error) {
	raw, err := templates.ReadFile("templates/cgroup.conf")
	if err != nil {
		return "", fmt.Errorf("render cgroup.conf: %w", err)
	}
	return string(raw), nil
}

// spare lists the indexes no known worker has, as runs.
func spare(cluster Cluster) []slot {
	taken := make(map[int]bool, len(cluster.Workers))
	for _, worker := range cluster.Workers {
		taken[worker.Index] = true
	}
	var runs []slot
	for first := 0; first <= maxIndex; first++ {
		if taken[first] {
			continue
		}
		last := first
		for last < maxIndex && !taken[last+1] {
			last++
		}
		runs = append(runs, newSlot(cluster.Port, first, last))
		first = last
	}
	return runs
}

func newSlot(base, first, last int) slot {
	if first == last {
		return slot{Names: workerName(first), Ports: strconv.Itoa(workerPort(base, first))}
	}
	return slot{
		Names: fmt.Sprintf("w[%d-%d]", first, last),
		Ports: fmt.Sprintf("%d-%d", workerPort(base, first), workerPort(base, last)),
	}
}
