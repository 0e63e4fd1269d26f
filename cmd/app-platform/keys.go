package main

import (
	"fmt"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/authz/sshca"
	"github.com/gpuaas/app-platform/authz/token"
)

// tokenKeys are the keys that sign tokens.
const tokenKeys = "tokens"

// keysCommand looks after the keys that sign tokens and SSH certificates. Running servers take changes up by
// themselves.
func keysCommand() *cobra.Command {
	var dir, of string
	command := &cobra.Command{Use: "keys", Short: "Manage the keys that sign tokens and SSH certificates"}
	command.PersistentFlags().StringVar(&dir, "keys-dir", "keys", "folder of the signing keys")
	command.PersistentFlags().StringVar(&of, "of", tokenKeys, "what they sign: tokens, ssh-people or ssh-hosts")
	command.PersistentPreRunE = func(*cobra.Command, []string) error {
		switch of {
		case sshca.PeopleDir, sshca.HostsDir:
			dir = filepath.Join(dir, of)
		case tokenKeys:
		default:
			return fmt.Errorf("--of %q: must be tokens, ssh-people or ssh-hosts", of)
		}
		return nil
	}
	command.AddCommand(&cobra.Command{
		Use: "rotate", Short: "Create a key; it verifies within a minute, and signs after three", Args: cobra.NoArgs,
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
	_, _ = fmt.Fprintln(table, "ID\tFILE\tCREATED\tUSE")
	for _, key := range keys {
		use := "verifies"
		if key.Signs {
			use = "signs, verifies"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", key.ID, key.File, key.MadeAt.UTC().Format(time.RFC3339), use)
	}
	return table.Flush()
}
