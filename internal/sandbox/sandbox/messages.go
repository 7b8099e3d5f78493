package sandbox

import (
	"context"
	"time"

	"soniq/internal/messaging/sms"
)

// What happens to messages.
const (
	smsUndelivered = "12"
	smsRejected    = "13"
	smsOptedOut    = "14"
	smsReplies     = "15"
)

// soon is when receipts and replies come.
const soon = time.Second

// Messages is the carrier of messages in the sandbox. Nothing leaves: to +12025550112 they are not delivered, +12025550113
// is rejected, +12025550115 answers with the same text, and to every other number they are delivered.
type Messages struct{}

// OptedOut reports whether a test number has always opted out.
func OptedOut(e164 string) bool { return test(e164) == smsOptedOut }

// Send says what becomes of a message.
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

// Ask tells that nothing was sent: nothing ever is, so a message may be sent again.
func (Messages) Ask(context.Context, sms.Outgoing) (sms.Result, error) {
	return sms.Result{}, sms.ErrUnsent
}

func fault(code, message, carrierCode string) *sms.Fault {
	return &sms.Fault{Code: code, Message: message, CarrierCode: &carrierCode}
}
