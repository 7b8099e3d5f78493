package call

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/rate"
)

// CreateIn holds the input of Create.
type CreateIn struct{ Body CallCreate }

// CallCreate describes a call to place. The user's phones ring first, then the destination is dialled.
type CallCreate struct {
	To                 string            `json:"to" doc:"A number in E.164 or as dialled in the organisation's country, ext: with an extension, or a sip: address at this server" example:"+12025550143"`
	From               string            `json:"from,omitempty" doc:"A number of the organisation to show; the user's or organisation's own unless given"`
	UserID             string            `json:"user_id,omitempty" doc:"Whose phones ring first; the credential's user unless given"`
	DeviceID           string            `json:"device_id,omitempty" doc:"Ring only this phone"`
	FlowID             string            `json:"flow_id,omitempty" doc:"In place of a user: who answers is led through the flow"`
	QueueID            string            `json:"queue_id,omitempty" doc:"In place of a user: who answers waits in the queue"`
	RingTimeoutSeconds *int              `json:"ring_timeout_seconds,omitempty" doc:"5 to 120, for each side; 30 unless given"`
	MaxDurationSeconds *int              `json:"max_duration_seconds,omitempty" doc:"1 to 14400; 14400 unless given"`
	Record             string            `json:"record,omitempty" doc:"default, on or off" default:"default"`
	MachineDetection   string            `json:"machine_detection,omitempty" doc:"off, detect or hangup" default:"off"`
	AnnounceText       string            `json:"announce_text,omitempty" doc:"Said to who answers before both are connected; at most 1000 characters"`
	Reason             string            `json:"reason,omitempty" doc:"Why the call is made, its first note; at most 200 characters"`
	Headers            map[string]string `json:"headers,omitempty" doc:"SIP headers whose names begin with X-, at most 10, for the phones and the destination"`
	Metadata           map[string]string `json:"metadata,omitempty" doc:"At most 20 members; names up to 40, values up to 500 characters"`
	ClientReference    string            `json:"client_reference,omitempty" doc:"At most 120 characters"`
}

// The limits of a placed call.
const (
	DefaultRingSeconds = 30
	MaxCallSeconds     = 14400
	maxHeaders         = 10
	maxHeaderValue     = 256
	maxMetadata        = 20
)

// headerName matches the SIP headers that a request may set: tokens (RFC 3261 §7.3.1) that begin with X-.
var headerName = regexp.MustCompile(`^[Xx]-[A-Za-z0-9-]{1,60}$`)

// IDHeader is the header with the id of a call in SIP messages to phones in browsers.
const IDHeader = "X-Soniq-Call"

