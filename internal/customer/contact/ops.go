package contact

import (
	"context"
	"fmt"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
	"soniq/internal/platform/op"
)

// Operations returns the API operations of contacts.
func (s *Service) Operations() []op.Operation {
	r, w := access.ContactsRead, access.ContactsWrite
	return []op.Operation{
		op.New("contacts.lookup", "GET /contacts/lookup", r, "Find who a number or an e-mail address belongs to",
			s.Lookup).Tool("lookup_contact").
			Fails("contact_not_found", "crm_error"),
		op.New("contacts.screen_pop", "GET /contacts/screen-pop", r, "Everything worth knowing of a caller",
			s.ScreenPop).Tool("get_screen_pop"),
		op.New("contacts.list", "GET /contacts", r, "List contacts", s.List),
		op.New("contacts.create", "POST /contacts", w, "Add a contact", s.Create).Status(201).Tool("create_contact"),
		op.New("contacts.get", "GET /contacts/{id}", r, "Get one contact", s.Show),
		op.New("contacts.update", "PATCH /contacts/{id}", w, "Change a contact", s.Update).Tool("update_contact"),
		op.Delete("contacts.delete", "DELETE /contacts/{id}", w, "Delete a contact", s.Delete),
		op.New("contacts.notes.add", "POST /contacts/{id}/notes", w, "Add a note to a contact", s.AddNote).Status(201),
		op.New("contacts.timeline", "GET /contacts/{id}/timeline", access.Both(r, access.CallsRead),
			"Calls, messages, voicemails and notes in one order", s.Timeline),
		op.New("contacts.merge", "POST /contacts/{id}/merge", w, "Merge another contact into this one", s.Merge),
		op.New("contacts.imports.create", "POST /crm/imports", w, "Import contacts from a CSV or vCard file",
			s.Import).Status(202).Fails("concurrency_limit").
			Upload(maxUpload).Takes("multipart/form-data", Upload{}).Takes("application/json", Text{}),
		op.New("contacts.imports.get", "GET /crm/imports/{id}", w, "How far an import has come", s.ShowImport),
	}
}

// Fresh holds the fields of a new contact.
type Fresh struct {
	FirstName     string            `json:"first_name,omitempty" maxLength:"120"`
	LastName      string            `json:"last_name,omitempty" maxLength:"120"`
	Company       string            `json:"company,omitempty" maxLength:"120"`
	Title         string            `json:"title,omitempty" maxLength:"120"`
	Phones        []Phone           `json:"phones,omitempty" maxItems:"20"`
	Emails        []Email           `json:"emails,omitempty" maxItems:"20"`
	OwnerUserID   string            `json:"owner_user_id,omitempty" maxLength:"40"`
	Tags          []string          `json:"tags,omitempty" maxItems:"50"`
	VIP           bool              `json:"vip,omitempty"`
	DoNotCall     bool              `json:"do_not_call,omitempty"`
	Custom        map[string]string `json:"custom,omitempty"`
	CRMSync       *bool             `json:"crm_sync,omitempty" default:"true" doc:"Write it to the connected systems too"`
	ConnectionIDs []string          `json:"connection_ids,omitempty" maxItems:"20" doc:"Only to these"`
}

// CreateIn is the request of contacts.create.
type CreateIn struct{ Body Fresh }

// Create adds a contact.
func (s *Service) Create(ctx context.Context, in *CreateIn) (*op.Out[Contact], error) {
	country, err := s.country(ctx)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	b, now := in.Body, db.At(s.cfg.Clock.Now())
	c := Contact{ID: db.NewID("con"), OrgID: access.Org(ctx), FirstName: b.FirstName, LastName: b.LastName, Company: b.Company,
		Title:  b.Title,
		Phones: b.Phones, Emails: b.Emails, Source: "api", ExternalRefs: []Ref{}, OwnerUserID: db.Null(b.OwnerUserID).Ptr(), Tags: b.Tags,
		VIP: b.VIP, DoNotCall: b.DoNotCall, Custom: b.Custom, CreatedAt: now, UpdatedAt: now}
	wrong := c.check(country, false)
	if err := s.checkConnections(ctx, b.ConnectionIDs, &wrong); err != nil {
		return nil, err
	}
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := s.checkOwner(ctx, tx, c, &wrong); err != nil {
			return err
		}
		if len(wrong) > 0 {
			return op.Invalid(wrong...)
		}
		if err := s.insert(ctx, tx, c, country); err != nil {
			return err
		}
		return s.afterSave(ctx, tx, &c, b.CRMSync, b.ConnectionIDs)
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[Contact]{Body: c, Location: op.Prefix + "/contacts/" + c.ID, ETag: op.Tag(c.UpdatedAt)}, nil
}

