package voicemail

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/mail"
	"net/url"
	"regexp"
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

// The mail about a message has its sound, unless its user wants the link alone. The link leads through the sign-in to a page with the
// sound. Own trial.
func TestMail_NewMessage(t *testing.T) {
	t.Parallel()
	address, mails := mailServer(t)
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off", "SONIQ_SMTP": "smtp://" + address,
		"SONIQ_MAIL_FROM": "Voice <voice@example.com>", "SONIQ_ALLOW_TARGETS": "127.0.0.0/8"}})
	m := newVoicemailOffice(s)
	m.Want(200, "PATCH", "/users/"+m.ada.ID, map[string]any{"voicemail": map[string]any{"email_notify": true}}, nil)
	m.leaveMessage("+442079460008", fixture.MessageTone, 3*time.Second)
	id := m.WaitMessages(1)[0].ID
	sound := m.Do("GET", "/voicemail/"+id+"/audio", nil).Body
	head, text, attached := waitMail(t, mails, "Voicemail from")
	link := regexp.MustCompile(`http://\S+`).FindString(text)
	if !strings.Contains(head, "ada@example.com") || !strings.Contains(text, "+442079460008") || !strings.HasSuffix(link, "/account/voicemail/"+id) {
		t.Errorf("mail:\n%s\n\n%s", head, text)
	}
	if len(sound) < 16000 || !bytes.Equal(attached, sound) {
		t.Errorf("the mail has %d bytes of sound attached, want the %d of the message", len(attached), len(sound))
	}
	wantMessagePage(m, mails, link, sound)
	m.Want(200, "PATCH", "/users/"+m.ada.ID, map[string]any{"voicemail": map[string]any{"email_audio": "link"}}, nil)
	m.leaveMessage("+442079460008", fixture.MessageTone, 3*time.Second)
	if _, text, attached := waitMail(t, mails, "Voicemail from"); len(attached) > 0 || !strings.Contains(text, "/account/voicemail/") {
		t.Errorf("with the link alone the mail has %d bytes attached:\n%s", len(attached), text)
	}
}

// wantMessagePage opens the link of a mail: it leads strangers to the sign-in, colleagues without a part in the call to nothing, and others
// to a page with the sound.
func wantMessagePage(m *voicemailOffice, mails <-chan string, link string, sound []byte) {
	m.T.Helper()
	page := func(browser *http.Client, address string) (at string, status int, body []byte) {
		m.T.Helper()
		r, err := browser.Get(address)
		if err != nil {
			m.T.Fatal(err)
		}
		defer r.Body.Close()
		if body, err = io.ReadAll(r.Body); err != nil {
			m.T.Fatal(err)
		}
		return r.Request.URL.Path, r.StatusCode, body
	}
	if at, status, body := page(http.DefaultClient, link); at != "/account/login" || status != 200 || !bytes.Contains(body, []byte("/account/voicemail/")) {
		m.T.Errorf("the link leads strangers to %s, %d", at, status)
	}
	if _, status, _ := page(signInByMail(m, mails, "eve@example.com", "agent"), link); status != 404 {
		m.T.Errorf("the page of another agent's message is %d, want 404", status)
	}
	boss := signInByMail(m, mails, "boss@example.com", "admin")
	if _, status, body := page(boss, link); status != 200 || !bytes.Contains(body, []byte("442079460008")) ||
		!bytes.Contains(body, []byte("<audio")) {
		m.T.Errorf("page of the message: %d\n%s", status, body)
	}
	if _, status, body := page(boss, link+"/audio"); status != 200 || !bytes.Equal(body, sound) {
		m.T.Errorf("sound of the page: %d, %d bytes, want %d", status, len(body), len(sound))
	}
}

// signInByMail adds a user, who chooses a password by the invitation that is mailed. It returns the user's browser, signed in.
func signInByMail(m *voicemailOffice, mails <-chan string, email, role string) *http.Client {
	m.T.Helper()
	m.Want(201, "POST", "/users", map[string]any{"email": email, "first_name": "Eve", "role": role}, nil)
	_, text, _ := waitMail(m.T, mails, email)
	jar, err := cookiejar.New(nil)
	if err != nil {
		m.T.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	const password = "correct horse battery"
	page := m.SubmitForm(browser, regexp.MustCompile(`http://\S+/invite/\S+`).FindString(text), url.Values{"password": {password}, "again": {password}})
	if page.Request.URL.Path != "/account" {
		m.T.Fatalf("after the invitation at %s, %d", page.Request.URL.Path, page.StatusCode)
	}
	return browser
}

// waitMail waits for the next mail whose header has a text. It returns its header, body and attachments.
func waitMail(t testing.TB, mails <-chan string, has string) (head, text string, attached []byte) {
	t.Helper()
	for {
		select {
		case raw := <-mails:
			if head, _, _ = strings.Cut(raw, "\r\n\r\n"); !strings.Contains(head, has) {
				continue
			}
			msg, err := mail.ReadMessage(strings.NewReader(strings.TrimSuffix(raw, ".\r\n")))
			if err != nil {
				t.Fatal(err)
			}
			text, attached = readParts(t, msg)
			return head, text, attached
		case <-time.After(limit.Hang(0)):
			t.Fatal("no mail came")
		}
	}
}

// readParts returns the body and the attachments of a mail.
func readParts(t testing.TB, msg *mail.Message) (text string, attached []byte) {
	t.Helper()
	kind, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		return string(decoded(t, msg.Header.Get("Content-Transfer-Encoding"), msg.Body)), nil
	}
	for parts := multipart.NewReader(msg.Body, params["boundary"]); ; {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			return text, attached
		}
		if err != nil {
			t.Fatal(err)
		}
		content := decoded(t, part.Header.Get("Content-Transfer-Encoding"), part)
		if part.FileName() == "" {
			text = string(content)
		} else {
			attached = content
		}
	}
}

// decoded returns the content of a part (RFC 2045 §6).
func decoded(t testing.TB, encoding string, r io.Reader) []byte {
	t.Helper()
	switch encoding {
	case "quoted-printable":
		r = quotedprintable.NewReader(r)
	case "base64":
		r = base64.NewDecoder(base64.StdEncoding, r)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
