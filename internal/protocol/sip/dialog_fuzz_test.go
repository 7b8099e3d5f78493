package sip

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip/digest"
)

// dialogScript runs a script of a dialog: messages of the peer, actions of the switch, and time.
type dialogScript struct {
	*testShard
	leg               *Leg
	in                *Inbound
	tag               string
	seq               int
	ended             int
	invited           int
	offerResponders   []func(int, []byte)
	requestResponders []func(int)
	referNotifiers    []func(int, string)
}

func (s *dialogScript) on(e Event) {
	switch e := e.(type) {
	case Failed, Canceled, Bye, Lost, Closed:
		s.ended++
	case Reinvite:
		s.offerResponders = append(s.offerResponders, func(status int, sdp []byte) { e.Respond(status, sdp) })
	case Info:
		s.requestResponders = append(s.requestResponders, e.Respond)
	case Refer:
		s.requestResponders = append(s.requestResponders, e.Respond)
		s.referNotifiers = append(s.referNotifiers, e.Notify)
	}
}

var scriptMethods = []string{"INVITE", "UPDATE", "PRACK", "REFER", "NOTIFY", "INFO", "OPTIONS", "ACK", "CANCEL", "BYE", "MESSAGE"}

// runStep runs one step. "m FIELDS|BODY" receives a request of method number m, "@status FIELDS|BODY" receives a
// response to our last request, "~seconds" advances the clock, "!n" acts for the switch.
func (s *dialogScript) runStep(t string) {
	if t == "" {
		return
	}
	t = strings.Replace(t, "RACK", "RAck: "+s.rseq()+" 1 INVITE", 1)
	n, rest, _ := strings.Cut(t[1:], " ")
	fields, body, _ := strings.Cut(rest, "|")
	if fields != "" && !strings.HasSuffix(fields, "\r\n") {
		fields += "\r\n"
	}
	number, _ := strconv.Atoi(n)
	switch t[0] {
	case 'm':
		s.seq++
		m := s.request(scriptMethods[abs(number)%len(scriptMethods)], fmt.Sprint("f", s.seq), s.tag, 1+s.seq)
		s.receiveRaw(strings.Replace(m, "Content-Length: 0\r\n\r\n", fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", fields, len(body), body), 1))
	case '@':
		if last := s.lastRequest(); last != "" {
			s.receiveRaw(fmt.Sprintf("SIP/2.0 %d x\r\nVia: %s\r\nFrom: %s\r\nTo: %s;tag=b%d\r\nCall-ID: %s\r\nCSeq: %s\r\n%sContent-Length: %d\r\n\r\n%s",
				100+abs(number)%600, headerOfMessage(last, "Via"), headerOfMessage(last, "From"), headerOfMessage(last, "To"), s.seq%3, headerOfMessage(last, "Call-ID"), headerOfMessage(last, "CSeq"), fields, len(body), body))
		}
	case '~':
		s.advance(time.Duration(abs(number)%4001) * time.Second)
	case '!':
		s.switchAction(abs(number))
	}
	s.work()
}

// request returns a request of the peer. Its INVITE had CSeq 1, and an ACK has the number of the last INVITE.
func (s *dialogScript) request(method, branch, tag string, seq int) string {
	if method == "INVITE" {
		s.invited = seq
	}
	if method == "ACK" {
		seq = max(s.invited, 1)
	}
	m := request(method, branch, tag, seq)
	if s.in == nil { // we called
		m = strings.Replace(m, "From: <sip:a@b>;tag=1", "From: <sip:a@b>;tag=b0", 1)
	}
	return m
}

// rseq returns the RSeq of our last reliable response.
func (s *dialogScript) rseq() string {
	for i := len(s.sent) - 1; i >= 0; i-- {
		if n := headerOfMessage(s.sent[i], "RSeq"); n != "" {
			return n
		}
	}
	return "1"
}

func abs(n int) int { return max(n, -n, 0) }

// receiveRaw handles a message as the shard does. A panic is recovered and counted.
func (s *dialogScript) receiveRaw(raw string) {
	s.pushMessage(queueItem{raw: raw, flow: udpPeer}, false)
	s.work()
}

func (s *dialogScript) lastRequest() string {
	for i := len(s.sent) - 1; i >= 0; i-- {
		if !strings.HasPrefix(s.sent[i], "SIP/2.0") && !strings.HasPrefix(s.sent[i], "ACK") {
			return s.sent[i]
		}
	}
	return ""
}

func (s *dialogScript) switchAnswer(n int, sdp []byte) {
	switch {
	case s.in == nil:
	case n == 0:
		s.in.Ring(180, nil)
	case n == 1:
		s.in.Ring(183, sdp)
	case n == 2:
		s.in.Answer(sdp)
	case n == 3:
		s.in.Reject(486, "", 0)
	}
}

func (s *dialogScript) switchAction(n int) {
	sdp := []byte("v=0\r\n")
	nothing := func(*received, error) {}
	status := 100 + n/16*50%600
	switch n % 16 {
	case 0, 1, 2, 3:
		s.switchAnswer(n%16, sdp)
	case 4:
		s.leg.enqueue(func() { s.leg.sendReinvite(sdp, nothing) })
	case 5:
		s.leg.enqueue(func() { s.leg.sendReinvite(nil, nothing) })
	case 6:
		s.leg.enqueue(func() { s.leg.sendUpdate(sdp, nothing) })
	case 7:
		s.leg.enqueue(func() { s.leg.sendRefer("Refer-To: <sip:a@b>\r\n", nil, nothing) })
	case 8:
		s.leg.Ack(sdp)
	case 9:
		s.leg.Bye(Reason{})
	case 10:
		s.leg.Cancel()
	case 11:
		for _, f := range s.offerResponders {
			f(status, sdp)
		}
	case 12:
		for _, f := range s.requestResponders {
			f(status)
		}
	case 13:
		for _, f := range s.referNotifiers {
			f(status, "x")
		}
	case 14:
		s.leg.enqueue(func() { s.leg.snapshot() })
	case 15:
		s.leg.enqueue(s.leg.cancelReinvite)
	}
}

// FuzzDialog runs scripts on an inbound leg. No step may panic, and the end must leave no state behind.
func FuzzDialog(f *testing.F) {
	for _, seed := range []string{
		"!1\nm2 RAck: 1 1 INVITE\n!2\nm7\n!4\n@200 |v=0\n~4000\nm9",
		"!2\nm7\nm3 Refer-To: <sip:c@d?Replaces=c1%3Bto-tag%3D1%3Bfrom-tag%3D2>\n!172\n!93\n@100\n@0 \n!93\nm9",
		"!2\nm7 \nm1 Supported: timer\r\nSession-Expires: 90;refresher=uac|v=0\n!43\n!6\n@101\n~200\n~100",
		"!2\n!9\nm7\n~40", "!0\nm8\n~40", "!1\n~31\n~2", "!2\n~40",
		"!2\nm7\n!5\n@100 |v=0\n!8\nm0 |v=0\nm1 |v=0\n!43\n!15\n!7\nm4 Event: refer|SIP/2.0 200 OK\n~3600",
		"!2\nm7\nm1 Allow: UPDATE\n~900\n@322 Min-SE: 3000\n~1\n@305\n~4000",
	} {
		f.Add("Supported: 100rel, timer\r\n", seed)
	}
	f.Fuzz(func(t *testing.T, fields, text string) {
		if len(text) > 2000 || strings.Contains(fields, "\r\n\r\n") || strings.Contains(fields, "\n\n") {
			return
		}
		s := &dialogScript{testShard: newTestShard(t)}
		if !s.receiveCall(fields) {
			return
		}
		s.runSteps(strings.SplitN(text, "\n", 40))
		s.checkClean(t)
	})
}

// receiveCall creates the inbound leg. It returns false if the call was refused.
func (s *dialogScript) receiveCall(fields string) bool {
	s.receiveRequest("INVITE", "i1", "", 1, fields, "v=0\r\n")
	s.srv.workers.Wait()
	select {
	case s.in = <-s.calls:
	default:
		return false
	}
	s.leg, s.tag = s.in.Leg(), s.localTag()
	s.in.Listen(s.on)
	s.work()
	return true
}

// placeCall creates an outgoing leg.
func (s *dialogScript) placeCall(t *testing.T, sdp string) {
	o := Outgoing{URI: "sip:bob@192.0.2.1", CallID: "c1", SDP: []byte(sdp), Credentials: digest.Credentials{Username: "a", Password: "b"}}
	leg, err := s.srv.Invite(context.Background(), o, s.on)
	if err != nil {
		t.Fatal(err)
	}
	s.leg, s.tag = leg, leg.localTag
	s.work()
}

func (s *dialogScript) runSteps(steps []string) {
	for _, step := range steps {
		s.runStep(step)
	}
}

// checkClean hangs up and checks that no state is left.
func (s *dialogScript) checkClean(t *testing.T) {
	t.Helper()
	s.switchAction(9)
	s.work()
	s.advance(time.Hour)
	if n := s.srv.Stats().Panics; n > 0 {
		t.Fatalf("%d panics", n)
	}
	if len(s.legs) != 0 || len(s.serverTxs) != 0 || len(s.clientTxs) != 0 || len(s.timers) != 0 {
		t.Errorf("left behind: %d legs, %d + %d transactions, %d timers", len(s.legs), len(s.serverTxs), len(s.clientTxs), len(s.timers))
	}
	if !s.leg.ended.Load() || s.ended != 1 {
		t.Errorf("over %v, after %d last events, want one", s.leg.ended.Load(), s.ended)
	}
}

var scriptSteps = []string{
	"m0 |v=0", "m0 ", "m0 Session-Expires: 90\r\nSupported: timer|v=0", "m1 |v=0", "m1 ", "m1 Session-Expires: 30\r\nSupported: timer",
	"m1 Allow: UPDATE", "m2 RAck: 1 1 INVITE", "m2 RACK", "m2 RACK|v=0", "m3 Refer-To: <sip:a@b>", "m3 Refer-To: <sip:a@b>\r\nRefer-Sub: false",
	"m4 Event: refer\r\nSubscription-State: active|SIP/2.0 180 x", "m4 Event: refer\r\nSubscription-State: terminated|SIP/2.0 200 x",
	"m5 ", "m6 ", "m7 ", "m7 ", "m7 ACK|v=0", "m8 ", "m9 ", "m10 ",
	"@0 ", "@80 ", "@83 Require: 100rel\r\nRSeq: 1|v=0", "@83 Require: 100rel\r\nRSeq: 2|v=0", "@100 |v=0", "@100 |v=0", "@100 Allow: UPDATE|v=0",
	"@100 Session-Expires: 90;refresher=uac|v=0", "@301 WWW-Authenticate: Digest realm=\"x\", nonce=\"y\"", "@307 Proxy-Authenticate: Digest realm=\"x\", nonce=\"y\", stale=true",
	"@308 ", "@322 Min-SE: 4000", "@381 ", "@386 ", "@391 ", "@400 ", "@405 ",
	"~0", "~1", "~5", "~31", "~33", "~60", "~100", "~950", "~2000",
	"!0", "!1", "!2", "!2", "!3", "!4", "!5", "!6", "!7", "!8", "!9", "!10", "!11", "!43", "!43", "!12", "!44", "!13", "!45", "!93", "!14", "!15",
}

// TestDialog_RandomScriptsEndClean runs many random scripts. The seed makes them reproducible.
func TestDialog_RandomScriptsEndClean(t *testing.T) {
	t.Parallel()
	sequences := uint64(2000)
	if testing.Short() {
		sequences = 500
	}
	for seed := range sequences {
		r := rand.New(rand.NewPCG(seed, 1))
		s := &dialogScript{testShard: newTestShard(t)}
		switch seed % 4 {
		case 0:
			s.placeCall(t, "v=0\r\n")
		case 1:
			s.placeCall(t, "")
		case 2:
			s.receiveCall("Supported: 100rel, timer\r\nAllow: UPDATE\r\n")
		case 3:
			s.receiveCall("")
		}
		steps := make([]string, 3+r.IntN(30))
		for i := range steps {
			steps[i] = scriptSteps[r.IntN(len(scriptSteps))]
		}
		s.runSteps(steps)
		if s.checkClean(t); t.Failed() {
			t.Fatalf("sequence %d:\n%s\nsent %v", seed, strings.Join(steps, "\n"), s.sentMethods())
		}
	}
}