// afterSave enqueues the sync to connected systems, if it is wanted, and sets the contact's external references.
func (s *Service) afterSave(ctx context.Context, tx db.Querier, c *Contact, sync *bool, only []string) error {
	if sync == nil || *sync {
		if err := observe.Each(s.observers.saves, func(o SaveObserver) error { return o.ContactSaved(ctx, tx, *c, only) }); err != nil {
			return err
		}
	}
	return s.fillRefs(ctx, tx, c.OrgID, []*Contact{c})
}

func (s *Service) checkConnections(ctx context.Context, ids []string, wrong *[]op.Violation) error {
	if len(ids) == 0 {
		return nil
	}
	more, err := s.cfg.Systems.CheckContactTargets(ctx, access.Org(ctx), ids)
	*wrong = append(*wrong, more...)
	return err
}

func (s *Service) checkOwner(ctx context.Context, q db.Querier, c Contact, wrong *[]op.Violation) error {
	if c.OwnerUserID == nil {
		return nil
	}
	ok, err := hasUser(ctx, q, c.OrgID, *c.OwnerUserID)
	if err == nil && !ok {
		*wrong = append(*wrong, op.Field("owner_user_id", "not_found", "no such user"))
	}
	return err
}

// fillRefs sets the external references of contacts.
func (s *Service) fillRefs(ctx context.Context, q db.Querier, org string, all []*Contact) error {
	if len(all) == 0 {
		return nil
	}
	ids := make([]string, len(all))
	for i, c := range all {
		ids[i] = c.ID
	}
	refs, err := s.cfg.Systems.Refs(ctx, q, org, ids)
	if err != nil {
		return fmt.Errorf("find contacts in connected systems: %w", err)
	}
	for _, c := range all {
		c.ExternalRefs = append([]Ref{}, refs[c.ID]...)
	}
	return nil
}

