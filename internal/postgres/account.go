package postgres

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user the server runs as. switched is false when that is simply the user we are.
type account struct {
	uid, gid uint32
	switched bool
}

// chooseAccount picks the server's user. dataDir may not exist yet.
func chooseAccount(dataDir string) (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}, nil
	}
	if info, err := os.Stat(filepath.Join(dataDir, "PG_VERSION")); err == nil {
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 0 {
			return account{uid: st.Uid, gid: st.Gid, switched: true}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return newAccount(u)
		}
	}
	return account{},
		fmt.Errorf("PostgreSQL does not run as root, and the machine has neither user postgres nor user " +
			"nobody")
}

func newAccount(u *user.User) (account, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("uid of %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("gid of %s: %w", u.Username, err)
	}
	return account{uid: uint32(uid), gid: uint32(gid), switched: true}, nil
}

// ownDir makes dir with mode 0700 and gives it to the account. A symlink or another account's folder is refused.
func (a account) ownDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || (st.Uid != a.uid && st.Uid != uint32(os.Geteuid())) {
		return fmt.Errorf("%s is not a folder of this user", dir)
	}
	if a.switched {
		if err := os.Lchown(dir, int(a.uid), int(a.gid)); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o700)
}

// reaches reports whether the account may walk to dir: every folder above it must let the account through.
func (a account) reaches(dir string) bool {
	if !a.switched {
		return true
	}
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err != nil || !a.enters(info) {
			return false
		}
		if parent == "/" {
			return true
		}
	}
}

func (a account) enters(info os.FileInfo) bool {
	st, mode := info.Sys().(*syscall.Stat_t), info.Mode().Perm()
	switch {
	case st.Uid == a.uid:
		return mode&0o100 != 0
	case st.Gid == a.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

// credential is what a child process needs to run as the account; nil when no switch is needed (or allowed).
func (a account) credential() *syscall.Credential {
	if !a.switched {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: []uint32{}}
}
