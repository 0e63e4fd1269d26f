package blocker

import "slices"

// onNodes are findings on the nodes of members, of each node the first member's.
func (f *Facts) onNodes(find func(node *Node, member Member) (finding, bool)) []finding {
	var found []finding
	var seen []string
	for _, member := range f.Members {
		node := member.Node
		if node == nil || node.lost(f.Now) || slices.Contains(seen, node.ID) {
			continue
		}
		if one, ok := find(node, member); ok {
			seen = append(seen, node.ID)
			one.subject = node.ID
			found = append(found, one)
		}
	}
	return found
}

// nodeCondition finds the worst condition of each node that keeps new members away.
func nodeCondition(f *Facts) []finding {
	return f.onNodes(func(node *Node, member Member) (finding, bool) {
		if len(node.Barring) == 0 {
			return finding{}, false
		}
		worst := node.Barring[0]
		return finding{since: worst.Since, words: []string{"node", node.Name, "member", member.Name, "condition",
			worst.Name, "state", words(worst.State), "detail", worst.Message}}, true
	})
}

// nodeDraining finds the nodes that an operator drains.
func nodeDraining(f *Facts) []finding {
	return f.onNodes(func(node *Node, member Member) (finding, bool) {
		if node.Drain == nil || node.Drain.Ending {
			return finding{}, false
		}
		why := ""
		if node.Drain.Reason != "" {
			why = " (" + node.Drain.Reason + ")"
		}
		return finding{since: node.Drain.Since, words: []string{"node", node.Name, "member", member.Name, "reason",
			why}}, true
	})
}
