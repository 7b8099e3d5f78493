package server

import (
	"context"
	"errors"
	"mime"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"soniq/internal/identity/user"
	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
)

// This file carries messages to and from telephones (RFC 3428).

// phoneCarrier is the name of what takes messages to telephones of the organisation.
const phoneCarrier = "phones"

// texts hands messages to telephones, and takes them from telephones.
type texts struct {
	house *Platform
	dir   *directory
	sip   *sip.Server
}

// textTime is how long a telephone has to answer.
const textTime = 10 * time.Second

// textPart is how much of a message goes into one request: with its header it stays below 1300 bytes (RFC 3428 §8).
const textPart = 700

// Send hands a message to all telephones of whom it is for. It is delivered where one of them has taken it.
func (x *texts) Send(ctx context.Context, o sms.Outgoing) (sms.Result, error) {
	userID, err := x.recipient(ctx, o.Org, o.To)
	if err != nil {
		return sms.Result{}, errors.Join(err, sms.ErrUnsent)
	}
	answers, err := x.hand(ctx, o, userID)
	if err != nil {
		return sms.Result{}, errors.Join(err, sms.ErrUnsent)
	}
	return judge(answers)
}

// Ask tells that nobody knows: telephones keep no account of what they were given.
func (*texts) Ask(context.Context, sms.Outgoing) (sms.Result, error) {
	return sms.Result{}, sms.ErrUnknown
}

// recipient is the user who has an extension, or whose telephones a number rings; "" where there is none.
func (x *texts) recipient(ctx context.Context, org, to string) (string, error) {
	if !strings.HasPrefix(to, "+") {
		u, err := x.house.users.ByExtension(ctx, x.house.db.Read(ctx), org, to)
		if db.IsNone(err) {
			return "", nil
		}
		return u.ID, err
	}
	n, _, err := x.house.ownNumber(ctx, x.house.db.Read(ctx), org, to)
	return n.UserID, err
}

// An answer is what one telephone said: a status, or an error that says whether it may have the message.
type answer struct {
	status int
	err    error
}

// hand sends a message to every telephone of a user and returns what they said.
func (x *texts) hand(ctx context.Context, o sms.Outgoing, userID string) ([]answer, error) {
	all, err := x.telephones(ctx, o.Org, userID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, textTime)
	defer cancel()
	from := sip.Address{URI: sip.URI{User: o.From, Host: x.house.config.SIPDomain}}
	to := sip.Address{URI: sip.URI{User: strings.TrimPrefix(o.To, "ext:"), Host: x.house.config.SIPDomain}}
	answers := make([]answer, len(all))
	var running sync.WaitGroup
	for i, b := range all {
		running.Go(func() {
			for n, part := range inParts(written(o)) {
				t := sip.Text{Binding: b, From: from, To: to, Body: []byte(part), CallID: o.Reference + "-" + strconv.Itoa(i) + "-" + strconv.Itoa(n)}
				if answers[i].status, answers[i].err = x.sip.SendText(ctx, t); answers[i].err != nil || answers[i].status >= 300 {
					return
				}
			}
		})
	}
	running.Wait()
	return answers, nil
}

// telephones are those a user has registered. Do-not-disturb holds back calls, not messages.
func (x *texts) telephones(ctx context.Context, org, userID string) ([]sip.Binding, error) {
	if userID == "" {
		return nil, nil
	}
	o, err := x.house.orgs.Get(ctx, org)
	if err != nil || o.Barred() {
		return nil, err
	}
	u, err := x.dir.person(ctx, org, userID)
	if err != nil || u.Status == user.Suspended {
		return nil, err
	}
	bound, err := x.house.devices.OfUserBindings(ctx, org, userID)
	all := make([]sip.Binding, len(bound))
	for i, b := range bound {
		all[i] = bindingOf(b)
	}
	return all, err
}

// written is what a telephone shows of a message: attachments are addresses.
func written(o sms.Outgoing) string {
	lines := []string{o.Body}
	for _, m := range o.Media {
		lines = append(lines, m.URL)
	}
	return strings.Join(lines, "\n")
}

// inParts cuts a text where no character is cut.
func inParts(text string) (parts []string) {
	for len(text) > textPart {
		at := textPart
		for at > 0 && !utf8.RuneStart(text[at]) {
			at--
		}
		parts, text = append(parts, text[:at]), text[at:]
	}
	return append(parts, text)
}

