package sandbox

import (
	"path/filepath"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
)

// MemoryKills is how many processes of a member the kernel has killed because the member had no memory left.
type MemoryKills struct {
	MemberID string
	// Epoch is the start of the member that the count began with.
	Epoch string
	Kills int
}

// memberStart is one start of a member.
type memberStart struct{ member, epoch string }

// killCount is what was seen of a start, and what of it is reported.
type killCount struct{ seen, reported int }

// MemoryKills returns the counts that are higher than what was last reported, at most most of them. A new Manager
// reports all again.
func (m *Manager) MemoryKills(most int) (fresh []MemoryKills) {
	if m.oci == nil {
		return nil
	}
	for _, known := range roster.List(m.dir) {
		m.noteKills(known.MemberID)
	}
	m.killsMu.Lock()
	defer m.killsMu.Unlock()
	for of, count := range m.kills {
		if count.seen > count.reported && len(fresh) < most {
			fresh = append(fresh, MemoryKills{MemberID: of.member, Epoch: of.epoch, Kills: count.seen})
		}
	}
	return fresh
}

// KillsReported notes what the platform has, and forgets starts that have ended.
func (m *Manager) KillsReported(known []MemoryKills) {
	m.killsMu.Lock()
	defer m.killsMu.Unlock()
	for _, one := range known {
		of := memberStart{one.MemberID, one.Epoch}
		count := m.kills[of]
		count.reported = max(count.reported, one.Kills)
		m.kills[of] = count
		now := roster.Read(filepath.Join(m.dir, one.MemberID))
		if (now == nil || now.Epoch != one.Epoch) && count.seen <= count.reported {
			delete(m.kills, of)
		}
	}
}

// noteKills keeps what the member's cgroup counts: the group is removed before the next start, and with the member.
func (m *Manager) noteKills(memberID string) {
	known := roster.Read(filepath.Join(m.dir, memberID))
	if known == nil || known.Group == "" {
		return
	}
	kills := m.oci.cgroups.MemoryKills(known.Group)
	if kills == 0 {
		return
	}
	m.killsMu.Lock()
	defer m.killsMu.Unlock()
	if m.kills == nil {
		m.kills = make(map[memberStart]killCount)
	}
	of := memberStart{memberID, known.Epoch}
	count := m.kills[of]
	count.seen = max(count.seen, kills)
	m.kills[of] = count
}

// Killed reports whether a start of the member had a process killed for want of memory.
func (m *Manager) Killed(memberID, epoch string) bool {
	m.killsMu.Lock()
	defer m.killsMu.Unlock()
	return m.kills[memberStart{memberID, epoch}].seen > 0
}
