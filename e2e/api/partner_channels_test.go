package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// TestPartner_SecondPartnerAndHeaders creates one of everything in a child. Another partner reaches none of it by any
// operation, with or without a header. A header that names anything but an own child is refused by every operation.
func TestPartner_SecondPartnerAndHeaders(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Alone: true, Flags: []string{"--transcriber", "off"}})
	f := newFamily(t, s)
	mine, theirs := f.boss.Hook(nil), f.in(f.two).Hook(nil)
	st := &stage{Server: s, doc: f.boss.doc, ids: map[string]map[string]string{}, a: f.child}
	st.furnish(t)
	st.ids["/partners"] = map[string]string{"id": f.one, "user_id": st.ids["/users"]["id"]}
	other := family{boss: st.org(t, "live")}
	other.one = other.found(t, "Other")

	t.Run("lists and searches without a header", func(t *testing.T) { st.shownNowhere(t, f.boss) })
	t.Run("another partner", func(t *testing.T) { st.b = other.boss; tenants(t, st) })
	t.Run("another partner, acting in a child", func(t *testing.T) { st.b = other.in(other.one); tenants(t, st) })
	t.Run("headers", func(t *testing.T) {
		for _, d := range []desk{other.in(f.one), other.in(f.boss.Org), f.in(other.one), f.in(other.boss.Org), f.in(f.boss.Org),
			f.in("org_00000000000000000000000000"),
			{&rig.Client{T: t, Server: s, Key: f.boss.Key, Prefix: "/sandbox/v1", As: f.one}, f.boss.doc}} {
			st.refusedEverywhere(t, d)
		}
		for _, as := range []string{f.two, f.one, f.boss.Org} {
			d := desk{&rig.Client{T: t, Server: s, Key: f.child.Key, Prefix: prefix, As: as}, f.boss.doc}
			st.refusedEverywhere(t, d)
		}
	})
	t.Run("tools", func(t *testing.T) {
		for _, d := range []desk{f.boss, f.in(f.two), other.boss, other.in(other.one), other.in(f.one)} {
			if status, text := st.askTool(t, d); strings.Contains(text, st.call) || status == 200 && !strings.Contains(text, "not_found") {
				t.Errorf("the tool answers %s in %q: %d %s", d.Org, d.As, status, text)
			}
		}
		if status, text := st.askTool(t, f.in(f.one)); status != 200 || !strings.Contains(text, `"transcript"`) {
			t.Errorf("the tool answers the partner in its child: %d %s", status, text)
		}
	})
	t.Run("streams", func(t *testing.T) {
		for _, d := range []desk{f.boss, f.in(f.two), other.boss} {
			if st.streamShows(t, d) {
				t.Errorf("the stream of %s in %q shows events of the child", d.Org, d.As)
			}
		}
		if !st.streamShows(t, f.in(f.one)) {
			t.Error("the stream does not show the partner the events of the child in which it acts")
		}
	})
	t.Run("webhooks", func(t *testing.T) {
		for _, hook := range []*rig.Receiver{mine, theirs} {
			for _, e := range hook.Events() {
				if strings.Contains(e.Body, st.call) || strings.Contains(e.Body, f.one) && !strings.HasPrefix(e.Event, "partner.") {
					t.Errorf("a webhook of another organisation got %s: %s", e.Event, e.Body)
				}
			}
		}
	})
}

// refusedEverywhere calls every operation: each is refused before it does anything.
func (s *stage) refusedEverywhere(t *testing.T, d desk) {
	t.Helper()
	for _, o := range s.doc.operations {
		if o.Rollout == "planned" || o.Need == nil {
			continue
		}
		values, _ := s.of(o)
		var body any
		if o.Body {
			body = map[string]any{}
		}
		if b, ok := bodies[o.ID]; ok {
			body = b
		}
		if r := d.Do(o.Method, o.at(values), body); r.Status != 404 && r.Status != 403 && r.Status != 401 ||
			bytes.Contains(r.Body, []byte(s.call)) {
			t.Errorf("%s in %s by %s: %d %s", o.ID, d.As, d.Key[:14], r.Status, r.Body)
		}
	}
}

// shownNowhere reads every list with a credential, and searches. The operations about children show their ids, but
// nothing in them.
func (s *stage) shownNowhere(t *testing.T, d desk) {
	t.Helper()
	check := func(what string, r rig.Response) {
		for kind, values := range s.ids {
			for _, v := range values {
				if kind != "/partners" && strings.Contains(v, "_") && bytes.Contains(r.Body, []byte(v)) {
					t.Errorf("%s shows %s %s: %s", what, kind, v, r.Body)
				}
			}
		}
	}
	for _, o := range s.doc.operations {
		if o.Method != "GET" || o.Rollout == "planned" || len(o.Parameters) > 0 {
			continue
		}
		check(o.ID, d.Do("GET", o.Path+asked[o.ID], nil))
		for _, p := range o.declared.Parameters {
			if p.Value.In == "query" && idName.MatchString(p.Value.Name) {
				for _, id := range fitting(p.Value.Name, s.foreignIDs()) {
					r := d.Do("GET", o.Path+"?"+p.Value.Name+"="+id, nil)
					if r.Status == 200 {
						check(o.ID+" by "+p.Value.Name, rig.Response{Body: bytes.ReplaceAll(r.Body, []byte(id), nil)})
					}
				}
			}
		}
	}
	check("the search", d.Do("POST", "/memory/search", map[string]any{"query": "a call about anything"}))
	check("the memory", d.Do("GET", "/memory/callers/"+s.phone, nil))
}

