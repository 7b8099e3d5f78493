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

// SMPPSettings are the settings of a carrier with an SMSC, over SMPP 3.4.
type SMPPSettings struct {
	Host     string `json:"host"`
	Port     int    `json:"port"` // default 2775
	TLS      bool   `json:"tls"`
	CA       string `json:"ca"` // certificates in PEM that TLS trusts in addition to the system's
	SystemID string `json:"system_id"`
	Password string `json:"password"`
	// SystemType and ServiceType are for SMSCs that require one.
	SystemType  string `json:"system_type"`
	ServiceType string `json:"service_type"`
	Bind        string `json:"bind"`         // transceiver (default), transmitter or receiver
	Alphabet    string `json:"alphabet"`     // of data_coding 0: gsm7 (default), gsm7_packed, latin1 or ascii
	DataCoding1 string `json:"data_coding1"` // alphabet of data_coding 1: ascii (default) or gsm7
	Long        string `json:"long"`         // encoding of concatenated messages: udh8 (default), udh16, sar or payload
	// Format of message identifiers in submit_sm_resp, in the text of receipts, and in receipted_message_id: as_is
	// (default), decimal or hex.
	SubmitIDs       string `json:"submit_ids"`
	ReceiptIDs      string `json:"receipt_ids"`
	OptionIDs       string `json:"option_ids"`
	NoReceipts      bool   `json:"no_receipts"`      // receipts are not requested: messages stay in state sent
	Window          int    `json:"window"`           // unacknowledged messages at once; default 10
	EnquireSeconds  int    `json:"enquire_seconds"`  // idle time before enquire_link; default 30
	ValidityMinutes int    `json:"validity_minutes"` // validity period; 0: the SMSC's default
}

// The values of the settings.
var (
	smppModes = map[string]smpp.Command{"": smpp.BindTransceiver, "transceiver": smpp.BindTransceiver, "transmitter": smpp.BindTransmitter,
		"receiver": smpp.BindReceiver}
	smppAlphabets = map[string]smpp.Alphabet{"": smpp.GSM, "gsm7": smpp.GSM, "gsm7_packed": smpp.GSMPacked, "latin1": smpp.Latin1,
		"ascii": smpp.ASCII}
	smppDataCoding1 = map[string]bool{"": false, "ascii": false, "gsm7": true}
	smppLongModes   = map[string]smpp.LongMode{"": smpp.UDH8, "udh8": smpp.UDH8, "udh16": smpp.UDH16, "sar": smpp.SAR,
		"payload": smpp.Payload}
	smppIDs = map[string]smpp.IDFormat{"": smpp.AsIs, "as_is": smpp.AsIs, "decimal": smpp.Decimal, "hex": smpp.Hex}
)

func settingValue[T any](wrong *[]op.Violation, all map[string]T, field, text string) T {
	v, ok := all[text]
	if !ok {
		var names []string
		for name := range all {
			if name != "" {
				names = append(names, name)
			}
		}
		*wrong = append(*wrong, op.Field("settings."+field, "invalid_value", "must be one of "+joinSorted(names)))
	}
	return v
}

