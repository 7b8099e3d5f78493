package event

import "soniq/internal/platform/access"

// needs has the scopes that reading the subject of each kind takes. Whoever follows a kind, by a webhook, a stream or a list, needs them.
var needs = map[Kind]access.Need{
	"call.started":            access.One(access.CallsRead),
	"call.answered":           access.One(access.CallsRead),
	"call.ended":              access.One(access.CallsRead),
	"call.missed":             access.One(access.CallsRead),
	"call.recording":          access.One(access.CallsRead),
	"call.transcription":      access.One(access.CallsRead),
	"call.ringing":            access.One(access.CallsRead),
	"call.held":               access.One(access.CallsRead),
	"call.unheld":             access.One(access.CallsRead),
	"call.transfer":           access.One(access.CallsRead),
	"call.dtmf":               access.One(access.CallsRead),
	"call.transcript_segment": access.One(access.CallsRead),
	"call.quality":            access.One(access.CallsRead),
	"voicemail.received":      access.One(access.CallsRead),
	"voicemail.updated":       access.One(access.CallsRead),
	"sms.received":            access.One(access.SMSRead),
	"sms.sent":                access.One(access.SMSRead),
	"sms.status":              access.One(access.SMSRead),
	"conversation.updated":    access.One(access.SMSRead),
	"screen_pop":              access.One(access.ContactsRead),
	"user.created":            access.One(access.UsersAdmin),
	"device.registration":     access.One(access.UsersAdmin),
	"webhook.health":          access.One(access.UsersAdmin),
	"emergency.call_placed":   access.One(access.UsersAdmin),
	"number.allocated":        access.One(access.NumbersAdmin),
	"queue.call_waiting":      access.Either(access.QueuesRead, access.CallsRead),
	"queue.updated":           access.Either(access.QueuesRead, access.CallsRead),
	"agent.presence":          access.Either(access.QueuesRead, access.CallsRead),
}

// Need returns the scopes that following the kind takes. An unknown kind is for nobody.
func (k Kind) Need() access.Need { return needs[k] }

// Readable returns the kinds of all that the scopes allow to follow.
func Readable(all []Kind, scopes []access.Scope) []Kind {
	var some []Kind
	for _, k := range all {
		if k.Need().MetBy(scopes) {
			some = append(some, k)
		}
	}
	return some
}
