package postgres

import (
	"maps"
	"slices"
	"strconv"
)

// Profile chooses between crash safety and speed.
type Profile int

// The two profiles.
const (
	Durable   Profile = iota // everything on disk before a commit answers
	Throwaway                // for tests: a crash loses the cluster, nothing waits for the disk
)

// defaultMaxConnections serves a server with all roles, or some dozens of test processes.
const defaultMaxConnections = 300

var common = map[string]string{
	"listen_addresses": "",
	"jit":              "off", // compiling costs more than it saves on short statements
	"log_min_messages": "warning",
	"log_checkpoints":  "off",
	"log_line_prefix":  "%m [%p] %d %u ",
	"timezone":         "UTC",
	"log_timezone":     "UTC",
}

var profiles = map[Profile]map[string]string{
	Durable: {
		"shared_buffers":       "256MB",
		"wal_compression":      "on",
		"max_wal_size":         "1GB",
		"random_page_cost":     "1.1",
		"effective_cache_size": "1GB",
	},
	Throwaway: {
		"shared_buffers":             "64MB",
		"fsync":                      "off",
		"max_prepared_transactions":  "4",
		"synchronous_commit":         "off",
		"full_page_writes":           "off",
		"wal_level":                  "minimal",
		"max_wal_senders":            "0",
		"max_wal_size":               "256MB",
		"min_wal_size":               "32MB",
		"autovacuum":                 "off", // an autovacuum worker inside a template would block its cloning
		"dynamic_shared_memory_type": "mmap",
	},
}

// arguments renders the settings as command-line options of postgres, in a stable order.
func (c Config) arguments(socketDir string) []string {
	settings := maps.Clone(common)
	maps.Copy(settings, profiles[c.Profile])
	settings["unix_socket_directories"] = socketDir
	settings["unix_socket_permissions"] = "0700"
	settings["max_connections"] = strconv.Itoa(c.MaxConnections)
	maps.Copy(settings, c.Settings)
	var args []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}