func (x *SMPPSettings) validate(g *egress.Guard) (wrong []op.Violation) {
	want := func(ok bool, field, code, message string) {
		if !ok {
			wrong = append(wrong, op.Field("settings."+field, code, message))
		}
	}
	setDefault(&x.Port, 2775)
	setDefault(&x.Window, 10)
	setDefault(&x.EnquireSeconds, 30)
	want(x.SystemID != "" && len(x.SystemID) <= 15 && isPrintable(x.SystemID), "system_id", "invalid_value",
		"must be 1 to 15 printable characters")
	want(len(x.Password) <= 8 && isPrintable(x.Password), "password", "invalid_value", "may be 8 printable characters (SMPP 3.4, 5.2.2)")
	want(len(x.SystemType) <= 12 && isPrintable(x.SystemType), "system_type", "invalid_value", "may be 12 printable characters")
	want(len(x.ServiceType) <= 5 && isPrintable(x.ServiceType), "service_type", "invalid_value", "may be 5 printable characters")
	want(x.Port > 0 && x.Port < 65536, "port", "out_of_range", "must be between 1 and 65535")
	want(x.Window >= 1 && x.Window <= 100, "window", "out_of_range", "must be between 1 and 100")
	want(x.EnquireSeconds >= 5 && x.EnquireSeconds <= 3600, "enquire_seconds", "out_of_range", "must be between 5 and 3600")
	want(x.ValidityMinutes >= 0 && x.ValidityMinutes <= 7*24*60, "validity_minutes", "out_of_range", "must be between 0 and 10080")
	want(x.CA == "" || x.TLS && x509.NewCertPool().AppendCertsFromPEM([]byte(x.CA)), "ca", "invalid_value",
		"must be certificates in PEM, for TLS")
	if bad := checkHost(g, x.Host); bad != nil {
		wrong = append(wrong, *bad)
	}
	return wrong
}

// checkHost returns the violation of a host to connect to, before it is resolved.
func checkHost(g *egress.Guard, host string) *op.Violation {
	var fault *egress.Fault
	if errors.As(g.CheckHost(host), &fault) {
		v := op.Field("settings.host", fault.Code, fault.Message)
		return &v
	}
	return nil
}

func setDefault(v *int, standard int) {
	if *v == 0 {
		*v = standard
	}
}

func isPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// smppAdapter is the adapter for SMPP 3.4.
type smppAdapter struct {
	service  *Service
	info     CarrierInfo
	settings SMPPSettings
	client   *smpp.Client
}

func buildSMPP(s *Service, about CarrierInfo, raw json.RawMessage) (Adapter, []op.Violation) {
	var x SMPPSettings
	if wrong := op.DecodeSettings(raw, &x); wrong != nil {
		return nil, wrong
	}
	wrong := x.validate(s.cfg.Guard)
	c := &smppAdapter{service: s, info: about, settings: x}
	settings := smpp.Config{Address: net.JoinHostPort(x.Host, strconv.Itoa(x.Port)), Dialer: c, SystemID: x.SystemID,
		Password:   smpp.Secret(x.Password),
		SystemType: x.SystemType, Mode: settingValue(&wrong, smppModes, "bind", x.Bind), Window: x.Window,
		EnquireInterval: time.Duration(x.EnquireSeconds) * time.Second,
		Text: smpp.TextSettings{Default: settingValue(&wrong, smppAlphabets, "alphabet", x.Alphabet),
			GSMAsIA5: settingValue(&wrong, smppDataCoding1, "data_coding1", x.DataCoding1),
			Long:     settingValue(&wrong, smppLongModes, "long", x.Long)},
		IDs: smpp.IDs{Response: settingValue(&wrong, smppIDs, "submit_ids", x.SubmitIDs), Receipt: settingValue(&wrong, smppIDs,
			"receipt_ids", x.ReceiptIDs), Option: settingValue(&wrong, smppIDs, "option_ids", x.OptionIDs)},
		Handler: c, Parts: &dbPartStore{service: s, info: about}, Log: s.cfg.Log, MaxReconnectDelay: 30 * time.Second}
	if x.TLS {
		settings.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: rootCAs(x.CA)}
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

// rootCAs returns the authorities of the system plus the given ones; nil means the system's.
func rootCAs(pem string) *x509.CertPool {
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

// DialContext implements smpp.Dialer: it connects through the egress guard. TLS is not required for public addresses, because most SMSCs do
// not offer it.
func (c *smppAdapter) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	conn, _, err := c.service.cfg.Guard.Dial(ctx, address)
	return conn, err
}

// Run keeps the bind until ctx ends.
func (c *smppAdapter) Run(ctx context.Context) { c.client.Run(ctx) }

// State returns nil while bound.
func (c *smppAdapter) State() error { return markAuthError(c.client.State()) }

// markAuthError adds ErrAuth to errors that mean a refused log-in.
func markAuthError(err error) error {
	for _, s := range []smpp.Status{smpp.BindFailed, smpp.BadPassword, smpp.BadSystemID} {
		if errors.Is(err, s) {
			return fmt.Errorf("%w: %w", ErrAuth, err)
		}
	}
	return err
}

// StateChanged implements smpp.ClientHandler: it makes waiting messages be sent, and the new state be stored.
func (c *smppAdapter) StateChanged(error) {
	c.service.cfg.Messages.Wake()
	c.service.cfg.Bus.Publish(Changed, c.info.Org)
}

// Test waits for a bind.
func (c *smppAdapter) Test(ctx context.Context) error {
	if err := c.client.WaitBound(ctx); err != nil {
		return errors.Join(c.State(), err)
	}
	return nil
}

// Send submits the parts of a message that the SMSC does not have yet.
func (c *smppAdapter) Send(ctx context.Context, o sms.Outgoing) (sms.Result, error) {
	if !c.service.holdsConnection(c.info.ID) {
		return sms.Result{IDs: o.Sent}, &sms.BusyError{After: reconnectDelay, Cause: errors.New("another node keeps the connection")}
	}
	r, err := c.client.Submit(ctx, smpp.Outgoing{From: smpp.ParseAddress(o.From), To: smpp.ParseAddress(o.To), Text: o.Body,
		Receipt:  !c.settings.NoReceipts,
		Validity: time.Duration(c.settings.ValidityMinutes) * time.Minute, ServiceType: c.settings.ServiceType,
		Reference: partReference(o.Reference), Sent: o.Sent})
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
		return out, &sms.BusyError{After: failed.Wait, Cause: err}
	case failed.Outcome == smpp.Retryable && failed.Status == smpp.OK: // the connection was lost: messages wait until it is restored
		return out, &sms.BusyError{After: reconnectDelay, Cause: err}
	case failed.Outcome == smpp.Retryable:
		return out, fmt.Errorf("%w: %w", sms.ErrUnsent, err)
	case failed.Outcome == smpp.Permanent:
		out.Status, out.Fault = sms.Failed, rejectionFault(failed)
		return out, nil
	}
	return out, fmt.Errorf("%w: %w", sms.ErrOutcomeUnknown, err)
}