// OneIn identifies a contact.
type OneIn struct {
	ID string `path:"id" maxLength:"40" example:"con_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

// Show returns a contact.
func (s *Service) Show(ctx context.Context, in *OneIn) (*op.Out[Contact], error) {
	q := s.cfg.DB.Read(ctx)
	c, err := s.find(ctx, q, in.ID)
	if err != nil {
		return nil, err
	}
	if err := s.fillRefs(ctx, q, c.OrgID, []*Contact{&c}); err != nil {
		return nil, err
	}
	return op.Versioned(c, c.UpdatedAt)
}

func (s *Service) find(ctx context.Context, q db.Querier, id string) (Contact, error) {
	c, err := getContact(ctx, q, access.Org(ctx), id)
	if db.IsNone(err) {
		return c, op.NotFound("contact")
	}
	if err != nil {
		return c, fmt.Errorf("get contact: %w", err)
	}
	return c, nil
}

// UpdateIn is the request of contacts.update.
type UpdateIn struct {
	OneIn
	op.Match
	Body Patch
}

// Patch holds the changes of a contact.
type Patch struct {
	FirstName   op.Change[string]             `json:"first_name,omitzero"`
	LastName    op.Change[string]             `json:"last_name,omitzero"`
	Company     op.Change[string]             `json:"company,omitzero"`
	Title       op.Change[string]             `json:"title,omitzero"`
	Phones      op.Change[[]Phone]            `json:"phones,omitzero" doc:"All of them"`
	Emails      op.Change[[]Email]            `json:"emails,omitzero" doc:"All of them"`
	OwnerUserID op.Change[string]             `json:"owner_user_id,omitzero"`
	Tags        op.Change[[]string]           `json:"tags,omitzero" doc:"All of them"`
	VIP         op.Change[bool]               `json:"vip,omitzero"`
	DoNotCall   op.Change[bool]               `json:"do_not_call,omitzero"`
	Custom      op.Change[map[string]*string] `json:"custom,omitzero" doc:"Members to set; null removes one"`
	CRMSync     *bool                         `json:"crm_sync,omitempty" default:"true" doc:"Write the change to the connected systems too"`
}

func (p Patch) apply(c *Contact) {
	p.FirstName.Apply(&c.FirstName)
	p.LastName.Apply(&c.LastName)
	p.Company.Apply(&c.Company)
	p.Title.Apply(&c.Title)
	p.Phones.Apply(&c.Phones)
	p.Emails.Apply(&c.Emails)
	p.Tags.Apply(&c.Tags)
	p.VIP.Apply(&c.VIP)
	p.DoNotCall.Apply(&c.DoNotCall)
	if p.OwnerUserID.Set {
		c.OwnerUserID = db.Null(p.OwnerUserID.V).Ptr()
	}
	if p.Custom.Null {
		c.Custom = nil
	}
	if c.Custom == nil {
		c.Custom = map[string]string{}
	}
	for name, value := range p.Custom.V { // RFC 7396 §2: objects are merged
		if value == nil {
			delete(c.Custom, name)
			continue
		}
		c.Custom[name] = *value
	}
}

// Update changes a contact.
func (s *Service) Update(ctx context.Context, in *UpdateIn) (*op.Out[Contact], error) {
	country, err := s.country(ctx)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	var c Contact
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if c, err = s.find(ctx, tx, in.ID); err != nil {
			return err
		}
		if err = in.Check(c.UpdatedAt); err != nil {
			return err
		}
		before := c
		in.Body.apply(&c)
		wrong := c.check(country, false)
		if err := s.checkOwner(ctx, tx, c, &wrong); err != nil {
			return err
		}
		if len(wrong) > 0 {
			return op.Invalid(wrong...)
		}
		c.UpdatedAt = db.At(s.cfg.Clock.Now())
		if err := s.update(ctx, tx, before, c, country); err != nil {
			return err
		}
		return s.afterSave(ctx, tx, &c, in.Body.CRMSync, nil)
	})
	if err != nil {
		return nil, err
	}
	return op.Versioned(c, c.UpdatedAt)
}

// DeleteIn is the request of contacts.delete.
type DeleteIn struct {
	OneIn
	op.Match
	Erase bool `query:"erase" doc:"Also erase everything that is kept about its numbers, as DELETE /memory/callers/{phone} does, and what connected systems told of it; needs users:admin"`
}

// Delete deletes a contact and its notes. With erase, it also erases the data about its numbers.
func (s *Service) Delete(ctx context.Context, in *DeleteIn) error {
	p, _ := access.From(ctx)
	if in.Erase && !access.UsersAdmin.Need().MetBy(p.Scopes) {
		return &op.Error{Code: "insufficient_scope", Detail: "erasing needs users:admin",
			Extra: map[string]any{"required_scopes": []access.Scope{access.UsersAdmin}}}
	}
	country, err := s.country(ctx)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		c, err := s.find(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if err := in.Check(c.UpdatedAt); err != nil {
			return err
		}
		if in.Erase {
			if err := s.eraseMemory(ctx, tx, c, country); err != nil {
				return err
			}
			return s.deleteWithData(ctx, tx, c, country)
		}
		if err := s.contactDeleted(ctx, tx, c); err != nil {
			return err
		}
		return s.deleteContact(ctx, tx, c, country)
	})
}

// eraseMemory erases the memory of the contact's complete numbers.
func (s *Service) eraseMemory(ctx context.Context, tx db.Querier, c Contact, country string) error {
	for _, p := range c.Phones {
		n := p.parse(country)
		if !n.isComplete() {
			continue
		}
		if err := s.cfg.Memory.EraseNumber(ctx, tx, c.OrgID, n.e164); err != nil {
			return fmt.Errorf("erase memory: %w", err)
		}
	}
	return nil
}
