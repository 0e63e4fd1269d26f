package volume_test

import (
	"os"
	"strconv"
	"syscall"
)

type unixStat = syscall.Stat_t

func itoa(file *os.File) string { return strconv.Itoa(int(file.Fd())) }
