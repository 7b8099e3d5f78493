package voicemail

import (
	"bufio"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// mailServer receives mails and sends each to the channel.
func mailServer(t *testing.T) (address string, mails <-chan string) {
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
			go receiveMail(c, all)
		}
	}()
	return l.Addr().String(), all
}

// receiveMail serves one SMTP connection.
func receiveMail(c net.Conn, mails chan<- string) {
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

func TestMail_NewMessage(t *testing.T) {
	t.Parallel()
	address, mails := mailServer(t)
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off", "SONIQ_SMTP": "smtp://" + address,
		"SONIQ_MAIL_FROM": "Voice <voice@example.com>", "SONIQ_ALLOW_TARGETS": "127.0.0.0/8"}})
	m := newVoicemailOffice(s)
	m.Want(200, "PATCH", "/users/"+m.ada.ID, map[string]any{"voicemail": map[string]any{"email_notify": true}}, nil)
	m.leaveMessage("+442079460008", fixture.MessageTone, 3*time.Second)
	id := m.WaitMessages(1)[0].ID
	for {
		select {
		case mail := <-mails:
			head, body, _ := strings.Cut(mail, "\r\n\r\n")
			if !strings.Contains(head, "Voicemail from") { // an invitation
				continue
			}
			if plain, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(body))); err == nil &&
				strings.Contains(head, "quoted-printable") {
				body = string(plain)
			}
			if !strings.Contains(head, "ada@example.com") || !strings.Contains(body, "+442079460008") || !strings.Contains(body, "/voicemail/"+id+"/audio") {
				t.Errorf("mail:\n%s\n\n%s", head, body)
			}
			return
		case <-time.After(limit.Hang(0)):
			t.Fatal("no mail came")
		}
	}
}
