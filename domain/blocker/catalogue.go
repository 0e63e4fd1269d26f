package blocker

import (
	"fmt"
	"strings"
)

// Catalogue returns the table as a document for people, in Markdown.
func Catalogue() string {
	var out strings.Builder
	out.WriteString(catalogueHead)
	for i, rule := range rules {
		owner, key := rule.Owner, keyWords(rule.Key)
		if owner == "" {
			owner = "as found"
		}
		under := ""
		if rule.UnderWay {
			under = "yes"
		}
		fmt.Fprintf(&out, "| %d | `%s` | %s | %s | %s | %s |\n", i+1, rule.Code, rule.Scope, owner, key, under)
	}
	for _, rule := range rules {
		fmt.Fprintf(&out, "\n### %s\n\n> %s\n\nStands when %s. Since: %s. Cleared when %s.\n",
			rule.Code, strings.NewReplacer("{", "*", "}", "*").Replace(rule.Message), rule.When, rule.Since, rule.Clears)
	}
	return out.String()
}

// keyWords returns a rule's key in words, for the document.
func keyWords(key string) string {
	switch key {
	case "":
		return ""
	case keyForce:
		return "the operation's own, while force may be chosen; of an instance `" + family + "member.replace`"
	case keyCancel:
		return "`operation.cancel`, of kinds that can be canceled"
	}
	return "`" + key + "`"
}

const catalogueHead = `# Blockers

What keeps an operation from ending (` + "`operation.blockers`" + `) or an instance from where it should be
(` + "`instance.blockers`" + `). The first one of a list is the thing to mend first: the order below is the order of
lists. An open operation always has at least one; one that has ended has none. An instance's list holds those
of its open operations too. At most ` + "20" + ` are listed.

Each has a ` + "`code`, `message`, `owner`" + ` (who can clear it: adapter, platform, user or node), ` + "`subject`" +
	` (the id or
name that it is about), ` + "`since`, `nextRetryAt`" +
	` (when it is looked at next; null when it is not waited for by the
clock) and ` + "`permissionKey`" + ` (with which somebody can clear it; empty when only waiting or mending outside of the
platform does). ` + "`<family>`" + ` is the instance's permission family.

This page is written from the table in domain/blocker: go test ./domain/blocker -update.

| order | code | of | owner | permission key | merely under way |
|---|---|---|---|---|---|
`
