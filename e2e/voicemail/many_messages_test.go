package voicemail

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/platform/db"
)

// TestMenu_MoreThan100Messages proves that the menu says the true number of messages in a full mailbox. The user can hear more than 100
// of them in one call.
//
// https://github.com/asterisk/asterisk/issues/86
func TestMenu_MoreThan100Messages(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}})
	m := &voicemailOffice{Org: &fixture.Org{Client: s.Org("live")}} // without a webhook, because it would get an event for each message
	ada := m.AddHandset("Ada", make(chan *fixture.IncomingCall, 1))
	m.carrier = m.AddCarrier("", map[string]any{"inbound": map[string]any{"allowed_ips": []string{"127.0.0.1"}}})
	m.number = m.carrier.Number
	m.routeTo(ada.User.ID)
	m.leaveMessage("+442079460021", fixture.MessageTone, 3*time.Second)
	const all, heard = 120, 105
	m.copyMessage(m.WaitMessages(1)[0].ID, all-1)
	m.CDR("+442079460021") // its call is over

	call := ada.Dial("*97").WaitAnswered()
	id := m.LiveCall(nil)["id"].(string)
	if told := fmt.Sprint(m.WaitTimelineStep(id, "prompt.failed")["text"]); !strings.HasPrefix(told, "You have 120 new messages and no old messages.") {
		t.Errorf("the menu says %q", told)
	}
	call.Press("1")                               // the first message; 2 leads to the next one
	pace := time.NewTicker(50 * time.Millisecond) // of a quick user: the server takes 25 keys per second
	defer pace.Stop()
	for next := 1; next <= heard; next++ {
		<-pace.C
		call.Press("2")
		if next%20 == 0 { // the keys that wait are limited
			m.waitRead(next)
		}
	}
	m.waitRead(heard)
	call.HangUp()
}

// copyMessage inserts n copies of a message into the database of the server.
func (m *voicemailOffice) copyMessage(id string, n int) {
	m.T.Helper()
	d, err := db.Open(m.T.Context(), filepath.Join(m.Server.Data, "soniq.db"))
	if err != nil {
		m.T.Fatal(err)
	}
	defer d.Close()
	const columns = `call_id, mailbox_type, mailbox_id, from_number, received_at, duration_ms, size_bytes, sha256, blob, status, updated_at`
	err = d.Tx(m.T.Context(), func(tx db.Querier) error {
		for range n {
			if _, err := tx.Exec(m.T.Context(), `INSERT INTO voicemails (org_id, id, `+columns+`)
				SELECT org_id, $3, `+columns+` FROM voicemails WHERE org_id = $1 AND id = $2`, m.Client.Org, id, db.NewID("vm")); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		m.T.Fatal(err)
	}
}

// waitRead waits until a number of messages were heard.
func (m *voicemailOffice) waitRead(n int) {
	m.T.Helper()
	rig.Until(m.T, fmt.Sprintf("%d messages are read", n), time.Minute, func() bool {
		var page struct{ Data []struct{ ID string } }
		m.Want(200, "GET", "/voicemail?status=read&limit=200", nil, &page)
		return len(page.Data) >= n
	})
}
