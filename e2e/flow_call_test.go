package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime/multipart"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/media"
	"soniq/robot"
)

// A visitor is somebody outside who calls in, speaks a tone all the time and tells what they hear.
type visitor struct {
	t    testing.TB
	line *robot.Line

	mu    sync.Mutex // guards heard
	heard []int16
}

// visitorTone is what visitors say.
const visitorTone = 480

// visit calls the carrier's number from outside, and returns when it was answered.
func (s *site) visit(way carrier, from string) *visitor {
	s.T.Helper()
	v, err := s.tryVisit(way, from)
	if err != nil {
		s.T.Fatal(err)
	}
	return v
}

func (s *site) tryVisit(way carrier, from string) (*visitor, error) {
	s.T.Helper()
	line, err := s.lineIn(way, from)
	if err != nil {
		return nil, err
	}
	v := &visitor{t: s.T, line: line}
	line.Listen(v.keep)
	ctx, hush := context.WithCancel(context.Background())
	speaks := make(chan struct{})
	go func() {
		defer close(speaks)
		second := media.Tone(visitorTone, -12, time.Second, 8000)
		for i := 0; line.Say(ctx, second[i:i+800]) == nil; i = (i + 800) % 8000 { // in pieces, between which keys are pressed
		}
	}()
	s.T.Cleanup(func() { hush(); <-speaks })
	return v, nil
}

// lineIn calls the carrier's number from outside, and neither listens nor speaks.
func (s *site) lineIn(way carrier, from string) (*robot.Line, error) {
	s.T.Helper()
	phone, err := robot.StrangerAt(s.T.Context(), netip.MustParseAddr(way.ip), from, s.Server.SIP, slog.New(slog.DiscardHandler))
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(phone.Close)
	ctx, cancel := context.WithTimeout(s.T.Context(), 60*time.Second)
	defer cancel()
	return phone.Call(ctx, way.number)
}

// keep keeps what is heard.
func (v *visitor) keep(pcm []int16) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.heard = append(v.heard, pcm...)
}

// Mark and Since are those of an ear.
func (v *visitor) Mark() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.heard)
}

// Since is what was heard from a mark on, once it is as long as asked for.
func (v *visitor) Since(mark int, d time.Duration) []int16 {
	v.t.Helper()
	n := int(d.Seconds() * 8000)
	rig.Until(v.t, fmt.Sprintf("%s of audio at the visitor's", d), d+30*time.Second, func() bool { return v.Mark() >= mark+n || v.over() })
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.heard[min(mark, len(v.heard)):min(mark+n, len(v.heard))]
}

func (v *visitor) over() bool {
	select {
	case <-v.line.Over():
		return true
	default:
		return false
	}
}

// hears waits until a tone is heard that was not heard before the mark, and returns a mark behind it.
func (v *visitor) hears(mark int, hz float64) int {
	v.t.Helper()
	const part, enough = 800, 2
	in, at := 0, mark
	rig.Until(v.t, fmt.Sprintf("the visitor hears %.0f Hz", hz), 30*time.Second, func() bool {
		for now := v.Mark(); at+part <= now && in < enough; at += part {
			v.mu.Lock()
			if level(v.heard[at:at+part], hz) > -30 {
				in++
			}
			v.mu.Unlock()
		}
		return in >= enough
	})
	return at
}

// press presses keys, unless the call ends by them.
func (v *visitor) press(keys string) {
	v.t.Helper()
	if err := v.line.Press(v.t.Context(), keys); err != nil && !errors.Is(err, media.ErrClosed) {
		v.t.Fatalf("press %s: %v", keys, err)
	}
}

// ends waits until the call has ended.
func (v *visitor) ends() {
	v.t.Helper()
	select {
	case <-v.line.Over():
	case <-time.After(30 * time.Second):
		v.t.Fatal("the visitor's call did not end")
	}
}