// judge says what became of a message from what telephones said.
func judge(answers []answer) (sms.Result, error) {
	if len(answers) == 0 {
		return sms.Result{Status: sms.Failed, Fault: &sms.Fault{Code: "unreachable", Message: "no telephone of the recipient is registered"}}, nil
	}
	unsent, refused := 0, 0
	for _, a := range answers {
		var none *sip.StatusError
		switch {
		case a.err == nil && a.status < 300:
			return sms.Result{Status: sms.Delivered}, nil
		case a.err == nil:
			refused = a.status
		case errors.As(a.err, &none) && none.Unsent:
			unsent++
		}
	}
	switch {
	case unsent == len(answers):
		return sms.Result{}, sms.ErrUnsent
	case refused > 0:
		code := strconv.Itoa(refused)
		return sms.Result{Status: sms.Undelivered, Fault: &sms.Fault{Code: "carrier_rejected", Message: "the telephone refused the message", CarrierCode: &code}}, nil
	}
	return sms.Result{Status: sms.Undelivered, Fault: &sms.Fault{Code: "unreachable", Message: "the telephone did not answer"}}, nil
}

// forward shows an inbound message on the telephones its number rings.
func (x *texts) forward(ctx context.Context, org string, m sms.Message) error {
	userID, err := x.recipient(ctx, org, m.ToNumber)
	if err != nil {
		return err
	}
	_, err = x.hand(ctx, sms.Outgoing{Org: org, Reference: m.ID, From: m.FromNumber, To: m.ToNumber, Body: m.Body, Media: m.Media}, userID)
	return err
}

// took takes a message of a telephone or of a carrier. It is answered once it is written down.
func (x *texts) took(ctx context.Context, m *sip.Message) {
	kind, _, err := mime.ParseMediaType(m.ContentType)
	switch {
	case m.Leg != nil:
		m.Respond(405) // inside of a call nobody would find it
	case err != nil && m.ContentType != "" || err == nil && kind != "text/plain":
		m.Respond(415)
	case !utf8.Valid(m.Body) || len(m.Body) == 0:
		m.Respond(400)
	case utf8.RuneCount(m.Body) > 1600:
		m.Respond(513)
	default:
		m.Respond(x.status(m, x.keep(ctx, m)))
	}
}

// status is what a telephone is told.
func (x *texts) status(m *sip.Message, err error) int {
	var e *op.Error
	switch {
	case err == nil:
		return 202
	case errors.As(err, &e) && e.Code == "validation_failed", db.IsNone(err):
		return 404
	case errors.As(err, &e):
		return 403
	}
	x.house.log.Error("message not written down", "account", m.Account, "trunk", m.TrunkID, "err", err)
	return 500
}

func (x *texts) keep(ctx context.Context, m *sip.Message) error {
	in := sms.Incoming{Body: string(m.Body), To: m.RequestURI.User, From: m.From.URI.User, Carrier: phoneCarrier,
		Reference: m.CallID + " " + strconv.FormatUint(uint64(m.CSeq), 10)}
	if m.TrunkID != "" {
		return x.fromCarrier(ctx, m, in)
	}
	caller, err := x.dir.Caller(ctx, m.Account)
	if err != nil {
		return err
	}
	in.Org, in.UserID, in.Sandbox, in.Inside, in.From = caller.Org, caller.UserID, caller.Sandbox, true, caller.Extension
	_, inside, err := x.dir.Extension(ctx, caller.Org, in.To)
	if err == nil && !inside {
		_, inside, err = x.house.ownNumber(ctx, x.house.db.Read(ctx), caller.Org, in.To)
	}
	if err != nil {
		return err
	}
	if inside {
		_, err = x.house.messages.Receive(ctx, in)
		return err
	}
	return x.outside(ctx, caller, in)
}

// outside sends a message of a telephone to a number that is not the organisation's.
func (x *texts) outside(ctx context.Context, caller pbx.Caller, in sms.Incoming) error {
	n, err := x.house.numbers.CallerID(ctx, x.house.db.Read(ctx), caller.Org, caller.UserID)
	if err != nil {
		return err
	}
	_, err = x.house.messages.Write(ctx, sms.Written{Org: caller.Org, UserID: caller.UserID, From: n.Number, To: in.To, Body: in.Body,
		Reference: in.Reference, Sandbox: caller.Sandbox})
	return err
}

// fromCarrier takes a message that a carrier brings for a number of its trunk.
func (x *texts) fromCarrier(ctx context.Context, m *sip.Message, in sms.Incoming) error {
	org, trunk, _ := strings.Cut(m.TrunkID, "/")
	t, err := x.dir.TrunkIn(ctx, org, trunk)
	if err != nil {
		return err
	}
	to, ok, err := x.dir.Number(ctx, t, in.To)
	if err != nil || !ok {
		return firstError(err, db.ErrNone)
	}
	if e164, ok := number.Parse(in.From, t.Country); ok {
		in.From = e164
	}
	in.Org, in.To, in.Sandbox = to.Org, to.Number, to.Sandbox
	_, err = x.house.messages.Receive(ctx, in)
	return err
}
