package sandbox

import (
	"context"
	"time"

	"soniq/internal/messaging/sms"
)

// The last two digits of the test numbers for messages.
const (
	smsUndelivered = "12"
	smsRejected    = "13"
	smsOptedOut    = "14"
	smsReplies     = "15"
)

// receiptDelay is the delay of delivery receipts and replies.
const soon = time.Second

// SMSCarrier simulates the SMS carrier of the sandbox. No message leaves the server. Messages to +12025550112 are not
// delivered, +12025550113 is rejected, +12025550115 replies with the same text, and all other messages are delivered.
type Messages struct{}

// OptedOut reports whether a number is the test number that has always opted out.
func OptedOut(e164 string) bool { return test(e164) == smsOptedOut }

// Send returns the simulated result of a message.
func (Messages) Send(_ context.Context, o sms.Outgoing) (sms.Result, error) {
	delivered := sms.Result{Status: sms.Sent, Later: &sms.Result{Status: sms.Delivered}, After: soon}
	switch test(o.To) {
	case smsUndelivered:
		return sms.Result{Status: sms.Sent, After: soon, Later: &sms.Result{Status: sms.Undelivered, Fault: fault("unreachable",
			"the recipient's telephone cannot be reached", "30003")}}, nil
	case smsRejected:
		return sms.Result{Status: sms.Failed, Fault: fault("carrier_rejected", "the carrier rejected the message", "30007")}, nil
	case smsReplies:
		delivered.Reply = o.Body
	}
	return delivered, nil
}

// Ask returns sms.ErrUnsent, because no message was sent. The message may therefore be sent again.
func (Messages) Ask(context.Context, sms.Outgoing) (sms.Result, error) {
	return sms.Result{}, sms.ErrUnsent
}

func fault(code, message, carrierCode string) *sms.Fault {
	return &sms.Fault{Code: code, Message: message, CarrierCode: &carrierCode}
}
