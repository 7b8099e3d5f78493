package webhook

import (
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

func ptrTo[T any](v T) *T { return &v }

// samples returns one event of each kind, as for one inbound call.
func samples() []event.Payload {
	at := func(seconds int) db.Time { return db.At(time.Date(2026, 1, 31, 9, 30, seconds, 0, time.UTC)) }
	const call, caller, own = "call_01JB2M3N4P5Q6R7S8T9V0W1X2Y", "+442071838750", "+13125550123"
	const user, queue, number = "usr_01JB2M3N4P5Q6R7S8T9V0W1X2Y", "que_01JB2M3N4P5Q6R7S8T9V0W1X2Y", "num_01JB2M3N4P5Q6R7S8T9V0W1X2Y"
	const recording = "https://soniq.example/api/v1/recordings/rec_01JB2M3N4P5Q6R7S8T9V0W1X2Y/audio"
	const summary = "Ada asked for the invoice of January; it will be sent today."
	contact := &event.Contact{ID: "con_01JB2M3N4P5Q6R7S8T9V0W1X2Y", Name: "Ada Lovelace", Company: "Analytical & Co", Source: "carddav"}
	return []event.Payload{
		event.CallStarted{CallID: call, Direction: "inbound", FromNumber: caller, ToNumber: own, FromName: ptrTo("Ada Lovelace"),
			NumberID: ptrTo(number), UserID: ptrTo(user), StartedAt: at(0), Source: "trunk", Contact: contact},
		event.CallAnswered{CallID: call, Direction: "inbound", FromNumber: caller, ToNumber: own, AnsweredAt: at(6),
			AnsweredBy: "agent", AgentID: ptrTo(user), AgentName: ptrTo("Grace Hopper"), RingSeconds: 6},
		event.CallEnded{CallID: call, FromNumber: caller, TalkDurationSeconds: 42, RecordingURL: ptrTo(recording),
			AISummary: ptrTo(summary),
			ToNumber:  own, Direction: "inbound", Status: "completed", StartedAt: at(0), AnsweredAt: ptrTo(at(6)), EndedAt: at(48),
			EndReason: "caller_hangup", HangupBy: "caller", AgentID: ptrTo(user), Tags: []string{"invoice"}, Contact: contact,
			Quality: &event.Quality{MOS: 4.4, PacketLossRate: 0, JitterMS: 1.5, RTTMS: 24}, Enriched: true},
		event.CallMissed{CallID: call, FromNumber: caller, ToNumber: own, MissedReason: "no_answer", StartedAt: at(0), EndedAt: at(30),
			WaitSeconds: 30, AgentsOffered: 1, Contact: contact},
		event.CallRecording{CallID: call, RecordingID: "rec_01JB2M3N4P5Q6R7S8T9V0W1X2Y", Status: "available",
			RecordingURL: ptrTo(recording), DurationSeconds: 42, Channels: 2, Format: "wav"},
		event.CallTranscription{CallID: call, TranscriptID: "trn_01JB2M3N4P5Q6R7S8T9V0W1X2Y", Status: "completed", Language: ptrTo("en"),
			Text: ptrTo("Hello, this is Ada. Could you send me the invoice of January?"), AISummary: ptrTo(summary),
			Topics:      []string{"invoice"},
			ActionItems: []event.ActionItem{{Text: "Send the invoice of January", Owner: ptrTo("Grace Hopper"), Due: ptrTo("2026-01-31")}},
			Sentiment:   ptrTo("positive"), SummaryStatus: "completed"},
		event.VoicemailReceived{VoicemailID: "vm_01JB2M3N4P5Q6R7S8T9V0W1X2Y", CallID: call,
			Mailbox: event.Mailbox{Type: "user", ID: user, Name: "Grace Hopper"}, FromNumber: caller, DurationSeconds: 12,
			ReceivedAt: at(50),
			AudioURL:   "https://soniq.example/api/v1/voicemail/vm_01JB2M3N4P5Q6R7S8T9V0W1X2Y/audio", Text: ptrTo("Please call me back."),
			Contact: contact},
		event.SMSReceived{MessageID: "sms_01JB2M3N4P5Q6R7S8T9V0W1X2Y", ConversationID: "thr_01JB2M3N4P5Q6R7S8T9V0W1X2Y", FromNumber: caller,
			ToNumber: own, Body: "Thank you 👍", Segments: 1, Media: []event.Media{}, ReceivedAt: at(55), Contact: contact},
		event.SMSSent{MessageID: "sms_01JB2M3N4P5Q6R7S8T9V0W1X2Z", ConversationID: "thr_01JB2M3N4P5Q6R7S8T9V0W1X2Y", FromNumber: own,
			ToNumber: caller, Body: "Your invoice is on its way.", Segments: 1, Status: "sent", SentAt: at(58), UserID: ptrTo(user),
			Metadata: map[string]string{}},
		event.UserCreated{UserID: user, Email: "grace@example.com", Name: "Grace Hopper", Role: "agent", Extension: ptrTo("101"),
			CreatedAt: at(0), OrgID: "org_01JB2M3N4P5Q6R7S8T9V0W1X2Y"},
		event.NumberAllocated{NumberID: number, Number: own, Country: "US", Type: "local", Capabilities: []string{"voice"},
			AssignedTo: event.Assignment{Type: "user", ID: ptrTo(user), Name: ptrTo("Grace Hopper")}, AllocatedAt: at(0)},
		event.QueueCallWaiting{QueueID: queue, QueueName: "Support", CallID: call, FromNumber: caller, Position: 1, CallersWaiting: 1,
			AgentsAvailable: 2, EstimatedWaitSeconds: ptrTo(30), EnteredAt: at(3), Contact: contact},
	}
}

func sampleOf(kind string) (event.Payload, bool) {
	for _, p := range samples() {
		if string(p.Kind()) == kind {
			return p, true
		}
	}
	return nil, false
}
