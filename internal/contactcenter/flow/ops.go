package flow

import (
	"context"
	"fmt"
	"strings"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Operations returns the API operations of flows.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("flows.list", "GET /flows", access.FlowsAdmin, "List flows", s.List).Tool("list_call_flows"),
		op.New("flows.create", "POST /flows", access.FlowsAdmin, "Add a flow",
			s.Create).Status(201).Fails("flow_invalid").Tool("create_call_flow"),
		op.New("flows.validate", "POST /flows/validate", access.FlowsAdmin, "Say what is wrong with a flow", s.Validate).Reads(),
		op.New("flows.get", "GET /flows/{id}", access.FlowsAdmin, "Get one flow", s.Show),
		op.New("flows.update", "PATCH /flows/{id}", access.FlowsAdmin, "Replace the draft of a flow", s.Update).Fails("flow_invalid"),
		op.Delete("flows.delete", "DELETE /flows/{id}", access.FlowsAdmin, "Remove a flow nothing leads to", s.Delete),
		op.New("flows.publish", "POST /flows/{id}/publish", access.FlowsAdmin, "Put the draft of a flow in force",
			s.Publish).Fails("flow_invalid"),
		op.New("flows.versions", "GET /flows/{id}/versions", access.FlowsAdmin, "List the versions of a flow, newest first", s.Versions),
		op.New("flows.rollback", "POST /flows/{id}/rollback", access.FlowsAdmin, "Put an earlier version of a flow in force",
			s.Rollback).Fails("flow_invalid"),
		op.New("flows.simulate", "POST /flows/{id}/simulate", access.FlowsAdmin, "Go through a flow as a caller would", s.Simulate).Reads(),
	}
}

// ListIn selects flows.
type ListIn struct {
	op.Paging
	Kind     []string `query:"kind" enum:"ivr,hunt_group,ai_agent,graph"`
	Status   []string `query:"status" enum:"draft,published,archived" doc:"All but archived ones unless given"`
	NumberID string   `query:"number_id" maxLength:"40" doc:"A number that leads to it"`
	Q        string   `query:"q" maxLength:"120" doc:"Part of a name"`
}

// List returns flows, without their nodes, in the order in which they were added.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Flow]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	q, org := s.cfg.DB.Read(ctx), access.Org(ctx)
	found, err := list(ctx, q, in.filter(org).Page("id", false, after.ID, after.ID, in.Limit))
	if err != nil {
		return nil, err
	}
	if err := s.addNumbers(ctx, q, org, found); err != nil {
		return nil, err
	}
	page := op.Paged(ctx, in.Paging, found, func(f Flow) op.Position { return op.Position{ID: f.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return in.filter(org).Count(ctx, q) })
}

// addNumbers sets the numbers that route to flows.
func (s *Service) addNumbers(ctx context.Context, q db.Querier, org string, found []Flow) error {
	if len(found) == 0 {
		return nil
	}
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.ID
	}
	numbers, err := s.cfg.Numbers.IDsOfFlows(ctx, q, org, ids)
	for i := range found {
		found[i].NumberIDs = append([]string{}, numbers[found[i].ID]...)
	}
	return err
}

// CreateIn is the input of Create.
type CreateIn struct{ Body Fresh }

// Fresh is a new flow: a graph, or one of the short forms.
type Fresh struct {
	Name      string     `json:"name"`
	Entry     string     `json:"entry,omitempty" doc:"The node a call begins with"`
	Nodes     []Node     `json:"nodes,omitempty"`
	IVR       *IVR       `json:"ivr,omitempty"`
	HuntGroup *Hunt      `json:"hunt_group,omitempty"`
	AIAgent   *Assistant `json:"ai_agent,omitempty"`
	Timezone  string     `json:"timezone,omitempty" doc:"That of the organisation unless given"`
	Language  string     `json:"language,omitempty" doc:"That of the organisation unless given"`
	Publish   bool       `json:"publish,omitempty" doc:"Put it in force at once"`
	NumberIDs []string   `json:"number_ids,omitempty" doc:"Numbers that lead to it from now on; needs publish"`
}

// fieldViolations lists the violations outside the graph.
func fieldViolations(name, timezone, tag string) (wrong []op.Violation) {
	if strings.TrimSpace(name) == "" || len([]rune(name)) > 120 {
		wrong = append(wrong, op.Field("name", "invalid_length", "must have 1 to 120 characters"))
	}
	if _, err := time.LoadLocation(timezone); err != nil || timezone == "Local" {
		wrong = append(wrong, op.Field("timezone", "invalid_timezone", "must be an IANA name such as Europe/London"))
	}
	if !isLanguage(tag) {
		wrong = append(wrong, op.Field("language", "invalid_language", "must be a language tag such as en or de-CH"))
	}
	return wrong
}

// Create adds a flow, and publishes it if requested.
func (s *Service) Create(ctx context.Context, in *CreateIn) (*op.Out[Flow], error) {
	g, kind, wrong := in.Body.graph()
	wrong = append(fieldViolations(in.Body.Name, in.Body.Timezone, in.Body.Language), wrong...)
	if len(in.Body.NumberIDs) > 0 && !in.Body.Publish {
		wrong = append(wrong, op.Field("number_ids", "not_published", "numbers can lead to a published flow only; set publish"))
	}
	if len(wrong) > 0 {
		return nil, op.Invalid(wrong...)
	}
	now := db.At(s.cfg.Clock.Now())
	f := Flow{ID: db.NewID("flw"), OrgID: access.Org(ctx), Name: in.Body.Name, Kind: kind, Status: Draft, CreatedAt: now, UpdatedAt: now,
		draft: &g}
	first := 1
	f.DraftVersion, f.NumberIDs = &first, []string{}
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := s.check(ctx, &f); err != nil {
			return err
		}
		if err := insert(ctx, tx, f); err != nil {
			return fmt.Errorf("add flow: %w", err)
		}
		if in.Body.Publish {
			if err := s.publish(ctx, tx, &f, ""); err != nil {
				return err
			}
		}
		return s.assign(ctx, tx, &f, in.Body.NumberIDs)
	})
	if err != nil {
		return nil, err
	}
	shown, err := s.withGraph(ctx, f, g)
	if err != nil {
		return nil, err
	}
	return &op.Out[Flow]{Body: shown, Location: op.Prefix + "/flows/" + f.ID, ETag: op.Tag(f.UpdatedAt)}, nil
}

