package api_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// TestKeys_Lifecycle uses a server behind a proxy that it trusts.
func TestKeys_Lifecycle(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Flags: []string{"--transcriber", "off", "--trusted-proxies",
		"127.0.0.0/8"}}, func(t *testing.T, s *rig.Server) {
		st := &stage{Server: s, doc: readDocument(t, s)}
		admin := st.org(t, "live")
		with := func(key string) desk {
			return desk{&rig.Client{T: t, Server: s, Org: admin.Org, Key: key, Prefix: prefix}, st.doc}
		}
		t.Run("addresses", func(t *testing.T) { keyAddresses(t, admin, with) })
		t.Run("rotation", func(t *testing.T) { keyRotation(t, admin, with) })
		t.Run("expiry", func(t *testing.T) { keyExpiry(t, admin, with) })
		t.Run("revocation ends streams", func(t *testing.T) { keyStream(t, admin, with) })
		t.Run("users who are suspended", func(t *testing.T) { keyOfSuspended(t, admin, with) })
		t.Run("no more than one's own", func(t *testing.T) {
			small := mint(t, admin, map[string]any{"scopes": []string{"users:admin"}})
			fields := with(small.Key).refused(t, 422, "validation_failed", "POST", "/api-keys", map[string]any{"name": "x", "scopes": []string{"users:admin", "calls:read"}})
			if fields["scopes"] != "not_held" {
				t.Errorf("refused for %v", fields)
			}
		})
	})
}

type made struct {
	ID, Key   string
	RevokedAt *time.Time `json:"revoked_at"`
	RotatesTo *string    `json:"rotates_to"`
}

func mint(t *testing.T, d desk, body map[string]any) (k made) {
	t.Helper()
	body["name"] = t.Name()
	if body["scopes"] == nil {
		body["scopes"] = []string{"calls:read", "users:admin"}
	}
	d.want(t, 201, "POST", "/api-keys", body, &k)
	return k
}

func keyAddresses(t *testing.T, admin desk, with func(string) desk) {
	k := mint(t, admin, map[string]any{"allowed_ips": []string{"192.0.2.0/24", "2001:db8::/32", "198.51.100.7", "::ffff:203.0.113.0/120"}})
	for from, ok := range map[string]bool{"192.0.2.77": true, "192.0.3.1": false, "2001:db8:1::1": true, "2001:db9::1": false, "198.51.100.7": true,
		"198.51.100.8": false, "203.0.113.9": true, "192.0.2.77, 198.51.100.8": false, "198.51.100.8, 192.0.2.77": true, "::ffff:192.0.2.1": true} {
		r := with(k.Key).call(t, "GET", "/users", nil, "X-Forwarded-For", from)
		if ok && r.Status != 200 || !ok && (r.Status != 403 || problemOf(r).Code != "ip_not_allowed") {
			t.Errorf("from %s: %d %s", from, r.Status, r.Body)
		}
	}
	with(k.Key).refused(t, 403, "ip_not_allowed", "GET", "/users", nil) // from loopback itself
}

func keyRotation(t *testing.T, admin desk, with func(string) desk) {
	k := mint(t, admin, map[string]any{})
	var next made
	admin.want(t, 201, "POST", "/api-keys/"+k.ID+"/rotate", map[string]any{"grace_seconds": 2}, &next)
	with(k.Key).want(t, 200, "GET", "/users", nil, nil)
	with(next.Key).want(t, 200, "GET", "/users", nil, nil)
	admin.refused(t, 409, "invalid_state", "POST", "/api-keys/"+k.ID+"/rotate", map[string]any{})
	var list struct{ Data []made }
	admin.want(t, 200, "GET", "/api-keys", nil, &list)
	for _, one := range list.Data {
		if one.ID == k.ID && (one.RotatesTo == nil || *one.RotatesTo != next.ID || one.RevokedAt == nil) {
			t.Errorf("the old key is %+v", one)
		}
	}
	rig.Until(t, "the end of the overlap", 20*time.Second, func() bool {
		return problemOf(with(k.Key).call(t, "GET", "/users", nil)).Code == "key_revoked"
	})
	with(next.Key).want(t, 200, "GET", "/users", nil, nil)
	admin.want(t, 201, "POST", "/api-keys/"+next.ID+"/rotate", map[string]any{"grace_seconds": 0}, nil)
	with(next.Key).refused(t, 401, "key_revoked", "GET", "/users", nil)
}

