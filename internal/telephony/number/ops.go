package number

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	orgs "soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Operations lists the API operations on numbers.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("numbers.list", "GET /numbers", access.NumbersAdmin, "List numbers", s.List),
		op.New("me.numbers.list", "GET /me/numbers", access.Any, "List the numbers that the own calls may show",
			s.ListShowable).ForPerson(),
		op.New("numbers.search", "GET /numbers/search", access.NumbersAdmin, "Find numbers that can be had",
			s.Search).Tool("search_numbers"),
		op.New("numbers.create", "POST /numbers", access.NumbersAdmin, "Order a number, or add one of yours",
			s.Create).Status(201).Async().Fails("number_unavailable").Tool("allocate_number"),
		op.New("numbers.imports.create", "POST /numbers/imports", access.NumbersAdmin, "Add many numbers of yours",
			s.Import).Status(201).WithSideEffects().Fails("number_unavailable").
			About("All or none are added: what is wrong is told of every line. A table has a line of headings: number, and of label, trunk_id, user (an id, an extension or an e-mail address), user_id, flow_id, queue_id, sms_enabled and emergency_address those you need.").
			Upload(maxImportBody).Takes("application/json", Batch{}).Takes("text/csv", "").Answers(200, "application/json", Imported{}),
		op.New("numbers.providers.list", "GET /numbers/providers", access.NumbersAdmin, "List accounts at providers of numbers",
			s.ListAccounts),
		op.New("numbers.providers.create", "POST /numbers/providers", access.NumbersAdmin, "Connect an account at a provider of numbers",
			s.CreateAccount).Status(201).Fails("already_exists"),
		op.New("numbers.providers.get", "GET /numbers/providers/{id}", access.NumbersAdmin, "Get one account", s.ShowAccount),
		op.New("numbers.providers.update", "PATCH /numbers/providers/{id}", access.NumbersAdmin, "Change an account", s.UpdateAccount),
		op.Delete("numbers.providers.delete", "DELETE /numbers/providers/{id}", access.NumbersAdmin, "Forget an account",
			s.DeleteAccount).Fails("in_use"),
		op.New("numbers.ports.create", "POST /numbers/ports", access.NumbersAdmin, "Bring numbers along from another carrier",
			s.CreatePort).Status(201).Fails("number_unavailable"),
		op.New("numbers.ports.get", "GET /numbers/ports/{id}", access.NumbersAdmin, "Get one port", s.ShowPort),
		op.New("numbers.get", "GET /numbers/{id}", access.NumbersAdmin, "Get one number", s.Show),
		op.New("numbers.update", "PATCH /numbers/{id}", access.NumbersAdmin, "Change a number", s.Update),
		op.Delete("numbers.release", "DELETE /numbers/{id}", access.NumbersAdmin, "Give a number back", s.Release),
	}
}

// ListIn holds the filters of List.
type ListIn struct {
	op.Paging
	Status     []string `query:"status" enum:"pending,active,suspended,releasing,released,porting_in,port_failed,failed" doc:"All but released ones unless given"`
	FlowID     string   `query:"flow_id"`
	UserID     string   `query:"user_id"`
	Q          string   `query:"q" maxLength:"120" doc:"Part of a number or label"`
	Capability []string `query:"capability" enum:"voice,sms,mms,fax"`
}

// List returns numbers in the order in which they were added.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Number]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	by := filter{statuses: in.Status, capabilities: in.Capability, user: in.UserID, q: in.Q, flow: in.FlowID,
		after: after.ID, limit: in.Limit}
	q, org := s.db.Read(ctx), access.Org(ctx)
	rows, err := listNumbers(ctx, q, org, by)
	if err != nil {
		return nil, err
	}
	page := op.Paged(ctx, in.Paging, rows, func(n Number) op.Position { return op.Position{ID: n.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return by.query(org).Count(ctx, q) })
}

// CreateIn holds the input of Create.
type CreateIn struct{ Body Fresh }

// Fresh describes a number to order, or an owned one with the trunk that carries it.
type Fresh struct {
	Number     string         `json:"number" doc:"E.164, or as it is dialled in the organisation's country" example:"+442079460018"`
	Provider   string         `json:"provider,omitempty" maxLength:"60" doc:"Of whom numbers.search found it"`
	TrunkID    string         `json:"trunk_id,omitempty" doc:"The trunk its calls come over, for a number you own"`
	FlowID     string         `json:"flow_id,omitempty" doc:"A published flow"`
	UserID     string         `json:"user_id,omitempty" doc:"Whom it rings"`
	QueueID    string         `json:"queue_id,omitempty"`
	Label      string         `json:"label,omitempty" maxLength:"120"`
	SMSEnabled bool           `json:"sms_enabled,omitempty"`
	Emergency  FreshEmergency `json:"emergency,omitzero"`
}

