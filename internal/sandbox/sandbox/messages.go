package sandbox

import (
	"context"
	"time"

	"soniq/internal/messaging/sms"
)

// Last two digits of the test numbers for messages.
const (
	smsUndelivered = "12"
	smsRejected    = "13"
	smsOptedOut    = "14"
	smsReplies     = "15"
)

// receiptDelay is the delay of receipts and replies.
const receiptDelay = time.Second

// SMSCarrier is the message carrier of the sandbox. No message leaves the server. Messages to +12025550112 are
// undelivered, those to +12025550113 are rejected, +12025550115 replies with the same text, and all other messages
// are delivered.
type SMSCarrier struct{}

// OptedOut reports whether a test number has opted out.
func OptedOut(e164 string) bool { return testDigits(e164) == smsOptedOut }

// Send returns the result of a message by its test number.
func (SMSCarrier) Send(_ context.Context, o sms.Outgoing) (sms.Result, error) {
	delivered := sms.Result{Status: sms.Sent, Later: &sms.Result{Status: sms.Delivered}, After: receiptDelay}
	switch testDigits(o.To) {
	case smsUndelivered:
		return sms.Result{Status: sms.Sent, After: receiptDelay, Later: &sms.Result{Status: sms.Undelivered, Fault: fault("unreachable",
			"the recipient's telephone cannot be reached", "30003")}}, nil
	case smsRejected:
		return sms.Result{Status: sms.Failed, Fault: fault("carrier_rejected", "the carrier rejected the message", "30007")}, nil
	case smsReplies:
		delivered.Reply = o.Body
	}
	return delivered, nil
}

// QueryStatus returns sms.ErrUnsent: no message leaves the server, so that sending it again is safe.
func (SMSCarrier) QueryStatus(context.Context, sms.Outgoing) (sms.Result, error) {
	return sms.Result{}, sms.ErrUnsent
}

func fault(code, message, carrierCode string) *sms.Fault {
	return &sms.Fault{Code: code, Message: message, CarrierCode: &carrierCode}
}
