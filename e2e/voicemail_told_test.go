package e2e

import (
	"bufio"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// A telephone that never subscribes is told all the same.
func TestATelephoneThatDidNotSubscribeIsToldOfMessages(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}})
	m := newMailroom(s)
	bob := m.AddUser("Bob")
	m.leadTo(bob.ID)
	port := m.sippPhone(bob.SIP)
	told := s.Sipp(rig.Script{Scenario: "answer_notify", Port: port, Event: "message-summary", Limit: time.Minute})
	m.leave("+442079460007", messageTone, 3*time.Second)
	told.Wait()
	if got := told.Received("NOTIFY", 0); !strings.Contains(got, "Messages-Waiting: yes") || !strings.Contains(got, "Voice-Message: 1/0 (0/0)") ||
		rig.Field(got, "Subscription-State") != "terminated" || rig.Field(got, "Content-Type") != "application/simple-message-summary" {
		t.Errorf("told:\n%s", got)
	}
}

// leadTo has callers of the number come to a mailbox.
func (m *mailroom) leadTo(mailbox string) {
	m.T.Helper()
	var numbers struct{ Data []struct{ ID string } }
	m.Want(200, "GET", "/numbers", nil, &numbers)
	m.Want(200, "PATCH", "/numbers/"+numbers.Data[0].ID, map[string]any{"fallback": "voicemail:" + mailbox}, nil)
}

// postOffice takes mails and gives each to the channel, as it was written.
func postOffice(t *testing.T) (address string, mails <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	all := make(chan string, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go takeMail(c, all)
		}
	}()
	return l.Addr().String(), all
}

func takeMail(c net.Conn, mails chan<- string) {
	defer c.Close()
	in := bufio.NewReader(c)
	say := func(text string) { fmt.Fprint(c, text+"\r\n") }
	say("220 office")
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		switch strings.ToUpper(strings.Fields(line + " x")[0]) {
		case "DATA":
			say("354 go")
			var mail strings.Builder
			for line != ".\r\n" && err == nil {
				line, err = in.ReadString('\n')
				mail.WriteString(line)
			}
			mails <- mail.String()
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 office")
		}
	}
}

func TestAMessageIsToldByMail(t *testing.T) {
	t.Parallel()
	address, mails := postOffice(t)
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off", "SONIQ_SMTP": "smtp://" + address,
		"SONIQ_MAIL_FROM": "Voice <voice@example.com>", "SONIQ_ALLOW_TARGETS": "127.0.0.0/8"}})
	m := newMailroom(s)
	m.Want(200, "PATCH", "/users/"+m.ada.ID, map[string]any{"voicemail": map[string]any{"email_notify": true}}, nil)
	m.leave("+442079460008", messageTone, 3*time.Second)
	id := m.messages(1)[0].ID
	for {
		select {
		case mail := <-mails:
			head, body, _ := strings.Cut(mail, "\r\n\r\n")
			if !strings.Contains(head, "Voicemail from") { // an invitation
				continue
			}
			if plain, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(body))); err == nil && strings.Contains(head, "quoted-printable") {
				body = string(plain)
			}
			if !strings.Contains(head, "ada@example.com") || !strings.Contains(body, "+442079460008") || !strings.Contains(body, "/voicemail/"+id+"/audio") {
				t.Errorf("mail:\n%s\n\n%s", head, body)
			}
			return
		case <-time.After(time.Minute):
			t.Fatal("no mail came")
		}
	}
}

// Who left a message is called back with a key, by the rules that hold for the user.
func TestACallerIsCalledBackFromTheMailbox(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}})
	m := newMailroom(s)
	m.leave("+12125550199", messageTone, 3*time.Second)
	m.leave("+442079460009", messageTone, 3*time.Second) // newest; the country is not open
	m.messages(2)
	answer := s.Sipp(rig.Script{Scenario: "answer_bye", IP: m.line.ip, Port: m.line.port, Limit: 2 * time.Minute})
	m.adaPhone.Dial("*97")
	press(m.adaPhone, "1")
	m.adaPhone.Wait("MWI_NOTIFY", "Voice-Message: 1/1")
	press(m.adaPhone, "42")
	m.adaPhone.Wait("MWI_NOTIFY", "Voice-Message: 0/2")
	press(m.adaPhone, "4")
	answer.Wait()
	if got := answer.Received("INVITE", 0); !strings.Contains(got, "12125550199") {
		t.Errorf("called:\n%s", got)
	}
	m.adaPhone.Wait("CALL_CLOSED", "")
	r := m.records(1, "direction=internal")[0]
	var steps struct{ Data []map[string]any }
	m.Want(200, "GET", "/calls/"+r.CallID+"/events?limit=200", nil, &steps)
	if told := fmt.Sprint(steps.Data); !strings.Contains(told, "mailbox.not_called_back") {
		t.Errorf("the refused one is not told: %s", told)
	}
}
