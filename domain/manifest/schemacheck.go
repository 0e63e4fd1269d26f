package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxSchemaCost bounds how many subschemas one value may be checked against, with every reference written out.
const maxSchemaCost = 2000

// forbidden are the keywords that could make a schema depend on something outside of it, or be recursive without
// a $ref.
var forbidden = []string{"$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor",
	"$vocabulary"}

// opaque are the keywords whose values are data and not schemas.
var opaque = []string{"const", "enum", "default", "examples", "$comment", "description", "title"}

// schemaChecker walks a schema with its references written out.
type schemaChecker struct {
	defs map[string]any
	// open are the definitions under way, to find recursion; costs are those done.
	open  map[string]bool
	costs map[string]int
}

// checkSchema refuses a schema that refers to anything but its own $defs, that is recursive, or that is too large
// with its references written out. Without this a schema of a few lines could make a small document cost minutes.
func checkSchema(schema any) error {
	root, _ := schema.(map[string]any)
	if root == nil {
		return errors.New("a schema must be an object")
	}
	if draft, given := root["$schema"]; given && draft != "https://json-schema.org/draft/2020-12/schema" {
		return errors.New("a schema must be of draft 2020-12")
	}
	defs, _ := root["$defs"].(map[string]any)
	checker := schemaChecker{defs: defs, open: map[string]bool{}, costs: map[string]int{}}
	if err := checker.checkDefs(); err != nil {
		return err
	}
	cost, err := checker.cost(schema, "")
	if err == nil && cost > maxSchemaCost {
		err = fmt.Errorf("a schema may have at most %d subschemas with its references expanded", maxSchemaCost)
	}
	return err
}

// cost is the number of schema nodes below value, which is what keyword holds.
func (c *schemaChecker) cost(value any, keyword string) (int, error) {
	switch value := value.(type) {
	case map[string]any:
		return c.costObject(value, namesFields(keyword))
	case []any:
		total := 0
		for _, element := range value {
			cost, err := c.cost(element, "")
			if err != nil {
				return 0, err
			}
			total = min(total+cost, maxSchemaCost+1)
		}
		return total, nil
	}
	return 1, nil
}

// costObject is the cost of a schema, or of a map from the names of fields to schemas.
func (c *schemaChecker) costObject(object map[string]any, fields bool) (int, error) {
	total := 1
	for name, value := range object {
		if !fields {
			if slices.Contains(forbidden, name) {
				return 0, fmt.Errorf("the keyword %s is not allowed in a schema", name)
			}
			if slices.Contains(opaque, name) {
				continue
			}
		}
		cost, err := c.costMember(name, value, fields)
		if err != nil {
			return 0, err
		}
		total = min(total+cost, maxSchemaCost+1)
	}
	return total, nil
}

// costMember is the cost of one member: of a reference, that of its target.
func (c *schemaChecker) costMember(name string, value any, fields bool) (int, error) {
	switch {
	case fields:
		return c.cost(value, "")
	case name == "$ref":
		return c.costRef(value)
	case name == "$defs": // counted where they are referred to; those below the top cannot be
		return 0, nil
	}
	return c.cost(value, name)
}

// checkDefs walks every definition, also those that nothing refers to.
func (c *schemaChecker) checkDefs() error {
	for name := range c.defs {
		if _, err := c.costDef(name); err != nil {
			return err
		}
	}
	return nil
}

// costRef is the cost of what a reference points at.
func (c *schemaChecker) costRef(value any) (int, error) {
	ref, _ := value.(string)
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	if _, known := c.defs[name]; !ok || !known {
		return 0, fmt.Errorf("the reference %.80q must be to one of the schema's own $defs", ref)
	}
	return c.costDef(name)
}

// costDef is the cost of a definition, counted once.
func (c *schemaChecker) costDef(name string) (int, error) {
	if cost, done := c.costs[name]; done {
		return cost, nil
	}
	if c.open[name] {
		return 0, fmt.Errorf("the definition %.80q refers to itself", name)
	}
	c.open[name] = true
	cost, err := c.cost(c.defs[name], "")
	c.open[name], c.costs[name] = false, cost
	return cost, err
}

// namesFields reports whether the members of what the keyword holds are names and not keywords.
func namesFields(keyword string) bool {
	switch keyword {
	case "properties", "patternProperties", "dependentSchemas", "dependentRequired":
		return true
	}
	return false
}
