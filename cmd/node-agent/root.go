package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/rootfs"
)

const rootLong = `Builds the root that members start from, in a folder that holds versions of it, and prints the version's path.

The same node gives the same version, which is not built again. Versions that no process uses are deleted with --prune.
The agent's flag --member-root takes that path; without it the agent builds a root of its own.`

// rootCommand builds the root ahead: for images of nodes, and for several agents on one machine that share a root.
func rootCommand() *cobra.Command {
	var store rootfs.Store
	var prune bool
	cmd := &cobra.Command{
		Use: "root", Short: "Build the root that members start from", Long: rootLong, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			version, err := store.Current()
			if err != nil {
				return err
			}
			defer version.Close()
			if prune {
				if err := store.Prune(func(name string) bool { return name == version.Name }); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), version.Path)
			return err
		},
	}
	cmd.Flags().StringVar(&store.Dir, "dir", "/var/cache/node-agent/roots", "folder of the versions")
	cmd.Flags().BoolVar(&store.Link, "link", false,
		"hard-link the node's files instead of copying them: quick, but what is edited in place on the node changes "+
			"in members")
	cmd.Flags().BoolVar(&prune, "prune", false, "delete the other versions that no process uses")
	return cmd
}