// Create places a call. It returns once the call is stored; ringing and answer follow as events.
func (s *Service) Create(ctx context.Context, in *CreateIn) (*op.Out[Call], error) {
	b := &in.Body
	p, err := s.newPlacement(ctx, b)
	if err != nil {
		return nil, err
	}
	if s.Switch == nil {
		return nil, errNoSwitch()
	}
	if err := s.createLimiter.take(s.Now(), p.Org, p.To); err != nil {
		return nil, err
	}
	if err := s.Place(ctx, p); err != nil {
		return nil, err
	}
	out, err := s.currentCall(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	out.Location = op.Prefix + "/calls/" + p.ID
	return out, nil
}

// newPlacement builds the placement of a request, or returns every violation at once.
func (s *Service) newPlacement(ctx context.Context, b *CallCreate) (Placement, error) {
	who, _ := access.From(ctx)
	p := Placement{Org: who.OrgID, ID: db.NewID("call"), Sandbox: who.Environment == access.Sandbox, Source: op.SourceOf(ctx),
		By: AuthorOf(ctx), UserID: b.UserID,
		DeviceID: b.DeviceID, RingTimeout: secondsOr(b.RingTimeoutSeconds, DefaultRingSeconds), MaxDuration: secondsOr(b.MaxDurationSeconds,
			MaxCallSeconds),
		Record: b.Record, Machine: b.MachineDetection, Announce: b.AnnounceText, Headers: b.Headers, Metadata: b.Metadata,
		Reference: b.ClientReference, Reason: b.Reason}
	wrong, err := s.resolveScriptTarget(ctx, &p, b)
	if err != nil {
		return p, err
	}
	wrong = append(wrong, b.validate()...)
	return p, s.resolveParties(ctx, &p, b, wrong, "must be a number, ext: with an extension, or a sip: address")
}

// ResolveParties sets the script target, the user to ring, the number to show and the destination of a placement from
// a request. The error has all violations, those in wrong first. noDestination is the message for a request without one.
func (s *Service) ResolveParties(ctx context.Context, p *Placement, b *CallCreate, wrong []op.Violation, noDestination string) error {
	more, err := s.resolveScriptTarget(ctx, p, b)
	if err != nil {
		return err
	}
	return s.resolveParties(ctx, p, b, append(wrong, more...), noDestination)
}

// resolveParties is ResolveParties for a placement that has its script target.
func (s *Service) resolveParties(ctx context.Context, p *Placement, b *CallCreate, wrong []op.Violation, noDestination string) error {
	if who, _ := access.From(ctx); p.UserID == "" && p.DeviceID == "" && p.ScriptTarget == "" {
		p.UserID = who.UserID
	}
	more, err := s.checkParties(ctx, p, b.From)
	if err != nil {
		return err
	}
	if wrong = append(wrong, more...); b.To == "" {
		return violationsError(append(wrong, op.Field("to", "required", noDestination)))
	}
	if p.To, wrong, err = s.resolveDestination(ctx, "to", b.To, wrong); err != nil {
		return err
	}
	return violationsError(wrong)
}

// Place starts a call. The error has the code draining if this process carries no calls.
func (s *Service) Place(ctx context.Context, p Placement) error {
	if s.Switch == nil {
		return errNoSwitch()
	}
	return s.Switch.Place(ctx, p)
}

func errNoSwitch() error { return op.Unavailable("draining", "this server carries no calls", "2") }

// resolveScriptTarget sets the queue or flow for the called party, if the request names one in place of a user.
func (s *Service) resolveScriptTarget(ctx context.Context, p *Placement, b *CallCreate) (wrong []op.Violation, err error) {
	field, id := "flow_id", b.FlowID
	switch {
	case b.FlowID == "" && b.QueueID == "":
		return nil, nil
	case b.FlowID == "":
		field, id = "queue_id", b.QueueID
	}
	if given := b.UserID != "" || b.DeviceID != ""; given || b.FlowID != "" && b.QueueID != "" {
		wrong = append(wrong, op.Field(field, "conflict", "give only one of user_id (with device_id), flow_id and queue_id"))
	}
	p.ScriptTarget = strings.TrimSuffix(field, "_id") + ":" + id
	if s.cfg.Destinations == nil {
		return append(wrong, op.Field(field, "not_found", "there is none")), nil
	}
	no, err := s.cfg.Destinations.CheckTarget(ctx, p.Org, p.ScriptTarget)
	if no != "" {
		wrong = append(wrong, op.Field(field, "not_found", no))
	}
	return wrong, err
}

func secondsOr(seconds *int, otherwise int) time.Duration {
	if seconds == nil {
		return time.Duration(otherwise) * time.Second
	}
	return time.Duration(*seconds) * time.Second
}

// resolveDestination reads the destination. A malformed one is added to the violations. A well-formed one that is not
// allowed is an error of its own, unless there are other violations.
func (s *Service) resolveDestination(ctx context.Context, field, to string, wrong []op.Violation) (string, []op.Violation, error) {
	if s.cfg.Destinations == nil {
		return "", wrong, op.Fail("destination_not_allowed", "nothing can be dialled here")
	}
	dial, err := s.cfg.Destinations.ParseDestination(ctx, access.Org(ctx), to)
	e, ours := err.(*op.Error)
	switch {
	case err == nil:
		return dial, wrong, nil
	case ours && e.Code == "validation_failed":
		for _, v := range e.Fields {
			wrong = append(wrong, op.Field(field, v.Code, v.Message))
		}
		return "", wrong, nil
	case ours && len(wrong) > 0:
		return "", append(wrong, op.Field(field, e.Code, e.Detail)), nil
	}
	return "", wrong, err
}

// violationsError returns an error with the violations, or nil if there are none.
func violationsError(wrong []op.Violation) error {
	if len(wrong) == 0 {
		return nil
	}
	e := op.Invalid(wrong...)
	if len(wrong) == 1 && wrong[0].Code == "number_not_owned" {
		e.Code = wrong[0].Code
	}
	return e
}

// checkParties resolves the user to ring, the device and the number to show.
func (s *Service) checkParties(ctx context.Context, p *Placement, from string) (wrong []op.Violation, err error) {
	if p.DeviceID != "" {
		owner, err := s.deviceOwner(ctx, p.Org, p.DeviceID)
		switch {
		case err != nil:
			return nil, err
		case owner == "" || p.UserID != "" && p.UserID != owner:
			wrong = append(wrong, op.Field("device_id", "not_found", "no such phone of this user"))
		default:
			p.UserID = owner
		}
	}
	if p.UserID == "" && p.DeviceID == "" {
		if p.ScriptTarget == "" {
			wrong = append(wrong, op.Field("user_id", "required",
				"the credential belongs to no user: say whose phones ring first, by user_id or device_id"))
		}
	} else if p.UserID != "" {
		if ok, err := s.hasUser(ctx, p.Org, p.UserID); err != nil {
			return nil, err
		} else if !ok {
			wrong = append(wrong, op.Field("user_id", "not_found", "no such user"))
		}
	}
	var more []op.Violation
	p.From, more, err = s.resolveCallerID(ctx, from)
	return append(wrong, more...), err
}

// resolveCallerID returns the organisation's number to show, in E.164. An empty number passes.
func (s *Service) resolveCallerID(ctx context.Context, from string) (string, []op.Violation, error) {
	if from == "" {
		return "", nil, nil
	}
	number := from
	if s.cfg.Destinations != nil {
		e164, ok, err := s.cfg.Destinations.ParseNumber(ctx, access.Org(ctx), from)
		if err != nil {
			return "", nil, err
		}
		if !ok {
			return "", []op.Violation{op.Field("from", "invalid_e164", "not a valid number")}, nil
		}
		number = e164
	}
	const q = `SELECT count(*) FROM numbers WHERE org_id = $1 AND number = $2 AND status = 'active'`
	var n int
	if err := s.cfg.DB.Read(ctx).QueryRow(ctx, q, access.Org(ctx), number).Scan(&n); err != nil {
		return "", nil, err
	}
	if n == 0 {
		return "", []op.Violation{op.Field("from", "number_not_owned", "not a number of the organisation")}, nil
	}
	return number, nil, nil
}

func (s *Service) hasUser(ctx context.Context, org, id string) (bool, error) {
	const q = `SELECT count(*) FROM users WHERE org_id = $1 AND id = $2 AND status IN ('active', 'invited')`
	var n int
	err := s.cfg.DB.Read(ctx).QueryRow(ctx, q, org, id).Scan(&n)
	return n > 0, err
}

// deviceOwner returns the user of an active device, or "" if there is no such device.
func (s *Service) deviceOwner(ctx context.Context, org, id string) (string, error) {
	const q = `SELECT user_id FROM devices WHERE org_id = $1 AND id = $2 AND status = 'active'`
	var owner string
	err := s.cfg.DB.Read(ctx).QueryRow(ctx, q, org, id).Scan(&owner)
	if db.IsNone(err) {
		return "", nil
	}
	return owner, err
}

// validate lists the violations that need no database.
func (b *CallCreate) validate() []op.Violation {
	var wrong []op.Violation
	want := func(ok bool, field, code, message string) {
		if !ok {
			wrong = append(wrong, op.Field(field, code, message))
		}
	}
	within := func(n *int, low, high int) bool { return n == nil || *n >= low && *n <= high }
	one := func(value string, of ...string) bool { return value == "" || slices.Contains(of, value) }
	short := func(text string, most int) bool { return utf8.RuneCountInString(text) <= most }
	want(within(b.RingTimeoutSeconds, 5, 120), "ring_timeout_seconds", "out_of_range", "must be 5 to 120")
	want(within(b.MaxDurationSeconds, 1, MaxCallSeconds), "max_duration_seconds", "out_of_range", "must be 1 to 14400")
	want(one(b.Record, "default", "on", "off"), "record", "invalid_value", "must be default, on or off")
	want(one(b.MachineDetection, "off", "detect", "hangup"), "machine_detection", "invalid_value", "must be off, detect or hangup")
	want(short(b.AnnounceText, 1000), "announce_text", "too_long", "at most 1000 characters")
	want(short(b.Reason, 200), "reason", "too_long", "at most 200 characters")
	want(short(b.ClientReference, 120), "client_reference", "too_long", "at most 120 characters")
	want(len(b.Headers) <= maxHeaders, "headers", "too_many", "at most 10 headers")
	for _, name := range slices.Sorted(maps.Keys(b.Headers)) {
		want(headerName.MatchString(name), "headers."+name, "not_allowed", "only headers whose names begin with X- may be set")
		want(!strings.EqualFold(name, IDHeader), "headers."+name, "not_allowed", "phones in browsers get it with the id of the call")
		want(plainText(b.Headers[name]), "headers."+name, "invalid_value", "at most 256 characters, none of them a line break")
	}
	want(len(b.Metadata) <= maxMetadata, "metadata", "too_many", "at most 20 members")
	for _, name := range slices.Sorted(maps.Keys(b.Metadata)) {
		want(name != "" && short(name, 40) && short(b.Metadata[name], 500), "metadata."+name, "too_long",
			"names have 1 to 40, values up to 500 characters")
	}
	return wrong
}

// plainText reports whether value is allowed in a SIP header field.
func plainText(value string) bool {
	return len(value) <= maxHeaderValue && utf8.ValidString(value) &&
		!strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// The rate limits of calls.create: 5 calls per second and organisation, 1 per second to the same destination.
const (
	callsPerOrg         = 5
	callsPerDestination = 1
)

// createLimiter limits the calls that clients create, on this node.
type createLimiter struct{ buckets rate.Limiter }

// take counts one call, or returns rate_limited.
func (p *createLimiter) take(now time.Time, org, to string) error {
	refused, ok := p.buckets.Take(now, rate.Claim{Key: org, PerSecond: callsPerOrg, Burst: callsPerOrg},
		rate.Claim{Key: org + " " + to, PerSecond: callsPerDestination, Burst: callsPerDestination})
	switch {
	case ok:
		return nil
	case refused == 0:
		return op.RateLimited("at most 5 calls a second", 1, "calls")
	}
	return op.RateLimited("at most 1 call a second to the same destination", 1, "calls_to_one_number")
}
