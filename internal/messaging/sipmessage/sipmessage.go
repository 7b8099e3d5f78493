// Package sipmessage carries text messages to and from phones and trunks by SIP MESSAGE (RFC 3428).
package sipmessage

import (
	"context"
	"errors"
	"log/slog"
	"mime"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/directory"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
)

// Carrier is the name of the message carrier that reaches phones of the organisation.
const Carrier = "phones"

// Config has what a Service needs.
type Config struct {
	DB        *db.DB
	Directory *directory.Directory
	Orgs      *org.Service
	Users     *user.Service
	Devices   *device.Service
	Numbers   *number.Service
	OwnNumber OwnNumbers
	Messages  *sms.Service
	SIPDomain string
	Log       *slog.Logger
}

// OwnNumbers finds a number of an organisation by its id or as people write it.
type OwnNumbers interface {
	OwnNumber(ctx context.Context, q db.Querier, org, text string) (sms.OwnNumber, bool, error)
}

// Service sends messages to phones, and receives messages from phones and trunks. Set the SIP server with Attach.
type Service struct {
	cfg Config
	sip *sip.Server
}

// New returns a service that cannot send before Attach.
func New(c Config) *Service { return &Service{cfg: c} }

// Attach sets the server that sends the requests. Call it before the first message.
func (s *Service) Attach(server *sip.Server) { s.sip = server }

// answerTimeout is the time a phone has to answer.
const answerTimeout = 10 * time.Second

// maxBody is the maximum size of a body in bytes: with its header a request stays below 1300 bytes (RFC 3428 §8).
const maxBody = 700

// Send sends a message to all phones of the recipient. It is delivered if one of them accepts it.
func (s *Service) Send(ctx context.Context, o sms.Outgoing) (sms.Result, error) {
	userID, err := s.recipient(ctx, o.Org, o.To)
	if err != nil {
		return sms.Result{}, errors.Join(err, sms.ErrUnsent)
	}
	answers, err := s.sendToPhones(ctx, o, userID)
	if err != nil {
		return sms.Result{}, errors.Join(err, sms.ErrUnsent)
	}
	return resultOf(answers)
}

// QueryStatus returns sms.ErrUnknown: phones cannot be asked what became of a message.
func (*Service) QueryStatus(context.Context, sms.Outgoing) (sms.Result, error) {
	return sms.Result{}, sms.ErrOutcomeUnknown
}

// recipient returns the user with an extension, or the user to whom a number is assigned. It is empty if there is none.
func (s *Service) recipient(ctx context.Context, org, to string) (string, error) {
	if !strings.HasPrefix(to, "+") {
		u, err := s.cfg.Users.ByExtension(ctx, s.cfg.DB.Read(ctx), org, to)
		if db.IsNone(err) {
			return "", nil
		}
		return u.ID, err
	}
	n, _, err := s.cfg.OwnNumber.OwnNumber(ctx, s.cfg.DB.Read(ctx), org, to)
	return n.UserID, err
}

// answer is the result of one phone: a status, or an error that says whether the phone may have the message.
type answer struct {
	status int
	err    error
}

