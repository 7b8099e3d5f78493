package api_test

import (
	"fmt"
	"net/url"
	"sync"
	"testing"
)

// lists checks the rules common to all lists for every list of the description.
func lists(t *testing.T, s *stage) {
	n := 0
	for _, o := range s.doc.operations {
		if o.Method != "GET" || o.declared.Parameters.GetByInAndName("query", "cursor") == nil {
			continue
		}
		n++
		values, _ := s.of(o)
		s.sparseList(t, o, o.at(values))
		s.countedList(t, o, o.at(values))
		s.narrowedList(t, o, o.at(values))
	}
	if n < 10 {
		t.Errorf("only %d lists seen", n)
	}
}

func (s *stage) sparseList(t *testing.T, o operation, path string) {
	var whole, part page
	s.a.want(t, 200, "GET", path+"?limit=5", nil, &whole)
	s.a.refused(t, 400, "invalid_query", "GET", path+"?fields=no_such_member", nil)
	if len(whole.Data) == 0 {
		return
	}
	names := sortedKeys(whole.Data[0])
	name := names[len(names)/2]
	s.a.want(t, 200, "GET", path+"?limit=5&fields="+url.QueryEscape(name), nil, &part)
	for i, r := range part.Data {
		for k := range r {
			if k != name && k != "id" {
				t.Errorf("%s: fields=%s shows %s", o.ID, name, k)
			}
		}
		if _, there := r[name]; !there && i == 0 {
			t.Errorf("%s: fields=%s does not show it: %v", o.ID, name, r)
		}
	}
}

func (s *stage) countedList(t *testing.T, o operation, path string) {
	var all, one page
	s.a.want(t, 200, "GET", path+"?limit=200&include_total=true", nil, &all)
	s.a.want(t, 200, "GET", path+"?limit=1&include_total=true", nil, &one)
	if all.Total == nil || one.Total == nil {
		t.Errorf("%s: include_total gives none", o.ID)
		return
	}
	if *one.Total < len(one.Data) || !all.HasMore && *all.Total < len(all.Data) {
		t.Errorf("%s: total %d of %d records", o.ID, *all.Total, len(all.Data))
	}
	var more page
	if s.a.want(t, 200, "GET", path+"?limit=1", nil, &more); more.Total != nil {
		t.Errorf("%s: a total though nobody asked", o.ID)
	}
	if more.NextCursor == nil {
		return
	}
	cursor := url.QueryEscape(*more.NextCursor)
	s.a.want(t, 200, "GET", path+"?limit=3&fields=id&include_total=true&cursor="+cursor, nil, nil) // may differ from page to page
	for _, name := range []string{"since", "q", "status"} {
		if p := o.declared.Parameters.GetByInAndName("query", name); p != nil {
			value := "2001-01-01"
			if items := p.Schema.Value.Items; items != nil && len(items.Value.Enum) > 0 {
				value = fmt.Sprint(items.Value.Enum[0])
			}
			s.a.refused(t, 400, "invalid_cursor", "GET", path+"?"+name+"="+value+"&cursor="+cursor, nil)
		}
	}
}

func (s *stage) narrowedList(t *testing.T, o operation, path string) {
	s.a.refused(t, 400, "invalid_query", "GET", path+"?limit=1&limit=2", nil)
	s.a.refused(t, 400, "invalid_query", "GET", path+"?limit=%zz", nil)
	for _, ref := range o.declared.Parameters {
		p := ref.Value
		if p.In != "query" {
			continue
		}
		items := p.Schema.Value.Items
		switch {
		case items != nil && len(items.Value.Enum) > 1:
			a, b := fmt.Sprint(items.Value.Enum[0]), fmt.Sprint(items.Value.Enum[1])
			one := s.count(t, path+"?"+p.Name+"="+a+","+b)
			if two := s.count(t, path+"?"+p.Name+"="+a+"&"+p.Name+"="+b); one != two {
				t.Errorf("%s: %s with commas finds %d, repeated %d", o.ID, p.Name, one, two)
			}
		case p.Name == "phone" || p.Name == "from_number" || p.Name == "to_number":
			one := s.count(t, path+"?"+p.Name+"=%2B12025550143")
			if two := s.count(t, path+"?"+p.Name+"=+12025550143"); one != two {
				t.Errorf("%s: %s finds %d, with a space for + %d", o.ID, p.Name, one, two)
			}
		case p.Name == "since":
			s.a.want(t, 200, "GET", path+"?since=2026-01-31&until=2026-01-31T10:00:00.5%2B02:00", nil, nil)
			if n := s.count(t, path+"?since=2001-01-01&until=2001-01-01"); n != 0 {
				t.Errorf("%s: %d records in no time", o.ID, n)
			}
		}
	}
}

