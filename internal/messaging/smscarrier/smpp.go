package smscarrier

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"strconv"
	"strings"
	"time"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/smpp"
)

// SMPPSettings are those of a carrier that is a centre (SMSC).
type SMPPSettings struct {
	Host     string `json:"host"`
	Port     int    `json:"port"` // 2775 unless given
	TLS      bool   `json:"tls"`
	CA       string `json:"ca"` // certificates in PEM that TLS trusts beside the system's
	SystemID string `json:"system_id"`
	Password string `json:"password"`
	// SystemType and ServiceType are for centres that want one.
	SystemType  string `json:"system_type"`
	ServiceType string `json:"service_type"`
	Bind        string `json:"bind"`         // transceiver (as ""), transmitter or receiver
	Alphabet    string `json:"alphabet"`     // of data_coding 0: gsm7 (as ""), gsm7_packed, latin1 or ascii
	DataCoding1 string `json:"data_coding1"` // how data_coding 1 is read: ascii (as "") or gsm7
	Long        string `json:"long"`         // udh8 (as ""), udh16, sar or payload
	// How identifiers are written in answers, in the text of receipts and in receipted_message_id: as_is (as ""), decimal or hex.
	SubmitIDs       string `json:"submit_ids"`
	ReceiptIDs      string `json:"receipt_ids"`
	OptionIDs       string `json:"option_ids"`
	NoReceipts      bool   `json:"no_receipts"`      // receipts are not asked for: messages stay sent
	Window          int    `json:"window"`           // messages unanswered at once; 10 unless given
	EnquireSeconds  int    `json:"enquire_seconds"`  // after which silence we ask whether the centre is there; 30 unless given
	ValidityMinutes int    `json:"validity_minutes"` // how long the centre tries; as it likes unless given
}

// The words of settings.
var (
	smppModes = map[string]smpp.Command{"": smpp.BindTransceiver, "transceiver": smpp.BindTransceiver, "transmitter": smpp.BindTransmitter,
		"receiver": smpp.BindReceiver}
	smppAlphabets = map[string]smpp.Alphabet{"": smpp.GSM, "gsm7": smpp.GSM, "gsm7_packed": smpp.GSMPacked, "latin1": smpp.Latin1, "ascii": smpp.ASCII}
	smppOnes      = map[string]bool{"": false, "ascii": false, "gsm7": true}
	smppLongs     = map[string]smpp.Long{"": smpp.UDH8, "udh8": smpp.UDH8, "udh16": smpp.UDH16, "sar": smpp.SAR, "payload": smpp.Payload}
	smppIDs       = map[string]smpp.IDForm{"": smpp.AsIs, "as_is": smpp.AsIs, "decimal": smpp.Decimal, "hex": smpp.Hex}
)

func word[T any](wrong *[]op.Violation, all map[string]T, field, text string) T {
	v, ok := all[text]
	if !ok {
		var names []string
		for name := range all {
			if name != "" {
				names = append(names, name)
			}
		}
		*wrong = append(*wrong, op.Field("settings."+field, "invalid_value", "must be one of "+joined(names)))
	}
	return v
}

func (x *SMPPSettings) check(g *egress.Guard) (wrong []op.Violation) {
	want := func(ok bool, field, code, message string) {
		if !ok {
			wrong = append(wrong, op.Field("settings."+field, code, message))
		}
	}
	fill(&x.Port, 2775)
	fill(&x.Window, 10)
	fill(&x.EnquireSeconds, 30)
	want(x.SystemID != "" && len(x.SystemID) <= 15 && plain(x.SystemID), "system_id", "invalid_value", "must be 1 to 15 printable characters")
	want(len(x.Password) <= 8 && plain(x.Password), "password", "invalid_value", "may be 8 printable characters (SMPP 3.4, 5.2.2)")
	want(len(x.SystemType) <= 12 && plain(x.SystemType), "system_type", "invalid_value", "may be 12 printable characters")
	want(len(x.ServiceType) <= 5 && plain(x.ServiceType), "service_type", "invalid_value", "may be 5 printable characters")
	want(x.Port > 0 && x.Port < 65536, "port", "out_of_range", "must be between 1 and 65535")
	want(x.Window >= 1 && x.Window <= 100, "window", "out_of_range", "must be between 1 and 100")
	want(x.EnquireSeconds >= 5 && x.EnquireSeconds <= 3600, "enquire_seconds", "out_of_range", "must be between 5 and 3600")
	want(x.ValidityMinutes >= 0 && x.ValidityMinutes <= 7*24*60, "validity_minutes", "out_of_range", "must be between 0 and 10080")
	want(x.CA == "" || x.TLS && x509.NewCertPool().AppendCertsFromPEM([]byte(x.CA)), "ca", "invalid_value", "must be certificates in PEM, for TLS")
	if bad := wrongHost(g, x.Host); bad != nil {
		wrong = append(wrong, *bad)
	}
	return wrong
}