// FreshEmergency holds the address for emergency services.
type FreshEmergency struct {
	Address string `json:"address,omitempty" maxLength:"500"`
}

// Create orders a number, or adds one that the organisation owns already. If the order takes time, it returns 202 and
// the number is pending.
func (s *Service) Create(ctx context.Context, in *CreateIn) (*op.Out[Number], error) {
	var n Number
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if n, err = s.newNumber(ctx, tx, in.Body); err != nil {
			return err
		}
		if err = s.orgs.CheckQuota(ctx, tx, n.OrgID, orgs.Numbers,
			func() (int, error) { return countNumbers(ctx, tx, n.OrgID) }); err != nil {
			return err
		}
		after := n.after
		err = s.db.Tx(ctx, func(tx db.Querier) error { return insertNumber(ctx, tx, n) })
		if db.IsConflict(err) {
			return op.Fail("number_unavailable", n.Number+" is one of your numbers already")
		}
		if err != nil {
			return fmt.Errorf("add number: %w", err)
		}
		if n, err = getNumber(ctx, tx, n.OrgID, n.ID); err != nil {
			return fmt.Errorf("read number: %w", err)
		}
		s.publishChanged(tx, n.Number)
		if n.after = after; n.isClaim() {
			return nil
		}
		if n.Status == "pending" {
			return s.enqueueFollow(ctx, tx, n)
		}
		return s.publishAllocated(ctx, tx, n)
	})
	if err != nil {
		return nil, err
	}
	out := &op.Out[Number]{Body: n, Location: op.Prefix + "/numbers/" + n.ID, ETag: op.Tag(n.UpdatedAt)}
	if n.Status == "pending" {
		out.Status = http.StatusAccepted
	}
	return out, nil
}

// newNumber builds the number of a request, or returns every violation at once.
func (s *Service) newNumber(ctx context.Context, tx db.Querier, f Fresh) (Number, error) {
	o, err := s.orgs.Get(ctx, access.Org(ctx))
	if err != nil {
		return Number{}, fmt.Errorf("find organisation: %w", err)
	}
	wrong, err := s.validateTargets(ctx, tx, f.TrunkID, f.UserID, f.FlowID, f.QueueID)
	if err != nil {
		return Number{}, err
	}
	e164, ok := Parse(f.Number, o.Country)
	if !ok {
		wrong = append(wrong, op.Field("number", "invalid_e164", "not a valid number for "+o.Country))
	}
	more, err := s.validateSource(ctx, tx, o, f, e164)
	if err != nil {
		return Number{}, err
	}
	if wrong = append(wrong, more...); len(wrong) > 0 {
		return Number{}, op.Invalid(wrong...)
	}
	n := s.newOwnNumber(o, f, e164)
	if f.TrunkID == "" {
		return n, s.takeFromSource(ctx, tx, o, &n, f.Provider)
	}
	n.TrunkID = &f.TrunkID
	if f.Provider != "" {
		n.Provider = f.Provider
	}
	return n, s.admit(ctx, tx, &n)
}

// newOwnNumber builds a number that the organisation owns.
func (s *Service) newOwnNumber(o orgs.Organization, f Fresh, e164 string) Number {
	now, is := db.At(s.now()), infoOf(e164, o.Country)
	n := Number{ID: db.NewID("num"), OrgID: o.ID, Number: e164, Country: is.Country, Locality: is.Locality, Type: is.Type,
		Capabilities: []string{"voice"}, Status: "active", Label: f.Label, Provider: ProviderOwn,
		SMSEnabled: f.SMSEnabled, RecordingMode: "inherit", CreatedAt: now, UpdatedAt: now, AllocatedAt: now,
		Emergency: Emergency{Status: "none", Address: db.Null(f.Emergency.Address).Ptr()}}
	Patch{UserID: setIf(f.UserID), FlowID: setIf(f.FlowID), QueueID: setIf(f.QueueID)}.assign(&n)
	return n
}

func setIf(id string) op.Change[string] { return op.Change[string]{Set: id != "", V: id} }