func keyExpiry(t *testing.T, admin desk, with func(string) desk) {
	k := mint(t, admin, map[string]any{"expires_at": time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)})
	rig.Until(t, "the key's end", 20*time.Second, func() bool {
		return problemOf(with(k.Key).call(t, "GET", "/users", nil)).Code == "key_expired"
	})
}

// listen opens a stream and returns a channel that is closed when the stream ends.
func listen(t *testing.T, d desk) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit.Hang(0))
	t.Cleanup(cancel)
	q, err := http.NewRequestWithContext(ctx, "GET", "http://"+d.Server.HTTP+d.Prefix+"/events/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+d.Key)
	if d.As != "" {
		q.Header.Set("On-Behalf-Of", d.As)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil || r.StatusCode != 200 {
		t.Fatalf("stream: %v %v", r, err)
	}
	lines := bufio.NewReader(r.Body)
	if first, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(first, ":") {
		t.Fatalf("stream begins with %q, %v", first, err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer r.Body.Close()
		for {
			if _, err := lines.ReadString('\n'); err != nil {
				return
			}
		}
	}()
	return over
}

// streamEnds waits for the end of a stream, for less than the heartbeat interval.
func streamEnds(t *testing.T, what string, over <-chan struct{}) {
	t.Helper()
	select {
	case <-over:
	case <-time.After(limit.Hang(0)):
		t.Errorf("%s: the stream goes on", what)
	}
}

func keyStream(t *testing.T, admin desk, with func(string) desk) {
	k, other := mint(t, admin, map[string]any{}), mint(t, admin, map[string]any{})
	over, goesOn := listen(t, with(k.Key)), listen(t, with(other.Key))
	admin.want(t, 204, "DELETE", "/api-keys/"+k.ID, nil, nil)
	with(k.Key).refused(t, 401, "key_revoked", "GET", "/users", nil)
	streamEnds(t, "revoked", over)
	select {
	case <-goesOn:
		t.Error("another key's stream ended too")
	default:
	}
}

func keyOfSuspended(t *testing.T, admin desk, with func(string) desk) {
	u := admin.AddUser("Sue")
	k := mint(t, admin, map[string]any{"user_id": u.ID})
	over := listen(t, with(k.Key))
	admin.want(t, 200, "PATCH", "/users/"+u.ID, map[string]any{"status": "suspended"}, nil)
	with(k.Key).refused(t, 401, "key_revoked", "GET", "/users", nil)
	streamEnds(t, "suspended", over)
	admin.want(t, 200, "PATCH", "/users/"+u.ID, map[string]any{"status": "active"}, nil)
	with(k.Key).want(t, 200, "GET", "/users", nil, nil)
}

// TestPartnerStream_EndsWithChild suspends a child whose stream a partner reads.
func TestPartnerStream_EndsWithChild(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Flags: []string{"--transcriber", "off"}}, func(t *testing.T, s *rig.Server) {
		f := newFamily(t, s)
		acting, own := listen(t, f.in(f.one)), listen(t, f.child)
		f.boss.want(t, 200, "POST", "/partners/"+f.one+"/suspend", map[string]any{"reason": "x", "mode": "outbound_only"}, nil)
		streamEnds(t, "acting in a suspended child", acting)
		select {
		case <-own:
			t.Error("the child's own stream ended, although only outbound calls are stopped")
		default:
		}
		f.boss.want(t, 200, "POST", "/partners/"+f.one+"/suspend", map[string]any{"reason": "x"}, nil)
		streamEnds(t, "of a suspended child", own)
	})
}