// sound keeps a tone as a sound of the organisation, and returns its id.
func (s *site) sound(hz float64, d time.Duration) string {
	s.T.Helper()
	path, _ := spoken(s.T, "prompt", media.Tone(hz, -10, d, 8000))
	wav, err := os.ReadFile(path)
	if err != nil {
		s.T.Fatal(err)
	}
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	file, _ := m.CreateFormFile("file", fmt.Sprintf("%.0f.wav", hz))
	_, _ = file.Write(wav)
	_ = m.WriteField("name", fmt.Sprintf("%.0f Hz", hz))
	_ = m.Close()
	r := s.Do("POST", "/audio", b.Bytes(), "Content-Type", m.FormDataContentType())
	if r.Status != 201 {
		s.T.Fatalf("POST /audio: %d %s", r.Status, r.Body)
	}
	return r.JSON()["id"].(string)
}

// A node is a step of a flow: its type, config and what follows.
func node(id, kind string, config map[string]any, next ...string) map[string]any {
	n := map[string]any{"id": id, "type": kind, "config": config}
	if len(next) > 0 {
		to := map[string]string{}
		for i := 0; i+1 < len(next); i += 2 {
			to[next[i]] = next[i+1]
		}
		n["next"] = to
	}
	return n
}

// flow publishes a flow that begins with the first node, and returns its id.
func (s *site) flow(nodes ...map[string]any) string {
	s.T.Helper()
	return s.publishes(map[string]any{"entry": nodes[0]["id"], "nodes": nodes})
}

func (s *site) publishes(body map[string]any) string {
	s.T.Helper()
	body["name"], body["publish"] = "Flow", true
	var made struct{ ID string }
	s.Want(201, "POST", "/flows", body, &made)
	return made.ID
}

// leads makes a carrier's number lead to a flow.
func (s *site) leads(way carrier, flow string) {
	s.T.Helper()
	s.Want(200, "PATCH", "/numbers/"+s.numberID(way), map[string]any{"flow_id": flow}, nil)
}

func (s *site) numberID(way carrier) string {
	s.T.Helper()
	var page struct{ Data []struct{ ID, Number string } }
	s.Want(200, "GET", "/numbers?limit=200", nil, &page)
	for _, n := range page.Data {
		if n.Number == way.number {
			return n.ID
		}
	}
	s.T.Fatalf("no number %s", way.number)
	return ""
}

// line is a carrier whose number leads to a flow.
func (s *site) line(flow string) carrier {
	s.T.Helper()
	way := s.carrier("", nil)
	s.leads(way, flow)
	return way
}

// A passed step is a flow.step of a call's timeline.
type passedStep struct{ Node, Type, Outcome, Problem string }

// passed are the steps a call took through flows, once its record is there, as node:outcome; and the whole timeline.
func (s *site) passed(callID string) (way string, steps []passedStep, timeline string) {
	s.T.Helper()
	type entry struct {
		Kind   string
		Detail json.RawMessage
	}
	var found []entry
	rig.Until(s.T, "the steps of the call", 20*time.Second, func() bool {
		found, timeline = nil, ""
		for cursor := ""; ; {
			var page struct {
				Data       []entry
				NextCursor *string `json:"next_cursor"`
			}
			r := s.Do("GET", "/calls/"+callID+"/events?limit=200&cursor="+url.QueryEscape(cursor), nil)
			if err := json.Unmarshal(r.Body, &page); err != nil || r.Status != 200 {
				s.T.Fatalf("events of the call: %d %s", r.Status, r.Body)
			}
			found, timeline = append(found, page.Data...), timeline+string(r.Body)
			if page.NextCursor == nil {
				break
			}
			cursor = *page.NextCursor
		}
		return strings.Contains(timeline, `"event.call.ended"`) && strings.Contains(timeline, `"flow.step"`)
	})
	var all []string
	for _, e := range found {
		if e.Kind == "flow.step" {
			var x passedStep
			_ = json.Unmarshal(e.Detail, &x)
			steps, all = append(steps, x), append(all, strings.TrimSuffix(x.Node+":"+x.Outcome, ":"))
		}
	}
	return strings.Join(all, " "), steps, timeline
}
