package number

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/op"
)

// Account is an organisation's account at a provider of numbers. The API never returns its key.
type Account struct {
	ID           string  `json:"id" example:"npr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Provider     string  `json:"provider" example:"telnyx"`
	Status       string  `json:"status" enum:"active,degraded,auth_required,disabled"`
	TrunkID      string  `json:"trunk_id" doc:"The trunk over which calls to its numbers come"`
	ConnectionID *string `json:"connection_id" doc:"The provider's name of that trunk; numbers that are bought are connected with it"`
	URL          string  `json:"url"`
	LastError    *string `json:"last_error" doc:"Of the last question, at the node that is asked"`
	CreatedAt    db.Time `json:"created_at"`
	UpdatedAt    db.Time `json:"updated_at"`

	org         string
	enabled     bool
	credentials Credentials
}

// additionalData returns the additional data of the sealed settings. It binds them to their row, so that they cannot
// be moved to another one.
func (a Account) additionalData() []byte {
	return []byte(a.org + "|number_accounts|" + a.ID + "|settings")
}

// ListAccountsIn holds the paging of ListAccounts.
type ListAccountsIn struct{ op.Paging }

// ListAccounts lists the accounts at providers.
func (s *Service) ListAccounts(ctx context.Context, in *ListAccountsIn) (*op.Out[op.Page[Account]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.accounts(ctx, s.db.Read(ctx), access.Org(ctx))
	if err != nil {
		return nil, err
	}
	rest := slices.DeleteFunc(slices.Clone(all), func(a Account) bool { return a.ID <= after.ID })
	page := op.Paged(ctx, in.Paging, rest[:min(len(rest), in.Limit+1)], func(a Account) op.Position { return op.Position{ID: a.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return len(all), nil })
}

// AccountIn holds the input of CreateAccount.
type AccountIn struct{ Body AccountFresh }

// AccountFresh describes an account.
type AccountFresh struct {
	Provider     string `json:"provider" maxLength:"40" example:"telnyx"`
	APIKey       string `json:"api_key" minLength:"1" maxLength:"500" doc:"Kept sealed, and never shown again"`
	TrunkID      string `json:"trunk_id" maxLength:"40" doc:"The trunk over which calls to its numbers come"`
	ConnectionID string `json:"connection_id,omitempty" maxLength:"120" doc:"The provider's name of that trunk"`
	URL          string `json:"url,omitempty" maxLength:"500" doc:"Of the provider's API, where it is not the usual one"`
}

// CreateAccount connects an account at a provider. From then on its numbers are in search results and can be ordered.
func (s *Service) CreateAccount(ctx context.Context, in *AccountIn) (*op.Out[Account], error) {
	b, now := in.Body, db.At(s.now())
	a := Account{ID: db.NewID("npr"), Provider: b.Provider, TrunkID: b.TrunkID, CreatedAt: now, UpdatedAt: now, org: access.Org(ctx),
		enabled: true, credentials: Credentials{URL: b.URL, Key: b.APIKey, Connection: b.ConnectionID}}
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		err := s.saveAccount(ctx, tx, &a, insertAccount)
		if db.IsConflict(err) {
			return op.Fail("already_exists", "an account at "+a.Provider+" is connected already")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.fillComputed(&a)
	return &op.Out[Account]{Body: a, Location: op.Prefix + "/numbers/providers/" + a.ID, ETag: op.Tag(a.UpdatedAt)}, nil
}

// saveAccount validates an account and writes it with sealed settings.
func (s *Service) saveAccount(ctx context.Context, tx db.Querier, a *Account, write func(context.Context, db.Querier, Account,
	[]byte) error) error {
	wrong, err := s.validateAccount(ctx, tx, a)
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return op.Invalid(wrong...)
	}
	raw, err := json.Marshal(a.credentials)
	if err != nil {
		return err
	}
	sealed, err := s.config.Seal.Seal(raw, a.additionalData())
	if err != nil {
		return fmt.Errorf("seal settings: %w", err)
	}
	return s.db.Tx(ctx, func(tx db.Querier) error { return write(ctx, tx, *a, sealed) })
}

func (s *Service) validateAccount(ctx context.Context, q db.Querier, a *Account) (wrong []op.Violation, err error) {
	o, err := s.orgs.Get(ctx, a.org)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	seller, ok := s.config.AccountProviders[a.Provider]
	switch {
	case o.Sandbox():
		wrong = append(wrong, op.Field("provider", "not_available", "sandboxes have the numbers of the sandbox"))
	case !ok:
		names := strings.Join(slices.Sorted(maps.Keys(s.config.AccountProviders)), ", ")
		wrong = append(wrong, op.Field("provider", "not_available", "can be one of "+names))
	case a.credentials.URL == "":
		a.credentials.URL = seller.URL
	}
	if bad := s.validateURL(a.credentials.URL); ok && bad != nil {
		wrong = append(wrong, *bad)
	}
	if k := a.credentials.Key; k == "" || len(k) > 500 || strings.ContainsFunc(k, func(r rune) bool { return r <= ' ' || r > '~' }) {
		wrong = append(wrong, op.Field("api_key", "invalid_value", "must be 1 to 500 printable characters without spaces"))
	}
	if len(a.credentials.Connection) > 120 {
		wrong = append(wrong, op.Field("connection_id", "invalid_length", "must have at most 120 characters"))
	}
	found, err := findExisting(ctx, q, a.org, a.TrunkID, "", "", "")
	if err == nil && (!found.trunk || a.TrunkID == "") {
		wrong = append(wrong, op.Field("trunk_id", "not_found", "no such trunk"))
	}
	return wrong, err
}

func (s *Service) validateURL(address string) *op.Violation {
	u, err := url.Parse(address)
	if err == nil && (u.RawQuery != "" || len(address) > 500) {
		v := op.Field("url", "invalid_url", "must be the address of an API, without a query")
		return &v
	}
	var fault *egress.Fault
	if errors.As(s.config.Guard.Check(address), &fault) {
		v := op.Field("url", fault.Code, fault.Message)
		return &v
	}
	return nil
}

// OneAccount holds the id of an account.
type OneAccount struct {
	ID string `path:"id" maxLength:"40" example:"npr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

// ShowAccount returns an account.
func (s *Service) ShowAccount(ctx context.Context, in *OneAccount) (*op.Out[Account], error) {
	a, err := s.findAccount(ctx, s.db.Read(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return op.Versioned(a, a.UpdatedAt)
}

func (s *Service) findAccount(ctx context.Context, q db.Querier, id string) (Account, error) {
	all, err := s.accounts(ctx, q, access.Org(ctx))
	if err != nil {
		return Account{}, err
	}
	i := slices.IndexFunc(all, func(a Account) bool { return a.ID == id })
	if i < 0 {
		return Account{}, op.NotFound("account")
	}
	return all[i], nil
}

// UpdateAccountIn holds the input of UpdateAccount.
type UpdateAccountIn struct {
	OneAccount
	op.Match
	Body AccountPatch
}

// AccountPatch is a merge patch (RFC 7396) of an account.
type AccountPatch struct {
	Status       op.Change[string] `json:"status,omitzero" doc:"active or disabled"`
	APIKey       op.Change[string] `json:"api_key,omitzero"`
	TrunkID      op.Change[string] `json:"trunk_id,omitzero" doc:"Of numbers bought from now on"`
	ConnectionID op.Change[string] `json:"connection_id,omitzero"`
	URL          op.Change[string] `json:"url,omitzero"`
}

// UpdateAccount changes an account.
func (s *Service) UpdateAccount(ctx context.Context, in *UpdateAccountIn) (*op.Out[Account], error) {
	var a Account
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if a, err = s.findAccount(ctx, tx, in.ID); err != nil {
			return err
		}
		if err := in.Check(a.UpdatedAt); err != nil {
			return err
		}
		p := in.Body
		if p.Status.Set {
			if p.Status.V != "active" && p.Status.V != "disabled" {
				return op.Invalid(op.Field("status", "invalid_value", "must be active or disabled"))
			}
			a.enabled = p.Status.V == "active"
		}
		before := a.credentials.URL
		p.APIKey.Apply(&a.credentials.Key)
		p.TrunkID.Apply(&a.TrunkID)
		p.ConnectionID.Apply(&a.credentials.Connection)
		p.URL.Apply(&a.credentials.URL)
		moved := op.SecretPlace(before) != op.SecretPlace(a.credentials.URL)
		if wrong := op.SecretsAgain(moved && p.APIKey.V == "", "api_key"); len(wrong) > 0 {
			return op.Invalid(wrong...)
		}
		a.UpdatedAt = db.At(s.now())
		return s.saveAccount(ctx, tx, &a, updateAccount)
	})
	if err != nil {
		return nil, err
	}
	s.fillComputed(&a)
	return op.Versioned(a, a.UpdatedAt)
}

// DeleteAccountIn holds the input of DeleteAccount.
type DeleteAccountIn struct {
	OneAccount
	op.Match
}

// DeleteAccount deletes an account. It is refused while there are numbers of the account, because they could not be
// released at the provider without it.
func (s *Service) DeleteAccount(ctx context.Context, in *DeleteAccountIn) error {
	return s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		a, err := s.findAccount(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if err := in.Check(a.UpdatedAt); err != nil {
			return err
		}
		numbers, err := assignedIDs(ctx, tx, a.org, "account_id", []string{a.ID})
		if err != nil {
			return err
		}
		if len(numbers) > 0 {
			return op.InUse("numbers were bought with this account; give them back first", numbers[a.ID]...)
		}
		return deleteAccount(ctx, tx, a.org, a.ID)
	})
}