// sendToPhones sends a message to every phone of a user and returns their answers.
func (s *Service) sendToPhones(ctx context.Context, o sms.Outgoing, userID string) ([]answer, error) {
	all, err := s.bindings(ctx, o.Org, userID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	from := sipmsg.Address{URI: sipmsg.URI{User: o.From, Host: s.cfg.SIPDomain}}
	to := sipmsg.Address{URI: sipmsg.URI{User: strings.TrimPrefix(o.To, "ext:"), Host: s.cfg.SIPDomain}}
	answers := make([]answer, len(all))
	var running sync.WaitGroup
	for i, b := range all {
		running.Go(func() {
			for n, part := range split(sms.PlainText(o.Body, o.Media)) {
				t := sip.OutgoingMessage{Binding: b, From: from, To: to, Body: []byte(part), CallID: o.Reference + "-" + strconv.Itoa(i) +
					"-" + strconv.Itoa(n)}
				if answers[i].status, answers[i].err = s.sip.SendMessage(ctx, t); answers[i].err != nil || answers[i].status >= 300 {
					return
				}
			}
		})
	}
	running.Wait()
	return answers, nil
}

// bindings returns the registered phones of a user. Do-not-disturb stops calls, not messages.
func (s *Service) bindings(ctx context.Context, org, userID string) ([]sip.Binding, error) {
	if userID == "" {
		return nil, nil
	}
	o, err := s.cfg.Orgs.Get(ctx, org)
	if err != nil || o.IsBlocked() {
		return nil, err
	}
	u, err := s.cfg.Directory.CachedUser(ctx, org, userID)
	if err != nil || u.Status == user.Suspended {
		return nil, err
	}
	bound, err := s.cfg.Devices.BindingsOfUser(ctx, org, userID)
	return directory.BindingsOf(bound), err
}

// split cuts a text into parts of at most maxBody bytes, between characters.
func split(text string) (parts []string) {
	for len(text) > maxBody {
		at := maxBody
		for at > 0 && !utf8.RuneStart(text[at]) {
			at--
		}
		parts, text = append(parts, text[:at]), text[at:]
	}
	return append(parts, text)
}

// resultOf returns the result of a message from the answers of the phones.
func resultOf(answers []answer) (sms.Result, error) {
	if len(answers) == 0 {
		return sms.Result{Status: sms.Failed, Fault: &sms.Fault{Code: "unreachable",
			Message: "no telephone of the recipient is registered"}}, nil
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
		return sms.Result{Status: sms.Undelivered, Fault: &sms.Fault{Code: "carrier_rejected", Message: "the telephone refused the message",
			CarrierCode: &code}}, nil
	}
	return sms.Result{Status: sms.Undelivered, Fault: &sms.Fault{Code: "unreachable", Message: "the telephone did not answer"}}, nil
}

// Forward sends an inbound message to the phones of the user to whom its number is assigned.
func (s *Service) Forward(ctx context.Context, org string, m sms.Message) error {
	if sms.PlainText(m.Body, m.Media) == "" && len(m.Media) > 0 { // cannot be decoded
		return nil
	}
	userID, err := s.recipient(ctx, org, m.ToNumber)
	if err != nil {
		return err
	}
	_, err = s.sendToPhones(ctx, sms.Outgoing{Org: org, Reference: m.ID, From: m.FromNumber, To: m.ToNumber, Body: m.Body, Media: m.Media},
		userID)
	return err
}

// Receive handles a MESSAGE of a phone or a trunk. It is answered after its transaction was committed.
func (s *Service) Receive(ctx context.Context, m *sip.Message) {
	kind, params, err := mime.ParseMediaType(m.ContentType)
	switch {
	case m.Leg != nil:
		m.Respond(405) // messages inside a call are not supported
	case err != nil && m.ContentType != "" || err == nil && kind != "text/plain":
		m.Respond(415)
	case !isUTF8(params["charset"]):
		m.Respond(415)
	case len(m.Body) == 0:
		m.Respond(400)
	case utf8.RuneCount(m.Body) > 1600:
		m.Respond(513)
	default:
		m.Respond(s.status(m, s.receive(ctx, m)))
	}
}

// isUTF8 reports whether a charset of a body is UTF-8, which RFC 3428 requires, or a part of it.
func isUTF8(charset string) bool {
	switch strings.ToLower(charset) {
	case "", "utf-8", "utf8", "us-ascii":
		return true
	}
	return false
}

// errUndecodable means that a message cannot be sent outside because its text cannot be decoded.
var errUndecodable = errors.New("the text is not UTF-8")

// status maps an error to a SIP status.
func (s *Service) status(m *sip.Message, err error) int {
	var e *op.Error
	switch {
	case err == nil:
		return 202
	case errors.Is(err, errUndecodable):
		return 400
	case errors.As(err, &e) && e.Code == "validation_failed", db.IsNone(err):
		return 404
	case errors.As(err, &e):
		return 403
	}
	s.cfg.Log.Error("message not stored", "account", m.Account, "trunk", m.TrunkID, "err", err)
	return 500
}

// receive stores a message of a phone: as an inbound message for a user, or as an outbound message.
func (s *Service) receive(ctx context.Context, m *sip.Message) error {
	in := sms.Incoming{Body: sms.Readable(string(m.Body)), To: sms.Readable(m.RequestURI.User), From: sms.Readable(m.From.URI.User),
		Carrier: Carrier, Reference: sms.Readable(m.CallID) + " " + strconv.FormatUint(uint64(m.CSeq), 10)}
	if !sms.IsReadable(string(m.Body)) {
		in.Media = []sms.Media{sms.Undecoded(m.Body, "application/octet-stream")}
	}
	if m.TrunkID != "" {
		return s.fromTrunk(ctx, m, in)
	}
	caller, err := s.cfg.Directory.Caller(ctx, m.Account)
	if err != nil {
		return err
	}
	in.Org, in.UserID, in.Sandbox, in.Internal, in.From = caller.Org, caller.UserID, caller.Sandbox, true, caller.Extension
	_, inside, err := s.cfg.Directory.Extension(ctx, caller.Org, in.To)
	if err == nil && !inside {
		_, inside, err = s.cfg.OwnNumber.OwnNumber(ctx, s.cfg.DB.Read(ctx), caller.Org, in.To)
	}
	if err != nil {
		return err
	}
	if inside {
		_, err = s.cfg.Messages.Receive(ctx, in)
		return err
	}
	return s.sendOutside(ctx, caller, in)
}

// sendOutside sends a message of a phone to a number outside the organisation.
func (s *Service) sendOutside(ctx context.Context, caller pbx.Caller, in sms.Incoming) error {
	if len(in.Media) > 0 {
		return errUndecodable
	}
	n, err := s.cfg.Numbers.CallerID(ctx, s.cfg.DB.Read(ctx), caller.Org, caller.UserID)
	if err != nil {
		return err
	}
	_, err = s.cfg.Messages.SendFromPhone(ctx, sms.PhoneMessage{Org: caller.Org, UserID: caller.UserID, From: n.Number, To: in.To,
		Body: in.Body, Reference: in.Reference, Sandbox: caller.Sandbox})
	return err
}

// fromTrunk stores a message from a trunk for one of its numbers.
func (s *Service) fromTrunk(ctx context.Context, m *sip.Message, in sms.Incoming) error {
	org, trunk, _ := strings.Cut(m.TrunkID, "/")
	t, err := s.cfg.Directory.TrunkIn(ctx, org, trunk)
	if err != nil {
		return err
	}
	t.Source = m.Source.Addr()
	to, ok, err := s.cfg.Directory.Number(ctx, t, in.To)
	if err != nil {
		return err
	}
	if !ok {
		return db.ErrNone
	}
	if e164, ok := number.Parse(in.From, t.Country); ok {
		in.From = e164
	}
	in.Org, in.To, in.Sandbox = to.Org, to.Number, to.Sandbox
	_, err = s.cfg.Messages.Receive(ctx, in)
	return err
}
