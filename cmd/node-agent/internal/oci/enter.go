package oci

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Enter makes a group with the resources of a container and moves the calling thread into it, so that whatever the
// thread starts begins there. It is for version 1 alone, and for threads that end soon. Moving itself is all that a
// thread can do without a grace period of the kernel, which a runtime that moves another process waits for.
func (c *Cgroups) Enter(group string, resources *specs.LinuxResources) error {
	if err := c.lack(resources); err != nil {
		return err
	}
	for _, h := range c.roots {
		if err := h.enter(c.at(group), resources); err != nil {
			return fmt.Errorf("enter cgroup of %s: %w", h.names, err)
		}
	}
	return nil
}

// lack reports the first limit that no hierarchy of the node can hold.
func (c *Cgroups) lack(resources *specs.LinuxResources) error {
	for controller, wanted := range map[string]bool{
		"memory": resources.Memory != nil, "cpu": resources.CPU != nil, "pids": resources.Pids != nil,
		"devices": len(resources.Devices) > 0,
	} {
		if wanted && !slices.ContainsFunc(c.roots, func(h hierarchy) bool { return h.has(controller) }) {
			return fmt.Errorf("the node has no cgroup controller %s", controller)
		}
	}
	return nil
}

func (h hierarchy) enter(group string, resources *specs.LinuxResources) error {
	if err := h.root.MkdirAll(group, 0o755); err != nil {
		return err
	}
	if h.has("cpuset") {
		if err := h.inherit(group); err != nil {
			return err
		}
	}
	own, err := h.root.OpenRoot(group)
	if err != nil {
		return err
	}
	defer own.Close()
	for _, setting := range append(h.settings(resources), setting{"tasks", "0"}) {
		if err := (hierarchy{root: own}).write(".", setting.file, setting.value); err != nil {
			return fmt.Errorf("%s: %w", setting.file, err)
		}
	}
	return nil
}

// inherit gives a group the processors and memory nodes of those above, which the kernel leaves empty. Others may enter
// a group above at the same time, so that each setting is looked at by itself: a group with processors may have no
// memory nodes yet.
func (h hierarchy) inherit(group string) error {
	if above := path.Dir(group); above != "." && above != "/" {
		if err := h.inherit(above); err != nil {
			return err
		}
	}
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := h.root.ReadFile(path.Join(group, name))
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(own)) != "" {
			continue
		}
		above, err := h.root.ReadFile(path.Join(path.Dir(group), name))
		if err == nil {
			err = h.write(group, name, strings.TrimSpace(string(above)))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

type setting struct{ file, value string }

// settings are the files of the hierarchy's controllers that hold a container's resources, in the order of writing.
func (h hierarchy) settings(resources *specs.LinuxResources) (all []setting) {
	if memory := resources.Memory; h.has("memory") && memory != nil {
		all = append(all, setting{"memory.limit_in_bytes", strconv.FormatInt(*memory.Limit, 10)})
	}
	if cpu := resources.CPU; h.has("cpu") && cpu != nil {
		all = append(all, setting{"cpu.shares", strconv.FormatUint(*cpu.Shares, 10)},
			setting{"cpu.cfs_period_us", strconv.FormatUint(*cpu.Period, 10)},
			setting{"cpu.cfs_quota_us", strconv.FormatInt(*cpu.Quota, 10)})
	}
	if pids := resources.Pids; h.has("pids") && pids != nil {
		all = append(all, setting{"pids.max", strconv.FormatInt(*pids.Limit, 10)})
	}
	if h.has("devices") {
		for _, rule := range resources.Devices {
			all = append(all, deviceRule(rule))
		}
	}
	return all
}

func deviceRule(rule specs.LinuxDeviceCgroup) setting {
	file, kind := "devices.deny", rule.Type
	if rule.Allow {
		file = "devices.allow"
	}
	if kind == "" {
		return setting{file, "a"}
	}
	number := func(n *int64) string {
		if n == nil {
			return "*"
		}
		return strconv.FormatInt(*n, 10)
	}
	return setting{file, fmt.Sprintf("%s %s:%s %s", kind, number(rule.Major), number(rule.Minor), rule.Access)}
}
