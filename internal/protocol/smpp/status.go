package smpp

import "fmt"

// Status is the command_status of a response (§5.1.3). A caller's function may return it as an error; the peer then
// receives it.
type Status uint32

// The statuses that this package sends or handles specially.
const (
	OK                 Status = 0x00
	BadMessageLength   Status = 0x01
	BadCommandLength   Status = 0x02
	BadCommand         Status = 0x03
	BadBindState       Status = 0x04
	AlreadyBound       Status = 0x05
	SystemError        Status = 0x08
	BadSource          Status = 0x0a
	BadDestination     Status = 0x0b
	BadMessageID       Status = 0x0c
	BindFailed         Status = 0x0d
	BadPassword        Status = 0x0e
	BadSystemID        Status = 0x0f
	CancelFailed       Status = 0x11
	ReplaceFailed      Status = 0x13
	QueueFull          Status = 0x14
	BadESMClass        Status = 0x43
	SubmitFailed       Status = 0x45
	Throttled          Status = 0x58
	BadSchedule        Status = 0x61
	TemporaryAppError  Status = 0x64
	PermanentAppError  Status = 0x65
	RejectedAppError   Status = 0x66
	QueryFailed        Status = 0x67
	BadOptionalStream  Status = 0xc0
	BadOptionalLength  Status = 0xc2
	DeliveryFailed     Status = 0xfe
	UnknownStatusError Status = 0xff
)

var statusNames = map[Status]string{OK: "ESME_ROK", BadMessageLength: "ESME_RINVMSGLEN", BadCommandLength: "ESME_RINVCMDLEN",
	BadCommand: "ESME_RINVCMDID", BadBindState: "ESME_RINVBNDSTS", AlreadyBound: "ESME_RALYBND", 0x06: "ESME_RINVPRTFLG",
	0x07: "ESME_RINVREGDLVFLG", SystemError: "ESME_RSYSERR", BadSource: "ESME_RINVSRCADR", BadDestination: "ESME_RINVDSTADR",
	BadMessageID: "ESME_RINVMSGID", BindFailed: "ESME_RBINDFAIL", BadPassword: "ESME_RINVPASWD", BadSystemID: "ESME_RINVSYSID",
	CancelFailed: "ESME_RCANCELFAIL", ReplaceFailed: "ESME_RREPLACEFAIL", QueueFull: "ESME_RMSGQFUL", 0x15: "ESME_RINVSERTYP",
	0x42: "ESME_RINVREPFLAG", BadESMClass: "ESME_RINVESMCLASS", 0x44: "ESME_RCNTSUBDL", SubmitFailed: "ESME_RSUBMITFAIL",
	0x48: "ESME_RINVSRCTON", 0x49: "ESME_RINVSRCNPI", 0x50: "ESME_RINVDSTTON", 0x51: "ESME_RINVDSTNPI", 0x53: "ESME_RINVSYSTYP",
	Throttled: "ESME_RTHROTTLED", BadSchedule: "ESME_RINVSCHED", 0x62: "ESME_RINVEXPIRY", TemporaryAppError: "ESME_RX_T_APPN",
	PermanentAppError: "ESME_RX_P_APPN", RejectedAppError: "ESME_RX_R_APPN", QueryFailed: "ESME_RQUERYFAIL",
	BadOptionalStream: "ESME_RINVOPTPARSTREAM", 0xc1: "ESME_ROPTPARNOTALLWD", BadOptionalLength: "ESME_RINVPARLEN",
	0xc3: "ESME_RMISSINGOPTPARAM", 0xc4: "ESME_RINVOPTPARAMVAL", DeliveryFailed: "ESME_RDELIVERYFAILURE",
	UnknownStatusError: "ESME_RUNKNOWNERR"}

// String returns the name in the specification, or the number.
func (s Status) String() string {
	if name, ok := statusNames[s]; ok {
		return name
	}
	return fmt.Sprintf("status %#x", uint32(s))
}

// Error returns String. A Status is an error so that a function can refuse a message with it.
func (s Status) Error() string { return s.String() }

// temporary reports whether the same request may be accepted later.
func (s Status) temporary() bool {
	switch s {
	case BadBindState, AlreadyBound, SystemError, QueueFull, Throttled, TemporaryAppError:
		return true
	}
	return false
}

// isThrottling reports whether the peer asks us to send less.
func (s Status) isThrottling() bool { return s == Throttled || s == QueueFull }
