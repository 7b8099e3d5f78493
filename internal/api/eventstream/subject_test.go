package eventstream_test

import (
	"errors"
	"testing"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/limit"
)

func TestStream_FiltersBySubject(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d)
		call, queue, user, other := "call_1", "que_1", "usr_1", "usr_2"
		for _, p := range []event.Payload{event.CallRinging{CallID: "call_2", UserID: &other},
			event.CallRinging{CallID: call, UserID: &user},
			event.CallAnswered{CallID: call, AgentID: &user, QueueID: &queue, AgentName: &call},
			event.QueueUpdated{QueueID: queue, QueueName: user},
			event.AgentPresence{AgentID: user, CallID: &call}, event.AgentPresence{AgentID: other},
			event.VoicemailReceived{CallID: "call_3", Mailbox: event.Mailbox{Type: "user", ID: user}},
			event.CallMissed{CallID: "call_4", QueueID: &queue}} {
			s.publish(p)
		}
		end := event.CallEnded{CallID: call, AgentID: &user, QueueID: &queue}
		s.must(d.Tx(ctx, func(tx db.Querier) error {
			return errors.Join(s.outbox.PublishTo(ctx, tx, s.org, event.AudienceImmediate, end),
				s.outbox.PublishTo(ctx, tx, s.org, event.AudienceEnriched, end))
		}))
		for query, want := range map[string][]string{
			"call_id=call_1": {"call.ringing call_1", "call.answered call_1", "agent.presence call_1", "call.ended call_1"},
			"queue_id=que_1": {"call.answered que_1", "queue.updated que_1", "call.missed call_4", "call.ended call_1"},
			"user_id=usr_1": {"call.ringing usr_1", "call.answered usr_1", "agent.presence usr_1", "voicemail.received usr_1",
				"call.ended call_1"},
			"call_id=call_1&user_id=usr_1&queue_id=que_1":    {"call.answered call_1", "call.ended call_1"},
			"user_id=usr_1&events=agent.presence,call.ended": {"agent.presence call_1", "call.ended call_1"},
			"format=webhook&queue_id=que_1":                  {"call.answered que_1", "call.missed call_4", "call.ended call_1"},
			"call_id=call_none&queue_id=que_1":               nil,
		} {
			c := s.listen("?after_sequence=0&" + query)
			wantKinds(t, query, c, want...)
			s.must(s.outbox.PublishEphemeral(s.org, event.ScreenPop{CallID: &call, UserID: &user, Queue: &event.Named{ID: queue}}))
			if len(want) > 3 { // the pop is about each of the three
				wantKinds(t, query, c, "screen_pop call_1")
			}
			c.body.Close()
		}
	})
}

// Each browser session has few streams; another session of the same user has its own.
func TestStream_LimitPerSession(t *testing.T) {
	t.Parallel()
	s := newFixture(t, dbtest.SQLite(t))
	for _, id := range []string{"ses_1", "ses_2"} {
		s.mu.Lock()
		s.principal.Kind, s.principal.KeyID, s.principal.UserID = access.BrowserSession, id, "usr_1"
		s.mu.Unlock()
		for range limit.EventStreamsOfSession.Int() {
			s.listen("")
		}
		s.refused("", 429, "concurrency_limit")
	}
}

// The end of a session ends its streams at once, and no others.
func TestStream_EndsWithSession(t *testing.T) {
	t.Parallel()
	s := newFixtureWith(t, dbtest.SQLite(t), time.Hour) // each heartbeat checks the credential
	s.mu.Lock()
	s.principal.Kind, s.principal.KeyID, s.principal.UserID = access.BrowserSession, "ses_1", ""
	s.mu.Unlock()
	c := s.listen("")
	s.outbox.Bus.Publish(access.SessionEnded("ses_2"), nil)
	s.publish(missed(1))
	c.next()
	s.mu.Lock()
	s.invalid = errors.New("ended")
	s.mu.Unlock()
	s.outbox.Bus.Publish(access.SessionEnded("ses_1"), nil)
	ended := make(chan error, 1)
	go func() { _, err := c.read(); ended <- err }()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the stream of an ended session goes on")
		}
	case <-time.After(time.Minute):
		t.Error("the stream of an ended session goes on")
	}
}