// wrongHost says what is wrong with a host to connect to, before it is resolved.
func wrongHost(g *egress.Guard, host string) *op.Violation {
	var fault *egress.Fault
	address := host
	if strings.Contains(host, ":") {
		address = "[" + host + "]"
	}
	switch err := g.Check("https://" + address); {
	case host == "" || strings.ContainsAny(host, "/@?#[] "):
		v := op.Field("settings.host", "invalid_value", "must be a name or an address")
		return &v
	case errors.As(err, &fault):
		v := op.Field("settings.host", fault.Code, fault.Message)
		return &v
	}
	return nil
}

func fill(v *int, standard int) {
	if *v == 0 {
		*v = standard
	}
}

func plain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// centre is the adapter of carriers by SMPP 3.4.
type centre struct {
	room     *Service
	about    Facts
	settings SMPPSettings
	client   *smpp.Client
}

func buildSMPP(s *Service, about Facts, raw json.RawMessage) (Adapter, []op.Violation) {
	var x SMPPSettings
	if wrong := strict(raw, &x); wrong != nil {
		return nil, wrong
	}
	wrong := x.check(s.Guard)
	c := &centre{room: s, about: about, settings: x}
	settings := smpp.Config{Address: net.JoinHostPort(x.Host, strconv.Itoa(x.Port)), Dial: c.dial, SystemID: x.SystemID, Password: smpp.Secret(x.Password),
		SystemType: x.SystemType, Mode: word(&wrong, smppModes, "bind", x.Bind), Window: x.Window, Enquire: time.Duration(x.EnquireSeconds) * time.Second,
		Text: smpp.Text{Default: word(&wrong, smppAlphabets, "alphabet", x.Alphabet), GSMAsIA5: word(&wrong, smppOnes, "data_coding1", x.DataCoding1),
			Long: word(&wrong, smppLongs, "long", x.Long)},
		IDs: smpp.IDs{Answer: word(&wrong, smppIDs, "submit_ids", x.SubmitIDs), Receipt: word(&wrong, smppIDs, "receipt_ids", x.ReceiptIDs),
			Option: word(&wrong, smppIDs, "option_ids", x.OptionIDs)},
		Message: c.message, Receipt: c.receipt, Parts: &parts{room: s, about: about}, Changed: c.changed, Log: s.Log, MaxPause: 30 * time.Second}
	if x.TLS {
		settings.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots(x.CA)}
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	var err error
	if c.client, err = smpp.New(settings); err != nil {
		return nil, []op.Violation{op.Field("settings", "invalid_value", err.Error())}
	}
	return c, nil
}