// validateSource returns the violations of a number's trunk and provider.
func (s *Service) validateSource(ctx context.Context, q db.Querier, o orgs.Organization, f Fresh, e164 string) (wrong []op.Violation,
	err error) {
	if f.TrunkID != "" {
		if f.Provider == ProviderSandbox {
			wrong = append(wrong, op.Field("provider", "reserved", "numbers of the sandbox come over no trunk"))
		}
		return wrong, nil
	}
	all, err := s.sources(ctx, q, o)
	if err != nil {
		return nil, err
	}
	if f.Provider != "" && !slices.ContainsFunc(all, func(p numberSource) bool { return p.name == f.Provider }) {
		return []op.Violation{op.Field("provider", "not_found", "no such provider")}, nil
	}
	if len(all) > 1 && f.Provider != ProviderOwn {
		return nil, nil
	}
	_, err = stockTrunk(ctx, q, o.ID, e164)
	if db.IsNone(err) {
		return []op.Violation{op.Field("trunk_id", "required", "no provider sells this number here; name the trunk of a number you own")},
			nil
	}
	return nil, err
}

// validateTargets returns the violations of a number's trunk and assignment.
func (s *Service) validateTargets(ctx context.Context, q db.Querier, trunk, user, flow, queue string) ([]op.Violation, error) {
	var wrong []op.Violation
	found, err := findExisting(ctx, q, access.Org(ctx), trunk, user, flow, queue)
	if err != nil {
		return nil, fmt.Errorf("find assignment of number: %w", err)
	}
	missing := func(has bool, field, what string) {
		if !has {
			wrong = append(wrong, op.Field(field, "not_found", "no such "+what))
		}
	}
	missing(found.trunk, "trunk_id", "trunk")
	missing(found.user, "user_id", "user")
	missing(found.flow, "flow_id", "flow")
	missing(found.queue, "queue_id", "queue")
	if found.flow && !found.published {
		wrong = append(wrong, op.Field("flow_id", "not_published", "publish the flow first"))
	}
	given := slices.DeleteFunc([]string{user, flow, queue}, func(id string) bool { return id == "" })
	if len(given) > 1 {
		wrong = append(wrong, op.Field("user_id", "ambiguous", "give one of flow_id, user_id and queue_id"))
	}
	return wrong, nil
}

// OneIn holds the id of a number.
type OneIn struct {
	ID string `path:"id" example:"num_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

func notFound(err error) error {
	if db.IsNone(err) {
		return op.NotFound("number")
	}
	return fmt.Errorf("get number: %w", err)
}

// Show returns a number, including a released one.
func (s *Service) Show(ctx context.Context, in *OneIn) (*op.Out[Number], error) {
	n, err := getNumber(ctx, s.db.Read(ctx), access.Org(ctx), in.ID)
	if err != nil {
		return nil, notFound(err)
	}
	return op.Versioned(n, n.UpdatedAt)
}

// ReleaseIn holds the input of Release.
type ReleaseIn struct {
	OneIn
	op.Match
	Confirm string `query:"confirm" maxLength:"40" doc:"The number itself, for a number that is given back may be lost"`
}

// Release releases a number. It requires the number as confirmation.
func (s *Service) Release(ctx context.Context, in *ReleaseIn) error {
	return s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		n, err := s.findUnreleased(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if err := in.Check(n.UpdatedAt); err != nil {
			return err
		}
		if digits(in.Confirm) != digits(n.Number) {
			return op.Invalid(op.Field("confirm", "not_confirmed", "must be the number, "+n.Number))
		}
		used, err := s.config.Destinations.PointingAtNumber(ctx, tx, n)
		if err != nil {
			return fmt.Errorf("find what leads to the number: %w", err)
		}
		if len(used) > 0 {
			return op.InUse("calls are still led to the number; lead them elsewhere first", used...)
		}
		return s.release(ctx, tx, n)
	})
}

// digits removes the leading plus sign, and the space that an unescaped plus sign becomes in a query.
func digits(number string) string { return strings.TrimLeft(number, "+ ") }

// findUnreleased returns a number, or an error if it was released.
func (s *Service) findUnreleased(ctx context.Context, tx db.Querier, id string) (Number, error) {
	n, err := getNumber(ctx, tx, access.Org(ctx), id)
	if err != nil {
		return n, notFound(err)
	}
	if n.Status == Released {
		return n, op.State("the number was released", n.Status)
	}
	return n, nil
}
