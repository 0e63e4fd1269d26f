package authz

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"
	stringadapter "github.com/casbin/casbin/v2/persist/string-adapter"
)

//go:embed model.conf
var modelText string

//go:embed policy.csv
var policyText string

// compiled is what each role, and each ceiling of a machine, holds. Casbin evaluates each role and key once, at the
// first use, which takes some tens of milliseconds.
var compiled = sync.OnceValues(func() (map[Role]Mask, error) { return compile(modelText, policyText) })

// Load compiles the embedded policy, so that a program fails at its start and not at its first request. Without
// a policy that compiles every actor holds nothing.
func Load() error {
	_, err := compiled()
	return err
}

// RoleMask is what the role holds; an unknown role holds nothing.
func RoleMask(role Role) Mask {
	masks, _ := compiled() // on failure the map is nil and every mask empty; Load reports it
	return masks[role]
}

// compile has Casbin evaluate every role and key. It refuses a policy that names a role or a key which is not in the
// catalogues, as such a row would be a right that no one can see.
func compile(modelText, policyText string) (map[Role]Mask, error) {
	parsed, err := model.NewModelFromString(modelText)
	if err != nil {
		return nil, fmt.Errorf("read the permission model: %w", err)
	}
	enforcer, err := casbin.NewEnforcer(parsed, stringadapter.NewAdapter(withoutComments(policyText)))
	if err != nil {
		return nil, fmt.Errorf("read the permission policy: %w", err)
	}
	if err := checkNames(enforcer); err != nil {
		return nil, err
	}
	masks := make(map[Role]Mask, len(roles))
	for _, entry := range roles {
		mask, err := ask(enforcer, entry.Role)
		if err != nil {
			return nil, err
		}
		masks[entry.Role] = mask
	}
	return masks, nil
}

// ask is every key that Casbin allows the role.
func ask(enforcer *casbin.Enforcer, role Role) (Mask, error) {
	var mask Mask
	for _, key := range Keys() {
		allowed, err := enforcer.Enforce(string(role), key.String())
		if err != nil { // its text may hold a stack trace
			return Mask{}, fmt.Errorf("evaluate the permission policy for role %s and key %s", role, key)
		}
		if allowed {
			mask.add(key)
		}
	}
	return mask, nil
}

// checkNames refuses rows of the policy that name an unknown role or key.
func checkNames(enforcer *casbin.Enforcer) error {
	rows, err := enforcer.GetPolicy()
	if err != nil {
		return fmt.Errorf("list the permission policy: %w", err)
	}
	var problems []error
	for _, row := range rows {
		if !Role(row[0]).Known() {
			problems = append(problems, fmt.Errorf("the permission policy names the unknown role %q", row[0]))
		}
		if _, err := ParseKey(row[1]); err != nil {
			problems = append(problems, fmt.Errorf("the permission policy names the unknown key %q", row[1]))
		}
	}
	return errors.Join(problems...)
}

// withoutComments drops what Casbin's string adapter would take for rows.
func withoutComments(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
