package smpp

import "log/slog"

// A Secret is a password: it prints as stars, whoever prints it.
type Secret string

// String hides it.
func (Secret) String() string { return "***" }

// GoString hides it.
func (Secret) GoString() string { return "***" }

// LogValue hides it.
func (Secret) LogValue() slog.Value { return slog.StringValue("***") }

// MarshalText hides it.
func (Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// A Bind logs in (§4.1). Names and passwords may be longer than the specification has them, as some centres' are.
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

// A BindAnswer lets in, or not.
type BindAnswer struct {
	SystemID string
	TLVs     TLVs
}

func (b *BindAnswer) fields(c *coder, _ Command) {
	c.text("system_id", &b.SystemID, 65)
	c.tlvs(&b.TLVs)
}

// An OutbindRequest asks a client to bind (§4.1.7).
type OutbindRequest struct {
	SystemID string
	Password Secret
}

func (o *OutbindRequest) fields(c *coder, _ Command) {
	c.text("system_id", &o.SystemID, 65)
	c.text("password", (*string)(&o.Password), 65)
}

// A Message is the body of submit_sm, deliver_sm (§4.4, §4.6) and data_sm (§4.7), which has not all of the fields.
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

// content is the text's octets with their header, wherever they are.
func (m *Message) content() []byte {
	if payload, ok := m.TLVs.Get(TagMessagePayload); ok && len(m.ShortMessage) == 0 {
		return payload
	}
	return m.ShortMessage
}

// A MessageAnswer says under which identifier a message was taken.
type MessageAnswer struct {
	MessageID string
	TLVs      TLVs
}

func (m *MessageAnswer) fields(c *coder, _ Command) {
	c.text("message_id", &m.MessageID, 65)
	c.tlvs(&m.TLVs)
}

// A Query asks what became of a message (§4.8).
type Query struct {
	MessageID string
	Source    Address
}

func (q *Query) fields(c *coder, _ Command) {
	c.text("message_id", &q.MessageID, 65)
	q.Source.fields(c, "source_addr")
}

// A QueryAnswer says so.
type QueryAnswer struct {
	MessageID string
	FinalDate string
	State     State
	ErrorCode uint8
}

func (q *QueryAnswer) fields(c *coder, _ Command) {
	c.text("message_id", &q.MessageID, 65)
	c.text("final_date", &q.FinalDate, 17)
	c.octet("message_state", (*uint8)(&q.State))
	c.octet("error_code", &q.ErrorCode)
}

// A Cancel takes a message back (§4.9).
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

// A Replace puts another text into a message (§4.10).
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

// An Alert says that a subscriber can be reached again (§4.12).
type Alert struct {
	Source, ESME Address
	TLVs         TLVs
}

func (a *Alert) fields(c *coder, _ Command) {
	a.Source.fields(c, "source_addr")
	a.ESME.fields(c, "esme_addr")
	c.tlvs(&a.TLVs)
}

// newBody is an empty body of a command; nil where it has none, or we do not know it.
func newBody(of Command) Body {
	switch of {
	case BindReceiver, BindTransmitter, BindTransceiver:
		return &Bind{}
	case BindReceiver.Answer(), BindTransmitter.Answer(), BindTransceiver.Answer():
		return &BindAnswer{}
	case Outbind:
		return &OutbindRequest{}
	case SubmitSM, DeliverSM, DataSM:
		return &Message{}
	case SubmitSM.Answer(), DeliverSM.Answer(), DataSM.Answer():
		return &MessageAnswer{}
	case QuerySM:
		return &Query{}
	case QuerySM.Answer():
		return &QueryAnswer{}
	case CancelSM:
		return &Cancel{}
	case ReplaceSM:
		return &Replace{}
	case AlertNotification:
		return &Alert{}
	}
	return nil
}
