package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// Picture returns the house as text, the top floor first: a line for each unit, with its floor, folder and purpose.
// README.md contains it; a test compares the two.
func Picture() string {
	var text strings.Builder
	for floor := top(); floor >= 1; floor-- {
		label := fmt.Sprint(floor)
		for _, unit := range units {
			if unit.Floor == floor {
				fmt.Fprintf(&text, "%s  %-15s %s\n", label, unit.Dir+"/", unit.Why)
				label = " "
			}
		}
	}
	return text.String()
}

// top returns the highest floor.
func top() int {
	return slices.MaxFunc(units, func(a, b Unit) int { return a.Floor - b.Floor }).Floor
}
