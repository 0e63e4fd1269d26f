package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/authz/token"
)

// keysCommand looks after the keys that sign tokens. Running servers take changes up by themselves.
func keysCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{Use: "keys", Short: "Look after the keys that sign tokens"}
	command.PersistentFlags().StringVar(&dir, "keys-dir", "keys", "folder of the signing keys")
	command.AddCommand(&cobra.Command{
		Use: "rotate", Short: "Make a new key; it verifies within a minute, and signs after three", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := token.AddKey(dir)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
			return err
		},
	}, &cobra.Command{
		Use: "list", Short: "List the keys, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listKeys(cmd, dir) },
	})
	return command
}

func listKeys(cmd *cobra.Command, dir string) error {
	keys, err := token.ListKeys(dir)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tFILE\tMADE\tUSE")
	for _, key := range keys {
		use := "verifies"
		if key.Signs {
			use = "signs, verifies"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", key.ID, key.File, key.MadeAt.UTC().Format(time.RFC3339), use)
	}
	return table.Flush()
}
