package mcp_test

import (
	"bufio"
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// eventID matches the ids of the events of a stream.
var eventID = regexp.MustCompile(`(?m)^id: (\S+)$`)

// missed requests the events after an event of a session, until a line contains a text.
func missed(t *testing.T, s *rig.Server, key, session, after, text string) (status int, found bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit.Hang(0))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]string{"Authorization": "Bearer " + key, "Accept": "text/event-stream", "Mcp-Session-Id": session,
		"Mcp-Protocol-Version": "2025-11-25", "Last-Event-ID": after} {
		r.Header.Set(name, v)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	lines := bufio.NewScanner(a.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && a.StatusCode == http.StatusOK {
		if strings.Contains(lines.Text(), text) {
			return a.StatusCode, true
		}
	}
	return a.StatusCode, false
}

func TestResume_LostAnswerRepeated(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	org, other := s.Org("live"), s.Org("live")
	opened := post(t, address(s), org.Key, initialize)
	session := opened.header.Get("Mcp-Session-Id")
	in := []string{"Mcp-Session-Id", session, "MCP-Protocol-Version", "2025-11-25"}
	post(t, address(s), org.Key, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, in...)
	called := post(t, address(s), org.Key, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get_live_calls","arguments":{}}}`, in...)
	ids := eventID.FindAllStringSubmatch(called.body, -1)
	if called.status != 200 || len(ids) != 2 || !strings.Contains(called.body, "structuredContent") {
		t.Fatalf("get_live_calls: %d %s", called.status, called.body)
	}
	if status, found := missed(t, s, org.Key, session, ids[0][1], "structuredContent"); status != 200 || !found {
		t.Errorf("the answer is not given again: %d", status)
	}
	if status, found := missed(t, s, other.Key, session, ids[0][1], "structuredContent"); status != 403 || found {
		t.Errorf("another organisation: %d, is given it: %v", status, found)
	}
	if status, _ := missed(t, s, org.Key, session, "nonsense", "structuredContent"); status != 400 {
		t.Errorf("an event that is none: %d", status)
	}
}
