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
			owner = "depends on the finding"
		}
		under := ""
		if rule.UnderWay {
			under = "yes"
		}
		fmt.Fprintf(&out, "| %d | `%s` | %s | %s | %s | %s |\n", i+1, rule.Code, rule.Scope, owner, key, under)
	}
	for _, rule := range rules {
		fmt.Fprintf(&out, "\n### %s\n\n> %s\n\nListed when %s. Since: %s. Cleared when %s.\n",
			rule.Code, strings.NewReplacer("{", "*", "}", "*").Replace(rule.Message), rule.When, rule.Since,
			rule.Clears)
	}
	return out.String()
}

// keyWords returns a rule's key in words, for the document.
func keyWords(key string) string {
	switch key {
	case "":
		return ""
	case keyForce:
		return "that of the operation's kind, while force may be chosen; for an instance `" + family + "member.replace`"
	case keyCancel:
		return "`operation.cancel`, for kinds that can be canceled"
	}
	return "`" + key + "`"
}

const catalogueHead = `# Blockers

What keeps an operation from ending (` + "`operation.blockers`" + `) or an instance from its intended state
(` + "`instance.blockers`" + `). Clear the first one of a list first: the order below is the order of lists. An open
operation always has at least one blocker; an operation that has ended has none. The list of an instance includes those
of its open operations. At most ` + "20" + ` are listed.

Each has a ` + "`code`, `message`, `owner`" + ` (who can clear it: adapter, platform, user or node), ` + "`subject`" +
	` (the id or
name of the object that it is about), ` + "`since`, `nextRetryAt`" +
	` (when it is checked next; null when
that is at no set time) and ` + "`permissionKey`" + ` (the key with which a user can clear it; empty when only waiting
or a repair outside of the platform does). ` + "`<family>`" + ` is the instance's permission family.

This page is generated from the table in domain/blocker: go test ./domain/blocker -update.

| order | code | about | owner | permission key | only progress |
|---|---|---|---|---|---|
`