// roots are the authorities of the system and those given; nil: the system's.
func roots(pem string) *x509.CertPool {
	if pem == "" {
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	pool.AppendCertsFromPEM([]byte(pem))
	return pool
}

// dial connects to where the guard lets us. Centres on public addresses may be spoken to without TLS, as most have none.
func (c *centre) dial(ctx context.Context, _, address string) (net.Conn, error) {
	conn, _, err := c.room.Guard.Dial(ctx, address)
	return conn, err
}

// Run keeps the bind until ctx ends.
func (c *centre) Run(ctx context.Context) { c.client.Run(ctx) }

// State is nil while bound.
func (c *centre) State() error { return told(c.client.State()) }

// told marks refused log-ins.
func told(err error) error {
	for _, s := range []smpp.Status{smpp.BindFailed, smpp.BadPassword, smpp.BadSystemID} {
		if errors.Is(err, s) {
			return fmt.Errorf("%w: %w", ErrAuth, err)
		}
	}
	return err
}

// changed has what waits for the bind sent, and how it is kept.
func (c *centre) changed(error) {
	c.room.Messages.Wake()
	c.room.Bus.Publish(Changed, c.about.Org)
}

// Test waits for a bind.
func (c *centre) Test(ctx context.Context) error {
	if err := c.client.WaitBound(ctx); err != nil {
		return errors.Join(c.State(), err)
	}
	return nil
}

// Send submits the parts of a message that the centre does not have yet.
func (c *centre) Send(ctx context.Context, o sms.Outgoing) (sms.Result, error) {
	if !c.room.held(c.about.ID) {
		return sms.Result{IDs: o.Sent}, &sms.Busy{After: away, Cause: errors.New("another node keeps the connection")}
	}
	r, err := c.client.Submit(ctx, smpp.Outgoing{From: smpp.ParseAddress(o.From), To: smpp.ParseAddress(o.To), Text: o.Body, Receipt: !c.settings.NoReceipts,
		Validity: time.Duration(c.settings.ValidityMinutes) * time.Minute, ServiceType: c.settings.ServiceType, Reference: joint(o.Reference), Sent: o.Sent})
	out := sms.Result{Status: sms.Sent, IDs: r.MessageIDs}
	if err == nil {
		return out, nil
	}
	var failed *smpp.Error
	if !errors.As(err, &failed) {
		return out, err
	}
	switch {
	case failed.Outcome == smpp.Retryable && failed.Wait > 0:
		return out, &sms.Busy{After: failed.Wait, Cause: err}
	case failed.Outcome == smpp.Retryable && failed.Status == smpp.OK: // the connection was lost: messages wait until it is back
		return out, &sms.Busy{After: away, Cause: err}
	case failed.Outcome == smpp.Retryable:
		return out, fmt.Errorf("%w: %w", sms.ErrUnsent, err)
	case failed.Outcome == smpp.Permanent:
		out.Status, out.Fault = sms.Failed, rejected(failed)
		return out, nil
	}
	return out, fmt.Errorf("%w: %w", sms.ErrUnknown, err)
}

// away is after which time a message is tried again whose connection was lost; it waits until there is one.
const away = time.Second

// joint is the reference that joins the parts of a message: the same whenever it is sent.
func joint(id string) uint16 {
	h := fnv.New32a()
	h.Write([]byte(id))
	return uint16(h.Sum32()%255) + 1
}

// rejected says why a centre does not take a message.
func rejected(e *smpp.Error) *sms.Fault {
	f := &sms.Fault{Code: "carrier_rejected", Message: "the carrier does not take the message: " + e.Unwrap().Error()}
	if e.Status == smpp.BadDestination {
		f.Code = "invalid_destination"
	}
	if e.Status != smpp.OK {
		code := e.Status.String()
		f.CarrierCode = &code
	}
	return f
}

// message takes a message that came in; the centre is told when it is committed.
func (c *centre) message(ctx context.Context, in smpp.Incoming) error {
	carrier := Carrier{ID: c.about.ID, org: c.about.Org}
	text := in.Text
	if in.Binary != nil {
		c.room.Log.Info("binary message dropped", "org", c.about.Org, "carrier", c.about.ID)
		return nil
	}
	id := ""
	if in.Key.Segment.Total > 0 { // its parts may be handed on twice, where a crash comes between that and the end of keeping them
		id = fmt.Sprintf("%s %d", name(in.Key), in.At.UnixNano())
	}
	return c.room.receive(ctx, carrier, Incoming{ID: id, From: in.From.String(), To: in.To.String(), Body: text})
}

// receipt takes what became of a part.
func (c *centre) receipt(ctx context.Context, r smpp.Receipt) error {
	if !r.State.Final() || r.MessageID == "" {
		return nil
	}
	return c.room.Messages.Receipt(ctx, c.about.Org, c.about.ID, r.MessageID, outcome(r))
}

// outcome is what a receipt says of a message.
func outcome(r smpp.Receipt) sms.Result {
	if r.State == smpp.Delivered {
		return sms.Result{Status: sms.Delivered}
	}
	code := map[smpp.State]string{smpp.Expired: "expired", smpp.Rejected: "carrier_rejected", smpp.Unknown: "unknown"}[r.State]
	if code == "" {
		code = "unreachable"
	}
	f := &sms.Fault{Code: code, Message: "the carrier reports " + r.State.String()}
	carrier := r.State.String()
	if r.Error != "" && strings.Trim(r.Error, "0") != "" {
		carrier = r.Error
	}
	f.CarrierCode = &carrier
	return sms.Result{Status: sms.Undelivered, Fault: f}
}
