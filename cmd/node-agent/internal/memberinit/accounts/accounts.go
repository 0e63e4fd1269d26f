// Package accounts resolves users and groups by the files of a member.
package accounts

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// Account is a user of the member's own /etc/passwd.
type Account struct {
	Name     string
	UID, GID uint32
	Home     string
	// Shell is what the user logs in to; empty where the member's file has none.
	Shell string
}

// Files resolves users and groups by the member's files, line by line, and uses no name service.
type Files struct{ Etc string }

// lookup understands "user", "user:group", and numbers for either.
func (a Files) lookup(spec string) (Account, error) {
	name, group, hasGroup := strings.Cut(spec, ":")
	found, err := a.user(name)
	if err != nil || !hasGroup {
		return found, err
	}
	found.GID, err = a.group(group)
	return found, err
}

func (a Files) user(name string) (Account, error) {
	id, numeric := parseID(name)
	var found *Account
	a.scan("passwd", func(fields []string) bool {
		uid, okUID := parseID(field(fields, 2))
		gid, okGID := parseID(field(fields, 3))
		if okUID && okGID && (fields[0] == name || numeric && uid == id) {
			found = &Account{Name: fields[0], UID: uid, GID: gid, Home: field(fields, 5), Shell: field(fields, 6)}
		}
		return found == nil
	})
	switch {
	case found != nil:
		return *found, nil
	case numeric:
		return Account{Name: name, UID: id, GID: id, Home: "/"}, nil
	}
	return Account{}, wire.Errorf(wire.CodeUserUnknown, "user: there is no user %q in the member", name)
}

func (a Files) group(name string) (uint32, error) {
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
func (a Files) groupsOf(name string) []uint32 {
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
func (a Files) scan(file string, next func(fields []string) bool) {
	handle, err := os.Open(filepath.Join(a.Etc, file))
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

// Credential is what the kernel needs to run as spec; nil means as init itself. Without root only
// init's own user is possible.
func (a Files) Credential(spec string) (*syscall.Credential, Account, error) {
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
		if found.UID != self {
			return nil, found, wire.Errorf(wire.CodeUserUnknown,
				"user: %q is not possible, the node agent does not run as root", spec)
		}
		return nil, found, nil
	}
	return &syscall.Credential{Uid: found.UID, Gid: found.GID, Groups: a.groupsOf(found.Name)}, found, nil
}
