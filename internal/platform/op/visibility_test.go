package op_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op"
)

// hideSecret hides every record whose ID has the word secret.
type hideSecret struct{}

func (hideSecret) Concerns(id string) bool { return strings.HasPrefix(id, "call_") }

func (hideSecret) AwaitRecord(context.Context, string) {}

func (hideSecret) Hidden(_ context.Context, id string) (bool, error) {
	return strings.Contains(id, "secret"), nil
}

// linkIn is an input with IDs at every place where a request can have them.
type linkIn struct {
	ID     string   `path:"id"`
	CallID []string `query:"call_id"`
	Body   linkBody
}

type linkBody struct {
	CallID  string            `json:"call_id,omitempty"`
	CallIDs []string          `json:"call_ids,omitempty"`
	Origin  op.Change[string] `json:"origin_call_id,omitzero"`
	Deep    []linkInner       `json:"deep,omitempty"`
	Text    string            `json:"text,omitempty"`
}

type linkInner struct {
	SubjectID *string `json:"subject_id,omitempty"`
}

func (in *linkIn) String() string {
	deep := ""
	for _, d := range in.Body.Deep {
		deep += *d.SubjectID
	}
	return fmt.Sprint(in.ID, in.CallID, in.Body.CallID, in.Body.CallIDs, in.Body.Origin.V, deep, in.Body.Text)
}

// TestVisibility_HiddenIDsAreReplaced sends IDs of hidden and other records at all places of a request. A user's request has unknown IDs in
// place of the hidden ones, a request of the organisation has them all.
func TestVisibility_HiddenIDsAreReplaced(t *testing.T) {
	t.Parallel()
	got := ""
	link := func(_ context.Context, in *linkIn) (*op.Out[Thing], error) {
		got = in.String()
		return op.OK(Thing{ID: in.ID})
	}
	mux := http.NewServeMux()
	op.NewAPI(mux, &op.Pipeline{DB: dbtest.SQLite(t), Log: slog.New(slog.DiscardHandler), Visibility: hideSecret{}},
		[]op.Operation{op.New("links.make", "POST /links/{id}", access.CallsRead, "Link", link).Reads()})
	ask := func(user, word string) string {
		body := strings.ReplaceAll(`{"call_id":"call_W1","call_ids":["call_W2"],"origin_call_id":"call_W3","deep":[{"subject_id":"call_W4"}],"text":"call_W5"}`, "W", word)
		r := httptest.NewRequest("POST", op.Prefix+"/links/call_"+word+"6?call_id=call_"+word+"7,call_"+word+"8", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		p := access.Principal{OrgID: db.NewID("org"), UserID: user, Scopes: access.All(), Environment: access.Live}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r.WithContext(access.With(r.Context(), p)))
		if w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return got
	}
	for user, shown := range map[string]int{"usr_1": 1, "": 8} { // the text is no ID
		if n := strings.Count(ask(user, "secret"), "secret"); n != shown {
			t.Errorf("%q: the operation got %d hidden IDs, want %d: %s", user, n, shown, got)
		}
		if n := strings.Count(ask(user, "open"), "open"); n != 8 {
			t.Errorf("%q: the operation got %d other IDs, want 8: %s", user, n, got)
		}
	}
}
