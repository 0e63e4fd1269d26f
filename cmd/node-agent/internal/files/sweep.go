package files

import (
	"os"
	"time"
)

const (
	// sweptEvery is how often the parts that wait on a volume are looked through, at most.
	sweptEvery = time.Hour
	// maxSwept bounds the volumes that are remembered for that.
	maxSwept = 10_000
)

// due reports whether the parts of a volume are to be looked through now: when it is first mounted by this agent, and
// every hour that it is used.
func (s *Server) due(volume string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.swept[volume]) < sweptEvery {
		return false
	}
	if s.swept == nil || len(s.swept) >= maxSwept {
		s.swept = map[string]time.Time{}
	}
	s.swept[volume] = time.Now()
	return true
}

// sweep deletes the parts that have waited for too long, of any agent: one that was killed does not come back for its
// own.
func (q *request) sweep() {
	folder, err := q.uploads(false)
	if err != nil {
		return // there is none, or it is not the platform's
	}
	defer folder.Close()
	waiting, _ := names(folder)
	for _, one := range waiting {
		info, err := folder.Lstat(one.Name())
		if err != nil || time.Since(info.ModTime()) < uploadLife {
			continue
		}
		if file, _, err := openPart(folder, one.Name()); err == nil { // nobody writes it just now
			_ = folder.Remove(one.Name())
			_ = file.Close()
		} else if info.IsDir() || info.Mode()&os.ModeType != 0 {
			_ = folder.RemoveAll(one.Name())
		}
	}
}