// check rejects a draft with errors, and stores its warnings in f.
func (s *Service) check(ctx context.Context, f *Flow) error {
	_, found, err := compile(ctx, f.OrgID, s.cfg.References, *f.draft)
	if err != nil {
		return fmt.Errorf("check flow: %w", err)
	}
	if len(found.Errors) > 0 {
		return invalidFlow(found.Errors)
	}
	f.Warnings = found.Warnings
	return nil
}

func (s *Service) assign(ctx context.Context, tx db.Querier, f *Flow, numbers []string) error {
	if len(numbers) == 0 {
		return nil
	}
	missing, err := s.cfg.Numbers.AssignToFlow(ctx, tx, f.OrgID, f.ID, numbers)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return op.Invalid(op.Field("number_ids", "not_found", "no such number: "+strings.Join(missing, ", ")))
	}
	return nil
}

// withGraph returns a flow with the fields of a graph.
func (s *Service) withGraph(ctx context.Context, f Flow, g Graph) (Flow, error) {
	f.Entry, f.Nodes, f.Timezone, f.Language = g.Entry, g.Nodes, db.Null(g.Timezone).Ptr(), db.Null(g.Language).Ptr()
	one := []Flow{f}
	err := s.addNumbers(ctx, s.cfg.DB.Read(ctx), f.OrgID, one)
	return one[0], err
}

// ValidateIn is the input of Validate.
type ValidateIn struct{ Body Fresh }

// Verdict holds the findings of Validate.
type Verdict struct {
	Valid    bool    `json:"valid"`
	Errors   []Fault `json:"errors" nullable:"false"`
	Warnings []Fault `json:"warnings" nullable:"false"`
}

// Validate returns all errors and warnings of a flow. It stores nothing.
func (s *Service) Validate(ctx context.Context, in *ValidateIn) (*op.Out[Verdict], error) {
	g, _, wrong := in.Body.graph()
	v := Verdict{Errors: []Fault{}, Warnings: []Fault{}}
	for _, x := range append(fieldViolations(in.Body.Name, in.Body.Timezone, in.Body.Language), wrong...) {
		v.Errors = append(v.Errors, Fault{"", x.Code, x.Field + ": " + x.Message})
	}
	if len(wrong) == 0 {
		_, found, err := compile(ctx, access.Org(ctx), s.cfg.References, g)
		if err != nil {
			return nil, fmt.Errorf("check flow: %w", err)
		}
		v.Errors, v.Warnings = append(v.Errors, found.Errors...), append(v.Warnings, found.Warnings...)
	}
	v.Valid = len(v.Errors) == 0
	return op.OK(v)
}

// OneIn identifies a flow.
type OneIn struct {
	ID string `path:"id" maxLength:"40" example:"flw_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

func notFound(err error) error {
	if db.IsNone(err) {
		return op.NotFound("flow")
	}
	return fmt.Errorf("get flow: %w", err)
}

// findFlow returns a flow that is not removed.
func (s *Service) findFlow(ctx context.Context, q db.Querier, id string, m op.Match) (Flow, error) {
	f, err := s.Get(ctx, q, access.Org(ctx), id)
	if err != nil {
		return f, notFound(err)
	}
	return f, m.Check(f.UpdatedAt)
}

// ShowIn identifies a flow and a version.
type ShowIn struct {
	OneIn
	Version string `query:"version" maxLength:"12" doc:"draft, published or a number; the draft unless given, or what is in force where there is none"`
}

// Show returns a flow with the nodes of one version. Removed flows are included.
func (s *Service) Show(ctx context.Context, in *ShowIn) (*op.Out[Flow], error) {
	q := s.cfg.DB.Read(ctx)
	f, err := get(ctx, q, access.Org(ctx), in.ID)
	if err != nil {
		return nil, notFound(err)
	}
	g, err := s.graphOf(ctx, q, f, in.Version)
	if err != nil {
		return nil, err
	}
	if f, err = s.withGraph(ctx, f, g); err != nil {
		return nil, err
	}
	return op.Versioned(f, f.UpdatedAt)
}

// graphOf returns the graph of a version; "" is the newest.
func (s *Service) graphOf(ctx context.Context, q db.Querier, f Flow, version string) (Graph, error) {
	number, draft, ok := parseVersion(version)
	switch {
	case version == "":
		number, draft = f.Version, f.draft != nil
	case !ok:
		return Graph{}, &op.Error{Code: "invalid_query", Detail: "version: must be draft, published or a number",
			Fields: []op.Violation{op.Field("version", "invalid_value", "must be draft, published or a number")}}
	case version == "published":
		number = f.Version
	}
	if draft {
		if f.draft == nil {
			return Graph{}, op.NotFound("draft of this flow")
		}
		return *f.draft, nil
	}
	v, err := getVersion(ctx, q, f.OrgID, f.ID, number)
	if db.IsNone(err) {
		return Graph{}, op.NotFound("version of this flow")
	}
	if err != nil {
		return Graph{}, fmt.Errorf("get version: %w", err)
	}
	return v.graph, nil
}
