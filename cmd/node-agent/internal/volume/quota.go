package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/thread"
)

// The kernel's interface to projects of files and their quotas, from linux/fs.h and linux/quota.h.
const (
	getAttributes, setAttributes = 0x801c581f, 0x401c5820 // FS_IOC_FSGETXATTR and FS_IOC_FSSETXATTR
	inherits                     = 0x200                  // FS_XFLAG_PROJINHERIT
	projects                     = 2                      // PRJQUOTA
	getQuota                     = 0x800007<<8 | projects
	setQuota                     = 0x800008<<8 | projects
	limitsValid                  = 1    // QIF_BLIMITS
	quotaUnit                    = 1024 // of limits, in bytes
)

// attributes are struct fsxattr.
type attributes struct {
	Flags, ExtentSize, Extents, Project, CowExtentSize uint32
	_                                                  [8]byte
}

// quota is struct if_dqblk.
type quota struct {
	Hard, Soft, Space                                uint64
	HardInodes, SoftInodes, Inodes, Times, InodeTime uint64
	Valid                                            uint32
	_                                                uint32
}

// projectTries bounds how many numbers are tried for a project: an operator may use some.
const projectTries = 16

// enclose makes a folder a project of its own that holds no more than size.
func enclose(folder *os.File, size int64) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(folder.Fd()), &stat); err != nil {
		return err
	}
	// Of its own as its inode is, and far from the small numbers that people give.
	project := uint32(stat.Ino^stat.Ino>>32) ^ 1<<31 // #nosec G115 -- the low half
	for range projectTries {
		var known quota
		if err := quotaCall(folder, getQuota, project, &known); err != nil {
			return err
		}
		if project != 0 && known.Hard == 0 && known.Space == 0 {
			if err := setProject(folder, project); err != nil {
				return err
			}
			return setLimit(folder, project, size)
		}
		project++
	}
	return errors.New("no quota project of the file system is free")
}

func setProject(folder *os.File, project uint32) error {
	var known attributes
	if err := attributeCall(folder, getAttributes, &known); err != nil {
		return err
	}
	known.Project, known.Flags = project, known.Flags|inherits
	return attributeCall(folder, setAttributes, &known)
}

func setLimit(folder *os.File, project uint32, size int64) error {
	limit := quota{Hard: uint64(size) / quotaUnit, Valid: limitsValid} // #nosec G115 -- positive
	return quotaCall(folder, setQuota, project, &limit)
}

// enclosed returns the project of a folder and what it holds; 0 for one without.
func enclosed(folder *os.File) (project uint32, known quota, err error) {
	var own attributes
	if err = attributeCall(folder, getAttributes, &own); err != nil || own.Project == 0 || own.Flags&inherits == 0 {
		return 0, known, err
	}
	return own.Project, known, quotaCall(folder, getQuota, own.Project, &known)
}

// release takes the limit away from the project of a folder that is about to be deleted.
func release(folder *os.File) {
	if project, _, err := enclosed(folder); err == nil && project != 0 {
		_ = setLimit(folder, project, 0)
	}
}

// encloses finds out, in an empty folder, whether its file system keeps a project from growing. What may set aside what
// is reserved is not kept from it, as members are.
func encloses(dir string) (bounded bool) {
	const little = 1 << 20
	folder, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer folder.Close()
	if enclose(folder, little) != nil {
		return false
	}
	defer release(folder)
	file := filepath.Join(dir, "full")
	defer os.Remove(file)
	err = thread.Apart(func() error {
		if err := without(unix.CAP_SYS_RESOURCE); err != nil {
			return err
		}
		return os.WriteFile(file, make([]byte, 2*little), 0o600)
	})
	return errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.ENOSPC)
}

// without drops a capability of the calling thread.
func without(capability uint) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var held [2]unix.CapUserData
	if err := unix.Capget(&header, &held[0]); err != nil {
		return err
	}
	held[capability/32].Effective &^= 1 << (capability % 32)
	return unix.Capset(&header, &held[0])
}

func attributeCall(folder *os.File, call uintptr, of *attributes) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, folder.Fd(), call, uintptr(unsafe.Pointer(of))) // #nosec G103
	if errno != 0 {
		return fmt.Errorf("project of %s: %w", filepath.Base(folder.Name()), errno)
	}
	return nil
}

func quotaCall(folder *os.File, call uintptr, project uint32, of *quota) error {
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, folder.Fd(), call, uintptr(project),
		uintptr(unsafe.Pointer(of)), 0, 0) // #nosec G103
	if errno != 0 {
		return fmt.Errorf("quota of %s: %w", filepath.Base(folder.Name()), errno)
	}
	return nil
}