// askTool asks for the call with a tool, and returns the status and the text of the answer.
func (s *stage) askTool(t *testing.T, d desk) (int, string) {
	t.Helper()
	message, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": "get_call_detail",
		"arguments": map[string]any{"call_id": s.call}, "_meta": map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28",
			"io.modelcontextprotocol/clientCapabilities": map[string]any{}, "io.modelcontextprotocol/clientInfo": map[string]any{"name": "raw", "version": "1"}}}})
	q, _ := http.NewRequest("POST", "http://"+s.HTTP+"/mcp/sse", bytes.NewReader(message))
	for name, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "On-Behalf-Of": d.As,
		"Authorization": "Bearer " + d.Key, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "get_call_detail"} {
		if v != "" {
			q.Header.Set(name, v)
		}
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, _ := io.ReadAll(a.Body)
	return a.StatusCode, strings.ReplaceAll(string(b), `\"`, `"`)
}

// streamShows reads the events of the past with a credential, up to an event that it makes, and reports whether one is
// about the call.
func (s *stage) streamShows(t *testing.T, d desk) (saw bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit.Hang(20*time.Second))
	defer cancel()
	q, _ := http.NewRequestWithContext(ctx, "GET", "http://"+s.HTTP+prefix+"/events/stream?after_sequence=0", nil)
	q.Header.Set("Authorization", "Bearer "+d.Key)
	if d.As != "" {
		q.Header.Set("On-Behalf-Of", d.As)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	var last struct{ ID string }
	d.want(t, 201, "POST", "/users", map[string]any{"email": strings.ToLower(db.NewID("last")) + "@example.com", "first_name": "Last", "provision_sip": false}, &last)
	for lines := bufio.NewScanner(a.Body); lines.Scan(); {
		saw = saw || strings.Contains(lines.Text(), s.call)
		if strings.Contains(lines.Text(), last.ID) {
			return saw
		}
	}
	t.Fatal("the last event did not come")
	return saw
}

// TestPartner_BoundsAreInherited makes keys of a child with a partner key that is bound to a network and a time. None
// is free of these bounds, and the partner key itself works in the child only within them.
func TestPartner_BoundsAreInherited(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Flags: []string{"--transcriber", "off"}})
	f := newFamily(t, s)
	scopes := []access.Scope{access.UsersAdmin, access.PartnersRead, access.PartnersWrite}
	bind := func(network string) (bound desk) {
		var made struct{ Key string }
		f.boss.want(t, 201, "POST", "/api-keys", map[string]any{"name": "bound", "kind": "partner", "scopes": scopes, "allowed_ips": []string{network},
			"expires_at": "2099-01-01T00:00:00Z"}, &made)
		return desk{&rig.Client{T: t, Server: s, Org: f.boss.Org, Key: made.Key, Prefix: prefix}, f.boss.doc}
	}
	here, away := bind("127.0.0.0/8"), bind("192.0.2.0/24")
	for _, as := range []string{"", f.one} {
		d := *away.Client
		d.As = as
		if r := d.Do("GET", "/users", nil); r.Status != 401 && r.Status != 403 {
			t.Errorf("a key of another network in %q: %d %s", as, r.Status, r.Body)
		}
	}
	acting := *here.Client
	acting.As = f.one
	for path, d := range map[string]*rig.Client{"/partners/" + f.one + "/keys": here.Client, "/api-keys": &acting} {
		var made struct {
			AllowedIPs []string `json:"allowed_ips"`
			ExpiresAt  string   `json:"expires_at"`
		}
		d.Want(201, "POST", path, map[string]any{"name": "x", "scopes": []string{"users:admin"}}, &made)
		if !slices.Equal(made.AllowedIPs, []string{"127.0.0.0/8"}) || made.ExpiresAt != "2099-01-01T00:00:00.000Z" {
			t.Errorf("%s made a key with %+v", path, made)
		}
		for member, v := range map[string]any{"allowed_ips": []string{"0.0.0.0/0"}, "expires_at": "2100-01-01T00:00:00Z", "scopes": []string{"calls:read"}} {
			body := map[string]any{"name": "y", "scopes": []string{"users:admin"}}
			body[member] = v
			if r := d.Do("POST", path, body); r.Status != 422 && r.Status != 403 {
				t.Errorf("%s with other %s: %d %s", path, member, r.Status, r.Body)
			}
		}
	}
}
