package rootfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Of the accounts the system's are taken, below the first person's and above the last. Members have ids below 65,536.
const (
	firstPerson = 1000
	lastPerson  = 59_999
	idsOfMember = 65_536
)

// system reports whether an id of the node is one of the system's that a member can have.
func system(text string) bool {
	id, err := strconv.Atoi(text)
	return err == nil && id >= 0 && id < idsOfMember && (id < firstPerson || id > lastPerson)
}

// accounts writes the system's accounts and groups, without passwords and without members.
func (s Store) accounts(etc string) error {
	users, err := s.lines("etc/passwd")
	if err != nil {
		return err
	}
	groups, err := s.lines("etc/group")
	if err != nil {
		return err
	}
	var passwd, shadow, group, gshadow strings.Builder
	for _, user := range users {
		if len(user) == 7 && system(user[2]) && system(user[3]) {
			user[1] = "x"
			fmt.Fprintln(&passwd, strings.Join(user, ":"))
			fmt.Fprintf(&shadow, "%s:*:19000:0:99999:7:::\n", user[0])
		}
	}
	shadowGroup := 0
	for _, one := range groups {
		if len(one) != 4 || !system(one[2]) {
			continue
		}
		if one[0] == "shadow" {
			shadowGroup, _ = strconv.Atoi(one[2])
		}
		fmt.Fprintf(&group, "%s:x:%s:\n", one[0], one[2])
		fmt.Fprintf(&gshadow, "%s:*::\n", one[0])
	}
	return writeAll(etc, []file{
		{"passwd", passwd.String(), 0o644, 0}, {"group", group.String(), 0o644, 0},
		{"shadow", shadow.String(), 0o640, shadowGroup}, {"gshadow", gshadow.String(), 0o640, shadowGroup},
	})
}

func (s Store) lines(name string) (lines [][]string, err error) {
	raw, err := os.ReadFile(filepath.Join(s.node(), name))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(raw)) {
		lines = append(lines, strings.Split(strings.TrimRight(line, "\n"), ":"))
	}
	return lines, nil
}

// file is a file of the root whose content does not come from the node.
type file struct {
	name, content string
	mode          os.FileMode
	group         int
}

func writeAll(dir string, files []file) error {
	for _, one := range files {
		path := filepath.Join(dir, one.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(one.content), one.mode); err != nil {
			return err
		}
		if one.group != 0 && os.Geteuid() == 0 {
			if err := os.Lchown(path, 0, one.group); err != nil {
				return err
			}
		}
		if err := os.Chmod(path, one.mode); err != nil {
			return err
		}
	}
	return nil
}
