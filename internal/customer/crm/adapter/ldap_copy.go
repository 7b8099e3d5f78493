package adapter

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-ldap/ldap/v3"

	"soniq/internal/customer/contact"
)

// ldapPageSize is the number of entries of one page (RFC 2696).
const ldapPageSize = 500

// All passes every entry that has a number or an address to take, page by page.
func (d ldapCopy) All(ctx context.Context, take func(context.Context, contact.Record) error) error {
	return d.pool.withConn(ctx, maxListBytes, func(c *ldap.Conn) error {
		page := ldap.NewControlPaging(ldapPageSize)
		for {
			more, err := d.page(ctx, c, page, take)
			if err != nil || !more {
				return err
			}
		}
	})
}

// page reads one page, and reports whether there is another.
func (d ldapCopy) page(ctx context.Context, c *ldap.Conn, page *ldap.ControlPaging,
	take func(context.Context, contact.Record) error) (more bool, err error) {
	r := ldap.NewSearchRequest(d.s.BaseDN, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, 0, 0, false, d.s.searchableFilter(),
		d.s.Attributes.requested(), []ldap.Control{page})
	answer, err := c.Search(r)
	if ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded) {
		return false, fmt.Errorf("the directory returns at most %d entries: raise its size limit for this account", len(answer.Entries))
	}
	if err != nil {
		return false, err
	}
	for _, e := range answer.Entries {
		if err := take(ctx, d.record(e)); err != nil {
			return false, &callbackError{err}
		}
	}
	next, ok := ldap.FindControl(answer.Controls, ldap.ControlTypePaging).(*ldap.ControlPaging)
	if !ok || len(next.Cookie) == 0 {
		return false, nil
	}
	if string(next.Cookie) == string(page.Cookie) && len(answer.Entries) == 0 {
		return false, errors.New("the directory returns the same empty page repeatedly")
	}
	page.SetCookie(next.Cookie)
	return true, nil
}

// callbackError wraps an error of the function that takes records, to distinguish it from an error of the directory.
type callbackError struct{ error }

// Unwrap returns the error of the function.
func (t *callbackError) Unwrap() error { return t.error }

// searchableFilter returns the filter for entries with a number or an address.
func (s *LDAPSettings) searchableFilter() string {
	var all []string
	for _, name := range append(append([]string{}, s.Attributes.Phones...), s.Attributes.Emails...) {
		all = append(all, "("+name+"=*)")
	}
	return s.withBaseFilter(orFilter(all))
}
