package tx

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
)

// Voucher is what a maker may give at this moment, as platform.voucher returns it: a person's bindings, or the keys of
// a service account with the voucher of the account's own maker.
type Voucher struct {
	bindings []authz.Binding
	account  bool
	allow    []string
	by       *Voucher
}

// ParseVoucher reads what platform.voucher returned; nil when no maker is known, which limits nothing.
func ParseVoucher(raw []byte) (*Voucher, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var stored struct {
		Bindings json.RawMessage
		Allow    []string
		By       json.RawMessage
		Project  ids.ID
	}
	if err := json.Unmarshal(raw, &stored); err != nil {
		return nil, err
	}
	out := &Voucher{account: stored.Project != "", allow: stored.Allow}
	var err error
	if out.bindings, err = parseBindings(stored.Bindings); err != nil {
		return nil, err
	}
	out.by, err = ParseVoucher(stored.By)
	return out, err
}

// Vouched returns the keys that the maker may still give in the project.
func (v *Voucher) Vouched(names []string, tenantID, projectID ids.ID, now time.Time) []string {
	switch {
	case v == nil:
		return names
	case v.account:
		held := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return !slices.Contains(v.allow, name)
		})
		return v.by.Vouched(held, tenantID, projectID, now)
	}
	maker := authz.NewActor(authz.Subject{Kind: authz.KindUser}, v.bindings, nil, now)
	return authz.Vouched(maker, names, tenantID, projectID)
}

// vouched narrows the keys of a service account to those that every maker of it and of its key may still give.
func (e *entered) vouched(allow []string, now time.Time) ([]string, error) {
	if len(e.bindings) == 0 {
		return allow, nil
	}
	var makers []json.RawMessage
	if err := json.Unmarshal(e.bindings, &makers); err != nil {
		return nil, err
	}
	return vouchedBy(makers, allow, ids.ID(deref(e.tenant)), ids.ID(deref(e.project)), now)
}

// vouchedBy narrows keys to those that each of the makers may still give in the project.
func vouchedBy(makers []json.RawMessage, allow []string, tenantID, projectID ids.ID, now time.Time) ([]string, error) {
	for _, raw := range makers {
		maker, err := ParseVoucher(raw)
		if err != nil {
			return nil, err
		}
		allow = maker.Vouched(allow, tenantID, projectID, now)
	}
	return allow, nil
}

// acts refuses an adapter's token for an instance once the adapter's own account may not act any more, by its keys or
// since a maker of the account, or of the key that the token was requested with, may not give adapter.act.
func (e *entered) acts(credential Credential, now time.Time) error {
	if credential.kind != operator {
		return nil
	}
	var own struct {
		Tenant, Project ids.ID
		Allow           []string
		By              []json.RawMessage
	}
	if err := json.Unmarshal(e.own, &own); err != nil {
		return err
	}
	allow, err := vouchedBy(own.By, own.Allow, own.Tenant, own.Project, now)
	if err != nil {
		return err
	}
	if !slices.Contains(allow, authz.AdapterAct.String()) {
		return errUnknown()
	}
	return nil
}
