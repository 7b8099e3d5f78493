package smpp

import "log/slog"

// Secret is a password that always prints as asterisks.
type Secret string

// String returns asterisks.
func (Secret) String() string { return "***" }

// GoString returns asterisks.
func (Secret) GoString() string { return "***" }

// LogValue returns asterisks.
func (Secret) LogValue() slog.Value { return slog.StringValue("***") }

// MarshalText returns asterisks.
func (Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// Bind is the body of the bind requests (§4.1). Names and passwords may be longer than in the specification, because
// those of some SMSCs are.
type Bind struct {
	SystemID         string
	Password         Secret
	SystemType       string
	InterfaceVersion uint8
	Range            Address
}

func (b *Bind) fields(c *coder, _ Command) {
	c.text("system_id", &b.SystemID, 65)
	c.text("password", (*string)(&b.Password), 65)
	c.text("system_type", &b.SystemType, 13)
	c.octet("interface_version", &b.InterfaceVersion)
	b.Range.fields(c, "addr")
}

// BindResponse is the body of the responses to bind requests.
type BindResponse struct {
	SystemID string
	TLVs     TLVs
}

func (b *BindResponse) fields(c *coder, _ Command) {
	c.text("system_id", &b.SystemID, 65)
	c.tlvs(&b.TLVs)
}

// OutbindRequest is the body of outbind, which asks a client to bind (§4.1.7).
type OutbindRequest struct {
	SystemID string
	Password Secret
}

func (o *OutbindRequest) fields(c *coder, _ Command) {
	c.text("system_id", &o.SystemID, 65)
	c.text("password", (*string)(&o.Password), 65)
}

// Message is the body of submit_sm, deliver_sm (§4.4, §4.6) and data_sm (§4.7), which lacks some of the fields.
type Message struct {
	ServiceType          string
	Source, Destination  Address
	ESMClass             uint8
	ProtocolID           uint8
	PriorityFlag         uint8
	ScheduleDeliveryTime string
	ValidityPeriod       string
	RegisteredDelivery   uint8
	ReplaceIfPresent     uint8
	DataCoding           uint8
	DefaultMessage       uint8
	ShortMessage         []byte
	TLVs                 TLVs
}

func (m *Message) fields(c *coder, of Command) {
	long := of != DataSM
	c.text("service_type", &m.ServiceType, 6)
	m.Source.fields(c, "source_addr")
	m.Destination.fields(c, "destination_addr")
	c.octet("esm_class", &m.ESMClass)
	if long {
		c.octet("protocol_id", &m.ProtocolID)
		c.octet("priority_flag", &m.PriorityFlag)
		c.text("schedule_delivery_time", &m.ScheduleDeliveryTime, 17)
		c.text("validity_period", &m.ValidityPeriod, 17)
	}
	c.octet("registered_delivery", &m.RegisteredDelivery)
	if long {
		c.octet("replace_if_present_flag", &m.ReplaceIfPresent)
	}
	c.octet("data_coding", &m.DataCoding)
	if long {
		c.octet("sm_default_msg_id", &m.DefaultMessage)
		c.octets("short_message", &m.ShortMessage)
	}
	c.tlvs(&m.TLVs)
}

// content returns the octets of the text with their header, from short_message or message_payload.
func (m *Message) content() []byte {
	if payload, ok := m.TLVs.Get(TagMessagePayload); ok && len(m.ShortMessage) == 0 {
		return payload
	}
	return m.ShortMessage
}

// MessageResponse is the body of the responses to messages, with the identifier of the message.
type MessageResponse struct {
	MessageID string
	TLVs      TLVs
}

func (m *MessageResponse) fields(c *coder, _ Command) {
	c.text("message_id", &m.MessageID, 65)
	c.tlvs(&m.TLVs)
}

// Query is the body of query_sm, which requests the state of a message (§4.8).
type Query struct {
	MessageID string
	Source    Address
}

func (q *Query) fields(c *coder, _ Command) {
	c.text("message_id", &q.MessageID, 65)
	q.Source.fields(c, "source_addr")
}

// QueryResponse is the body of query_sm_resp.
type QueryResponse struct {
	MessageID string
	FinalDate string
	State     State
	ErrorCode uint8
}

func (q *QueryResponse) fields(c *coder, _ Command) {
	c.text("message_id", &q.MessageID, 65)
	c.text("final_date", &q.FinalDate, 17)
	c.octet("message_state", (*uint8)(&q.State))
	c.octet("error_code", &q.ErrorCode)
}

// Cancel is the body of cancel_sm (§4.9).
type Cancel struct {
	ServiceType         string
	MessageID           string
	Source, Destination Address
}

func (b *Cancel) fields(c *coder, _ Command) {
	c.text("service_type", &b.ServiceType, 6)
	c.text("message_id", &b.MessageID, 65)
	b.Source.fields(c, "source_addr")
	b.Destination.fields(c, "destination_addr")
}

// Replace is the body of replace_sm, which replaces the text of a message (§4.10).
type Replace struct {
	MessageID            string
	Source               Address
	ScheduleDeliveryTime string
	ValidityPeriod       string
	RegisteredDelivery   uint8
	DefaultMessage       uint8
	ShortMessage         []byte
}

func (r *Replace) fields(c *coder, _ Command) {
	c.text("message_id", &r.MessageID, 65)
	r.Source.fields(c, "source_addr")
	c.text("schedule_delivery_time", &r.ScheduleDeliveryTime, 17)
	c.text("validity_period", &r.ValidityPeriod, 17)
	c.octet("registered_delivery", &r.RegisteredDelivery)
	c.octet("sm_default_msg_id", &r.DefaultMessage)
	c.octets("short_message", &r.ShortMessage)
}

// Alert is the body of alert_notification: a subscriber has become available (§4.12).
type Alert struct {
	Source, ESME Address
	TLVs         TLVs
}

func (a *Alert) fields(c *coder, _ Command) {
	a.Source.fields(c, "source_addr")
	a.ESME.fields(c, "esme_addr")
	c.tlvs(&a.TLVs)
}

// newBody returns an empty body of a command; nil if it has none or is unknown.
func newBody(of Command) Body {
	switch of {
	case BindReceiver, BindTransmitter, BindTransceiver:
		return &Bind{}
	case BindReceiver.Response(), BindTransmitter.Response(), BindTransceiver.Response():
		return &BindResponse{}
	case Outbind:
		return &OutbindRequest{}
	case SubmitSM, DeliverSM, DataSM:
		return &Message{}
	case SubmitSM.Response(), DeliverSM.Response(), DataSM.Response():
		return &MessageResponse{}
	case QuerySM:
		return &Query{}
	case QuerySM.Response():
		return &QueryResponse{}
	case CancelSM:
		return &Cancel{}
	case ReplaceSM:
		return &Replace{}
	case AlertNotification:
		return &Alert{}
	}
	return nil
}
