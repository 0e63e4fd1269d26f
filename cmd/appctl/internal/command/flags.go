package command

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/sdk/client"
)

// KeyFlag lets a script repeat a command without repeating its effect. When the command runs there is a key: the one
// that was given, or a fresh one.
func KeyFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "idempotency-key", "",
		"send this key: the same command with the same key has no further effect; a new one if not given")
	cmd.PreRun = func(*cobra.Command, []string) { *into = cmp.Or(*into, client.NewKey()) }
}

// ReasonFlag takes why something is done.
func ReasonFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "reason", "", "why, kept in the audit")
}

// NeededReasonFlag takes why something is done, and refuses to do it without.
func NeededReasonFlag(cmd *cobra.Command, into *string) {
	ReasonFlag(cmd, into)
	Need(cmd, "reason")
}

// Need marks flags without which a command does not run.
func Need(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
}

// CompleteWith completes a flag with these texts.
func CompleteWith(cmd *cobra.Command, flag string, texts ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(texts, cobra.ShellCompDirectiveNoFileComp))
}

// Enums reads names of an enum, in any case and with hyphens or underscores.
func Enums[T ~string](flag string, given []string, known []T) ([]T, error) {
	var found []T
	for _, one := range given {
		read, err := Enum(flag, one, known)
		if err != nil {
			return nil, err
		}
		found = append(found, read)
	}
	return found, nil
}

// Enum reads a name of an enum, in any case and with hyphens or underscores, from a flag or from an argument, whose
// name is in capitals.
func Enum[T ~string](flag, given string, known []T) (T, error) {
	name := T(strings.ToUpper(strings.ReplaceAll(given, "-", "_")))
	if slices.Contains(known, name) {
		return name, nil
	}
	var names []string
	for _, possible := range known {
		names = append(names, strings.ToLower(string(possible)))
	}
	if flag != strings.ToUpper(flag) {
		flag = "--" + flag
	}
	return "", Usagef("%s %q: must be one of %s", flag, given, strings.Join(names, ", "))
}

// Seconds returns a duration in whole seconds; 0 leaves it to the platform.
func Seconds(deadline time.Duration) (int, error) {
	if deadline < 0 || deadline%time.Second != 0 {
		return 0, Usagef("--deadline %s: must be whole seconds", deadline)
	}
	return int(deadline / time.Second), nil
}

// Instant reads a time, or a duration from now; nil when empty.
func Instant(flag, text string) (*time.Time, error) {
	at, err := Moment(flag, text)
	if err == nil {
		return at, nil
	}
	ahead, wrong := time.ParseDuration(text)
	if wrong != nil || ahead <= 0 {
		return nil, Usagef("%w, or a duration such as 720h", err)
	}
	then := time.Now().Add(ahead).UTC()
	return &then, nil
}

// Moment reads a time; nil when empty.
func Moment(flag, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, Usagef("--%s %q: must be a time such as 2026-12-31T00:00:00Z", flag, text)
	}
	return &at, nil
}

// GivenFlag returns the value of a flag that was set, zero too, and nil for one that was left out.
func GivenFlag[T any](cmd *cobra.Command, flag string, value T) *T {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	return &value
}

// Given returns a pointer to a value that was given; nil for the zero value.
func Given[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}
