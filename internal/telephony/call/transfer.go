package call

import (
	"context"
	"slices"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

func (s *Service) transferOperations() []op.Operation {
	w := access.CallsWrite
	return []op.Operation{
		op.New("calls.transfer", "POST /calls/{id}/transfer", w, "Transfer the call",
			s.TransferCall).WithSideEffects().Async().Fails("destination_not_allowed"),
		op.New("calls.transfer.complete", "POST /calls/{id}/transfer/complete", w, "Connect the two others of a warm transfer",
			s.FinishTransfer).WithSideEffects().Async(),
		op.New("calls.transfer.cancel", "POST /calls/{id}/transfer/cancel", w, "Go back to the party on hold",
			s.StopTransfer).WithSideEffects().Async(),
		op.New("calls.participants.add", "POST /calls/{id}/participants", w, "Dial somebody into the call",
			s.AddToCall).WithSideEffects().Status(201).Async().
			Fails("destination_not_allowed", "concurrency_limit"),
		op.Delete("calls.participants.remove", "DELETE /calls/{id}/participants/{leg_id}", w, "Hang up one party of the call",
			s.RemoveFromCall).WithSideEffects(),
	}
}

// TransferIn holds the input of TransferCall.
type TransferIn struct {
	ActionIn
	Body TransferCreate
}

// TransferCreate names the target of a transfer, and the mode.
type TransferCreate struct {
	To              string `json:"to" doc:"A number, ext: with an extension, user: with a user's id, or a sip: address at this server" example:"ext:101"`
	Mode            string `json:"mode,omitempty" default:"blind" doc:"blind, or warm: the agent talks to the target first"`
	From            string `json:"from,omitempty" doc:"A number of the organisation to show the target"`
	TimeoutSeconds  *int   `json:"timeout_seconds,omitempty" doc:"How long the target rings, 5 to 120; 25 unless given"`
	OnFail          string `json:"on_fail,omitempty" default:"return" doc:"return: the call comes back to the agent; voicemail: the other side may leave a message for the target; hangup: it ends"`
	SummaryToTarget *bool  `json:"summary_to_target,omitempty" default:"true" doc:"Show a user who is the target, by screen_pop on the event stream, whose call it is and who hands it over"`
}

const defaultTransferRing = 25

// scriptedTargets lists the prefixes of destinations that run a script. They allow no consultation, because there is
// no person to talk to.
var scriptedTargets = []string{"queue:", "flow:", "voicemail:"}

func isScriptedTarget(to string) bool {
	return slices.ContainsFunc(scriptedTargets, func(p string) bool { return strings.HasPrefix(to, p) })
}

// TransferCall transfers the call: blind at once, warm after the agent has talked to the target.
func (s *Service) TransferCall(ctx context.Context, in *TransferIn) (*op.Out[Call], error) {
	if _, err := s.findCall(ctx, in.ID); err != nil {
		return nil, err
	}
	c, err := s.newTransfer(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	return s.RunAction(ctx, in.ActionIn, c)
}

func (s *Service) newTransfer(ctx context.Context, b TransferCreate) (c Transfer, err error) {
	var wrong []op.Violation
	want := func(ok bool, field, code, message string) {
		if !ok {
			wrong = append(wrong, op.Field(field, code, message))
		}
	}
	want(b.Mode == "" || b.Mode == "blind" || b.Mode == "warm", "mode", "invalid_value", "must be blind or warm")
	want(b.Mode != "warm" || !isScriptedTarget(b.To), "mode", "not_possible", "only a person can be asked first; use blind")
	want(slices.Contains([]string{"", "return", "hangup", "voicemail"}, b.OnFail), "on_fail", "invalid_value",
		"must be return, voicemail or hangup")
	want(b.TimeoutSeconds == nil || *b.TimeoutSeconds >= 5 && *b.TimeoutSeconds <= 120, "timeout_seconds", "out_of_range",
		"must be 5 to 120")
	c = Transfer{Warm: b.Mode == "warm", Timeout: secondsOr(b.TimeoutSeconds, defaultTransferRing), OnFail: b.OnFail,
		NoScreenPop: b.SummaryToTarget != nil && !*b.SummaryToTarget}
	if c.OnFail == "" {
		c.OnFail = "return"
	}
	from, more, err := s.resolveCallerID(ctx, b.From)
	if err != nil {
		return c, err
	}
	c.From, wrong = from, append(wrong, more...)
	if c.To, wrong, err = s.resolveTarget(ctx, b.To, wrong); err != nil {
		return c, err
	}
	return c, violationsError(wrong)
}

// resolveTarget reads the target of a transfer: a user by id, a script target, or a destination to dial.
func (s *Service) resolveTarget(ctx context.Context, to string, wrong []op.Violation) (string, []op.Violation, error) {
	id, isUser := strings.CutPrefix(to, "user:")
	switch {
	case to == "":
		return "", append(wrong, op.Field("to", "required", "must be a number, ext:, user:, queue:, flow:, voicemail: or a sip: address")),
			nil
	case isScriptedTarget(to):
		return s.checkScriptedTarget(ctx, to, wrong)
	case !isUser:
		return s.resolveDestination(ctx, "to", to, wrong)
	}
	ok, err := s.hasUser(ctx, access.Org(ctx), id)
	if err == nil && !ok {
		wrong = append(wrong, op.Field("to", "not_found", "no such user"))
	}
	return to, wrong, err
}

// checkScriptedTarget checks a queue, a flow or a mailbox.
func (s *Service) checkScriptedTarget(ctx context.Context, to string, wrong []op.Violation) (string, []op.Violation, error) {
	no := "there is none"
	var err error
	if s.cfg.Destinations != nil {
		no, err = s.cfg.Destinations.CheckTarget(ctx, access.Org(ctx), to)
	}
	if no != "" {
		wrong = append(wrong, op.Field("to", "not_found", no))
	}
	return to, wrong, err
}

// FinishTransferIn holds the input of FinishTransfer.
type FinishTransferIn struct {
	ActionIn
	Body *struct {
		Mode string `json:"mode,omitempty" enum:"connect,conference" default:"connect" doc:"conference: the agent stays in the call"`
	}
}

// FinishTransfer connects the two other parties, or all three (conference).
func (s *Service) FinishTransfer(ctx context.Context, in *FinishTransferIn) (*op.Out[Call], error) {
	return s.RunAction(ctx, in.ActionIn, CompleteTransfer{Conference: in.Body != nil && in.Body.Mode == "conference"})
}

// StopTransfer ends the consultation and resumes the party on hold.
func (s *Service) StopTransfer(ctx context.Context, in *EmptyIn) (*op.Out[Call], error) {
	return s.RunAction(ctx, in.ActionIn, CancelTransfer{})
}

// AddIn holds the input of AddToCall.
type AddIn struct {
	ActionIn
	Body struct {
		To             string `json:"to" doc:"A number, ext: with an extension, user: with a user's id, or a sip: address at this server"`
		From           string `json:"from,omitempty" doc:"A number of the organisation to show"`
		TimeoutSeconds *int   `json:"timeout_seconds,omitempty" doc:"How long it rings, 5 to 120; 30 unless given"`
	}
}

// AddToCall dials another party into the call. It returns once the leg rings or is being dialled; the answer follows
// as an event.
func (s *Service) AddToCall(ctx context.Context, in *AddIn) (*op.Out[Leg], error) {
	if _, err := s.findCall(ctx, in.ID); err != nil {
		return nil, err
	}
	c := AddParticipant{Timeout: secondsOr(in.Body.TimeoutSeconds, DefaultRingSeconds)}
	var wrong []op.Violation
	if n := in.Body.TimeoutSeconds; n != nil && (*n < 5 || *n > 120) {
		wrong = append(wrong, op.Field("timeout_seconds", "out_of_range", "must be 5 to 120"))
	}
	from, more, err := s.resolveCallerID(ctx, in.Body.From)
	if err != nil {
		return nil, err
	}
	c.From = from
	if c.To, wrong, err = s.resolveTarget(ctx, in.Body.To, append(wrong, more...)); err != nil {
		return nil, err
	}
	if err := violationsError(wrong); err != nil {
		return nil, err
	}
	if _, err := s.findInProgress(ctx, in.ID); err != nil {
		return nil, err
	}
	if in.isAsync() {
		return s.addParticipantAsync(ctx, in.ID, c)
	}
	r, err := s.runCommand(ctx, in.ID, c)
	if err != nil {
		return nil, err
	}
	l, err := s.getLeg(ctx, r.LegID)
	if err != nil {
		return nil, err
	}
	return &op.Out[Leg]{Body: l, Location: op.Prefix + "/calls/" + in.ID + "?expand=legs"}, nil
}

func (s *Service) getLeg(ctx context.Context, id string) (Leg, error) {
	const q = `SELECT ` + legColumns + ` FROM legs WHERE org_id = $1 AND id = $2`
	_, l, err := scanLeg(s.cfg.DB.Read(ctx).QueryRow(ctx, q, access.Org(ctx), id))
	return l, err
}

// RemoveIn holds the input of RemoveFromCall.
type RemoveIn struct {
	ID    string `path:"id" maxLength:"40"`
	LegID string `path:"leg_id" maxLength:"40"`
}

// RemoveFromCall hangs up one leg of a call.
func (s *Service) RemoveFromCall(ctx context.Context, in *RemoveIn) error {
	if _, err := s.findInProgress(ctx, in.ID); err != nil {
		return err
	}
	const q = `SELECT count(*) FROM legs WHERE org_id = $1 AND id = $2 AND call_id = $3`
	var n int
	if err := s.cfg.DB.Read(ctx).QueryRow(ctx, q, access.Org(ctx), in.LegID, in.ID).Scan(&n); err != nil {
		return err
	}
	if n == 0 {
		return op.NotFound("leg of this call")
	}
	_, err := s.runCommand(ctx, in.ID, RemoveParticipant{LegID: in.LegID})
	return err
}
