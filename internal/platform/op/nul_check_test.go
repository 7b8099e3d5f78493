package op

import (
	"slices"
	"testing"
)

func TestUnstorable_Fields(t *testing.T) {
	t.Parallel()
	type base struct {
		Limit string `query:"limit"`
	}
	type input struct {
		base
		ID   string `path:"id"`
		Base string `header:"X-Base"`
		Body struct {
			Name   string            `json:"name"`
			Tags   []string          `json:"tags"`
			More   map[string]any    `json:"more"`
			Change Change[*string]   `json:"change"`
			Plain  map[string]string `json:"plain"`
			Audio  []byte            `json:"audio"`
			Same   any               `json:"same"`
		}
	}
	bad := "a\x00b"
	in := &input{ID: bad}
	if got := unstorable(&input{}); len(got) > 0 {
		t.Errorf("an empty input: %v", got)
	}
	in.Body.Name, in.Body.Tags = bad, []string{"fine", bad}
	in.Body.More = map[string]any{"deep": []any{map[string]any{"x": bad}}}
	in.Body.Change = Change[*string]{Set: true, V: &bad}
	in.Body.Plain = map[string]string{bad: "the name of a member"}
	in.Body.Audio = []byte{0, 0}
	var got []string
	for _, w := range unstorable(in) {
		got = append(got, w.Field)
	}
	want := []string{"id", "name", "tags[1]", "more.deep[0].x", "change", "plain"}
	if !slices.Equal(got, want) {
		t.Errorf("named %q, want %q", got, want)
	}
	if e, ok := storable(in).(*Error); !ok || e.Status() != 422 {
		t.Errorf("it is refused by %v", storable(in))
	}
}
