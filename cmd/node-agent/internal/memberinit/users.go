package memberinit

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// account is a user of the member's own /etc/passwd.
type account struct {
	name     string
	uid, gid uint32
	home     string
}

// accounts resolves users and groups by the member's files, line by line; no name service is asked.
type accounts struct{ etc string }

// lookup understands "user", "user:group", and numbers for either.
func (a accounts) lookup(spec string) (account, error) {
	name, group, hasGroup := strings.Cut(spec, ":")
	found, err := a.user(name)
	if err != nil || !hasGroup {
		return found, err
	}
	found.gid, err = a.group(group)
	return found, err
}

func (a accounts) user(name string) (account, error) {
	id, numeric := parseID(name)
	var found *account
	a.scan("passwd", func(fields []string) bool {
		uid, okUID := parseID(field(fields, 2))
		gid, okGID := parseID(field(fields, 3))
		if okUID && okGID && (fields[0] == name || numeric && uid == id) {
			found = &account{name: fields[0], uid: uid, gid: gid, home: field(fields, 5)}
		}
		return found == nil
	})
	switch {
	case found != nil:
		return *found, nil
	case numeric:
		return account{name: name, uid: id, gid: id, home: "/"}, nil
	}
	return account{}, wire.Errorf(wire.CodeUserUnknown, "user: there is no user %q in the member", name)
}

func (a accounts) group(name string) (uint32, error) {
	id, found := parseID(name)
	a.scan("group", func(fields []string) bool {
		if gid, ok := parseID(field(fields, 2)); ok && fields[0] == name {
			id, found = gid, true
			return false
		}
		return true
	})
	if !found {
		return 0, wire.Errorf(wire.CodeUserUnknown, "user: there is no group %q in the member", name)
	}
	return id, nil
}

// groupsOf lists the supplementary groups of a user.
func (a accounts) groupsOf(name string) []uint32 {
	var groups []uint32
	a.scan("group", func(fields []string) bool {
		gid, ok := parseID(field(fields, 2))
		for member := range strings.SplitSeq(field(fields, 3), ",") {
			if ok && member == name {
				groups = append(groups, gid)
			}
		}
		return len(groups) < 64
	})
	return groups
}

// scan gives the fields of each line until next says stop. A file that is missing has no lines.
func (a accounts) scan(file string, next func(fields []string) bool) {
	handle, err := os.Open(filepath.Join(a.etc, file))
	if err != nil {
		return
	}
	defer handle.Close()
	for lines := bufio.NewScanner(handle); lines.Scan(); {
		if !next(strings.Split(lines.Text(), ":")) {
			return
		}
	}
}

func field(fields []string, index int) string {
	if index >= len(fields) {
		return ""
	}
	return fields[index]
}

func parseID(text string) (uint32, bool) {
	id, err := strconv.ParseUint(text, 10, 32)
	return uint32(id), err == nil
}

// credential is what the kernel needs to run as spec; nil means as init itself. Without root only
// init's own user is possible.
func (a accounts) credential(spec string) (*syscall.Credential, account, error) {
	self := uint32(os.Getuid()) // #nosec G115 -- user ids are 32 bits wide
	if spec == "" {
		own, err := a.lookup(strconv.Itoa(int(self)))
		return nil, own, err
	}
	found, err := a.lookup(spec)
	if err != nil {
		return nil, found, err
	}
	if self != 0 {
		if found.uid != self {
			return nil, found, wire.Errorf(wire.CodeUserUnknown, "user: %q is not possible, the node agent does not run as root", spec)
		}
		return nil, found, nil
	}
	return &syscall.Credential{Uid: found.uid, Gid: found.gid, Groups: a.groupsOf(found.name)}, found, nil
}