func (s *stage) count(t *testing.T, path string) int {
	t.Helper()
	var p page
	s.a.want(t, 200, "GET", path, nil, &p)
	return len(p.Data)
}

// makers add records to lists while they are read.
var makers = map[string]func(i int) any{
	"/users": func(i int) any {
		return map[string]any{"email": fmt.Sprintf("w%d@example.org", i), "first_name": "W", "provision_sip": false}
	},
	"/tags":   func(i int) any { return map[string]any{"name": fmt.Sprintf("walk%d", i)} },
	"/trunks": func(i int) any { return map[string]any{"name": fmt.Sprintf("W%d", i), "host": "192.0.2.99"} },
	"/numbers": func(i int) any {
		return map[string]any{"number": fmt.Sprintf("+1202555%04d", 1000+i)}
	},
	"/api-keys": func(i int) any {
		return map[string]any{"name": fmt.Sprintf("w%d", i), "scopes": []string{"calls:read"}}
	},
	"/callbacks": func(i int) any {
		return map[string]any{"to": "ext:100", "user_id": "", "scheduled_at": fmt.Sprintf("2099-01-01T00:%02d:00Z", i%60)}
	},
}

// walks reads every list of organisation a page by page, in every order it offers, while records are added: each
// record that existed at the start comes exactly once.
func walks(t *testing.T, s *stage) {
	stop := make(chan struct{})
	var adding sync.WaitGroup
	adding.Go(func() {
		for i := 0; ; i++ {
			for _, path := range sortedKeys(makers) {
				select {
				case <-stop:
					return
				default:
				}
				body := makers[path](i)
				if m := body.(map[string]any); path == "/callbacks" {
					m["user_id"] = s.ids["/users"]["id"]
				}
				if r := s.a.Do("POST", path, body); r.Status >= 500 {
					t.Errorf("POST %s: %d %s", path, r.Status, r.Body)
				}
			}
		}
	})
	defer adding.Wait()
	defer close(stop)
	for _, o := range s.doc.operations {
		if o.Method != "GET" || o.declared.Parameters.GetByInAndName("query", "cursor") == nil {
			continue
		}
		values, _ := s.of(o)
		orders := []string{""}
		if p := o.declared.Parameters.GetByInAndName("query", "sort"); p != nil {
			for _, v := range p.Schema.Value.Enum {
				orders = append(orders, v.(string))
			}
		}
		for _, order := range orders {
			s.walkOnce(t, o, o.at(values), order)
		}
	}
}

// mostWalked limits the number of pages read of a list.
const mostWalked = 60

func (s *stage) walkOnce(t *testing.T, o operation, path, order string) {
	query := url.Values{"limit": {"50"}}
	if order != "" {
		query.Set("sort", order)
	}
	var before page
	s.a.want(t, 200, "GET", path+"?"+query.Encode(), nil, &before)
	seen := map[string]int{}
	query.Set("limit", "7")
	ended := false
	for n := 0; n < mostWalked && !ended; n++ {
		var p page
		s.a.want(t, 200, "GET", path+"?"+query.Encode(), nil, &p)
		for _, r := range p.Data {
			seen[identity(r)]++
		}
		if ended = !p.HasMore; !ended {
			query.Set("cursor", *p.NextCursor)
		}
	}
	for _, r := range before.Data {
		if id := identity(r); ended && seen[id] == 0 {
			t.Errorf("%s sorted by %q: %s was there and is missing", o.ID, order, id)
		}
	}
	for id, n := range seen {
		if n > 1 {
			t.Errorf("%s sorted by %q: %s came %d times", o.ID, order, id, n)
		}
	}
}

func identity(r map[string]any) string {
	if id, ok := r["id"].(string); ok {
		return id
	}
	return fmt.Sprint(r)
}
