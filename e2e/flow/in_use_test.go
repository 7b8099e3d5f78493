package flow

import (
	"slices"
	"strings"
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// What calls are still led to is not deleted: the answer names everything that leads there.
// https://github.com/mikopbx/Core/issues/310
func TestDelete_NamesWhatPointsThere(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	o := fixture.NewOrg(s)
	ada, bob := o.AddUser("Ada"), o.AddUser("Bob")
	way := o.AddCarrier("", nil)
	var queue, goal struct{ ID string }
	o.Want(201, "POST", "/queues", map[string]any{"name": "Goal"}, &goal)
	o.Want(201, "POST", "/queues", map[string]any{"name": "Overflowing"}, &queue)
	flow := o.PublishFlow(map[string]any{"ivr": map[string]any{"greeting": o.UploadTone(fixture.GreetingTone, 2e9), "timeout_to": "hangup",
		"options": map[string]any{"3": "hangup"}}})
	number := o.NumberID(way)
	pointing := map[string]func(to string){
		bob.ID: func(to string) {
			o.Want(200, "PATCH", "/users/"+bob.ID, map[string]any{"forward": map[string]any{"no_answer": orNull(to)}}, nil)
		},
		queue.ID: func(to string) {
			body := map[string]any{"overflow": nil}
			if to != "" {
				body["overflow"] = map[string]any{"to": to}
			}
			o.Want(200, "PATCH", "/queues/"+queue.ID, body, nil)
		},
		number: func(to string) {
			o.Want(200, "PATCH", "/numbers/"+number, map[string]any{"fallback": orNull(to)}, nil)
		},
	}
	for name, c := range map[string]struct{ path, to string }{"user": {"/users/" + ada.ID, "user:" + ada.ID},
		"extension": {"/users/" + ada.ID, "ext:" + ada.Extension}, "queue": {"/queues/" + goal.ID, "queue:" + goal.ID},
		"flow": {"/flows/" + flow, "flow:" + flow}} {
		var want []string
		for id, point := range pointing {
			point(c.to)
			want = append(want, id)
		}
		slices.Sort(want)
		r := o.Do("DELETE", c.path, nil)
		var got []string
		named, _ := r.JSON()["used_by"].([]any)
		for _, id := range named {
			got = append(got, id.(string))
		}
		slices.Sort(got)
		if r.Status != 409 || strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %d, used by %v, want %v", name, r.Status, got, want)
		}
		for _, point := range pointing {
			point("")
		}
	}
	for _, path := range []string{"/users/" + ada.ID, "/queues/" + goal.ID, "/flows/" + flow} {
		o.Want(204, "DELETE", path, nil, nil)
	}
}

// orNull returns null for an empty destination.
func orNull(to string) any {
	if to == "" {
		return nil
	}
	return to
}
