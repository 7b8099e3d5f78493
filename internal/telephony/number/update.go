package number

import (
	"context"
	"fmt"
	"slices"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// UpdateIn holds the input of Update.
type UpdateIn struct {
	OneIn
	op.Match
	Body Patch
}

// Patch is a merge patch (RFC 7396) of a number. Setting one of flow_id, user_id and queue_id replaces the other two.
// assigned_to is the same in the form in which a number is read.
type Patch struct {
	Label         op.Change[string]          `json:"label,omitzero"`
	AssignedTo    op.Change[AssignmentPatch] `json:"assigned_to,omitzero" doc:"As a number is read; instead of flow_id, user_id and queue_id"`
	TrunkID       op.Change[string]          `json:"trunk_id,omitzero"`
	FlowID        op.Change[string]          `json:"flow_id,omitzero"`
	UserID        op.Change[string]          `json:"user_id,omitzero"`
	QueueID       op.Change[string]          `json:"queue_id,omitzero"`
	SMSEnabled    op.Change[bool]            `json:"sms_enabled,omitzero"`
	CallerIDName  op.Change[string]          `json:"caller_id_name,omitzero"`
	RecordingMode op.Change[string]          `json:"recording_mode,omitzero"`
	Fallback      op.Change[string]          `json:"fallback,omitzero"`
	Emergency     op.Change[EmergencyPatch]  `json:"emergency,omitzero"`
}

// AssignmentPatch is the new destination of the calls of a number. Its name is ignored, so that a value that was read can be written.
type AssignmentPatch struct {
	Type string  `json:"type" enum:"flow,user,queue,none"`
	ID   *string `json:"id,omitempty"`
	Name *string `json:"name,omitempty" doc:"Ignored"`
}

// EmergencyPatch is a merge patch of Emergency.
type EmergencyPatch struct {
	Address op.Change[string] `json:"address,omitzero"`
}

// Update changes a number.
func (s *Service) Update(ctx context.Context, in *UpdateIn) (*op.Out[Number], error) {
	var n Number
	err := s.db.Tx(ctx, func(tx db.Querier) (err error) {
		if n, err = s.findUnreleased(ctx, tx, in.ID); err != nil {
			return err
		}
		if err := in.Check(n.UpdatedAt); err != nil {
			return err
		}
		if n.Status == releasing {
			return op.State("the number is being given back", n.Status)
		}
		if err := s.applyPatch(ctx, tx, &n, in.Body); err != nil {
			return err
		}
		if err := updateNumber(ctx, tx, n); err != nil {
			return fmt.Errorf("change number: %w", err)
		}
		s.publishChanged(tx, n.Number)
		n, err = getNumber(ctx, tx, n.OrgID, n.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return op.Versioned(n, n.UpdatedAt)
}

// applyPatch applies and validates a patch.
func (s *Service) applyPatch(ctx context.Context, tx db.Querier, n *Number, p Patch) error {
	before := n.TrunkID
	p, fault := p.withAssignment()
	if fault != nil {
		return op.Invalid(*fault)
	}
	p.apply(n)
	wrong, err := s.validateTargets(ctx, tx, p.TrunkID.V, p.UserID.V, p.FlowID.V, p.QueueID.V)
	if err != nil {
		return err
	}
	if p.Fallback.V != "" {
		if no, err := s.config.Destinations.CheckTarget(ctx, n.OrgID, p.Fallback.V); err != nil {
			return err
		} else if no != "" {
			wrong = append(wrong, op.Field("fallback", "invalid_destination", no))
		}
	}
	if n.TrunkID == nil && n.Provider == ProviderOwn && n.Status != "porting_in" {
		wrong = append(wrong, op.Field("trunk_id", "required", "a number needs a trunk"))
	}
	if len([]rune(n.Label)) > 120 {
		wrong = append(wrong, op.Field("label", "invalid_length", "must have at most 120 characters"))
	}
	if n.CallerIDName != nil && len([]rune(*n.CallerIDName)) > 60 {
		wrong = append(wrong, op.Field("caller_id_name", "invalid_length", "must have at most 60 characters"))
	}
	if !slices.Contains([]string{"inherit", "on", "off"}, n.RecordingMode) {
		wrong = append(wrong, op.Field("recording_mode", "invalid_value", "must be inherit, on or off"))
	}
	if len(wrong) > 0 {
		return op.Invalid(wrong...)
	}
	if p.TrunkID.Set && deref(before) != deref(n.TrunkID) {
		if err := s.readmit(ctx, tx, n); err != nil {
			return err
		}
	}
	n.UpdatedAt = db.At(s.now())
	return nil
}

func (p Patch) apply(n *Number) {
	p.Label.Apply(&n.Label)
	applyNullable(p.TrunkID, &n.TrunkID)
	p.assign(n)
	p.SMSEnabled.Apply(&n.SMSEnabled)
	applyNullable(p.CallerIDName, &n.CallerIDName)
	p.RecordingMode.Apply(&n.RecordingMode)
	applyNullable(p.Fallback, &n.Fallback)
	if p.Emergency.Null {
		n.Emergency.Address = nil
	}
	applyNullable(p.Emergency.V.Address, &n.Emergency.Address)
}

// withAssignment returns the patch with flow_id, user_id and queue_id in place of assigned_to.
func (p Patch) withAssignment() (Patch, *op.Violation) {
	a := p.AssignedTo.V
	id := op.Change[string]{Set: true, V: deref(a.ID)}
	switch {
	case !p.AssignedTo.Set:
		return p, nil
	case p.FlowID.Set || p.UserID.Set || p.QueueID.Set:
		return p, new(op.Field("assigned_to", "ambiguous", "give either assigned_to or one of flow_id, user_id and queue_id"))
	case a.Type == "" || a.Type == "none":
		p.FlowID, p.UserID, p.QueueID = op.Change[string]{Set: true}, op.Change[string]{Set: true}, op.Change[string]{Set: true}
		return p, nil
	case id.V == "":
		return p, new(op.Field("assigned_to.id", "required", "is needed unless the type is none"))
	}
	*map[string]*op.Change[string]{"flow": &p.FlowID, "user": &p.UserID, "queue": &p.QueueID}[a.Type] = id
	return p, nil
}

// assign changes the assignment. An empty id removes an assignment of that type.
func (p Patch) assign(n *Number) {
	all := []struct {
		kind   string
		change op.Change[string]
	}{{"user", p.UserID}, {"flow", p.FlowID}, {"queue", p.QueueID}}
	for _, c := range all {
		if c.change.Set && c.change.V == "" && n.AssignedTo.Type == c.kind {
			n.AssignedTo = Assignment{Type: "none"}
		}
	}
	for _, c := range all {
		if c.change.V != "" {
			n.AssignedTo = Assignment{Type: c.kind, ID: &c.change.V}
		}
	}
}

// applyNullable applies a change to a nullable member.
func applyNullable(c op.Change[string], to **string) {
	if c.Set {
		*to = db.Null(c.V).Ptr()
	}
}
