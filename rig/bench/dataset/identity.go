package dataset

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
)

// epoch is when the generated past begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ID is the n-th generated id of a kind; ids of a kind sort by n.
func ID(kind ids.Kind, n int) ids.ID {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(epoch.UnixMilli())<<16|0x7000)
	binary.BigEndian.PutUint32(raw[8:12], uint32(n))
	binary.BigEndian.PutUint32(raw[12:], uint32(scatter(uint64(n))))
	return ids.From(kind, raw)
}

// scatter is a fixed, well mixed function of n (splitmix64).
func scatter(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// at is a generated moment, n seconds into the past that was generated.
func at(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

// Instance is the i-th instance and Project the j-th project.
func Instance(i int) ids.ID { return ID(ids.Instance, i) }

// Project is the j-th project. Instances are dealt to projects in turn.
func Project(j int) ids.ID { return ID(ids.Project, j) }

// App, Version and AdapterName are what every generated instance was launched from.
const (
	App         = "bench"
	Version     = "1.0.0"
	AdapterName = "bench-adapter"
)

// projects is how many there are.
func (s Size) projects() int { return s.Tenants * s.Projects }

// people is how many there are: two a tenant.
func (s Size) people() int { return 2 * s.Tenants }

// ProjectsInAll is how many projects there are.
func (s Size) ProjectsInAll() int { return s.projects() }

// InstancesOf are the numbers of the instances in project j, oldest first.
func (s Size) InstancesOf(j int) []int {
	var found []int
	for i := j; i < s.Instances; i += s.projects() {
		found = append(found, i)
	}
	return found
}

func (s Size) tenantOf(project int) ids.ID { return ID(ids.Tenant, project/s.Projects) }

func name(word string, n int) string { return fmt.Sprintf("%s-%d", word, n) }