// reconnectDelay is the delay before a message is retried after its connection was lost. It then waits until there is
// one.
const reconnectDelay = time.Second

// partReference returns the reference number of a concatenated message. It is derived from the id, so that it is the
// same at each attempt.
func partReference(id string) uint16 {
	h := fnv.New32a()
	h.Write([]byte(id))
	return uint16(h.Sum32()%255) + 1
}

// rejectionFault returns the fault for a message that the SMSC refuses.
func rejectionFault(e *smpp.Error) *sms.Fault {
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

// Message implements smpp.ClientHandler: it stores a received message. The SMSC gets its response after the commit.
func (c *smppAdapter) Message(ctx context.Context, in smpp.Incoming) error {
	carrier := Carrier{ID: c.info.ID, org: c.info.Org}
	var media []sms.Media
	if in.Binary != nil {
		media = append(media, sms.Undecoded(in.Binary, fmt.Sprintf("application/octet-stream; data_coding=%d", in.DataCoding)))
	}
	id := ""
	if in.Key.Segment.Total > 0 { // if a crash comes before the parts are marked as complete, the message is delivered again
		id = fmt.Sprintf("%s %d", partKey(in.Key), in.At.UnixNano())
	}
	return c.service.receiveMessage(ctx, carrier, Incoming{ID: id, From: in.From.String(), To: in.To.String(), Body: in.Text, Media: media})
}

// Receipt implements smpp.ClientHandler: it applies the receipt of a part.
func (c *smppAdapter) Receipt(ctx context.Context, r smpp.Receipt) error {
	if !r.State.Final() || r.MessageID == "" {
		return nil
	}
	return c.service.cfg.Messages.Receipt(ctx, c.info.Org, c.info.ID, r.MessageID, receiptResult(r))
}

// receiptResult returns the result for a receipt.
func receiptResult(r smpp.Receipt) sms.Result {
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
