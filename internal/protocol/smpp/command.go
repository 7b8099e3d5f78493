package smpp

import "fmt"

// Command is the command_id of a PDU (§5.1.2.1).
type Command uint32

// Commands; a response is its request with the highest bit set.
const (
	BindReceiver      Command = 0x01
	BindTransmitter   Command = 0x02
	QuerySM           Command = 0x03
	SubmitSM          Command = 0x04
	DeliverSM         Command = 0x05
	Unbind            Command = 0x06
	ReplaceSM         Command = 0x07
	CancelSM          Command = 0x08
	BindTransceiver   Command = 0x09
	Outbind           Command = 0x0b
	EnquireLink       Command = 0x15
	SubmitMulti       Command = 0x21
	AlertNotification Command = 0x102
	DataSM            Command = 0x103
	GenericNack       Command = 0x80000000
)

const responseBit Command = 0x80000000

var commandNames = map[Command]string{BindReceiver: "bind_receiver", BindTransmitter: "bind_transmitter", QuerySM: "query_sm",
	SubmitSM: "submit_sm", DeliverSM: "deliver_sm", Unbind: "unbind", ReplaceSM: "replace_sm", CancelSM: "cancel_sm",
	BindTransceiver: "bind_transceiver", Outbind: "outbind", EnquireLink: "enquire_link", SubmitMulti: "submit_multi",
	AlertNotification: "alert_notification", DataSM: "data_sm"}

// Response returns the command of the response.
func (c Command) Response() Command { return c | responseBit }

// IsResponse reports whether the command is a response.
func (c Command) IsResponse() bool { return c&responseBit != 0 }

// expectsResponse reports whether the peer expects a response: to all requests except two (§4.1.7, §4.12).
func (c Command) expectsResponse() bool {
	return !c.IsResponse() && c != Outbind && c != AlertNotification
}

// String returns the name in the specification.
func (c Command) String() string {
	if c == GenericNack {
		return "generic_nack"
	}
	name, known := commandNames[c&^responseBit]
	switch {
	case !known:
		return fmt.Sprintf("command %#x", uint32(c))
	case c.IsResponse():
		return name + "_resp"
	}
	return name
}

// isBind reports whether the command is one of the three bind requests.
func (c Command) isBind() bool {
	return c == BindReceiver || c == BindTransmitter || c == BindTransceiver
}
