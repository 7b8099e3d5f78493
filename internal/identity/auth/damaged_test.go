package auth

import "testing"

// The description of a program whose name is not Unicode is refused: the person would be asked about another name.
//
// https://github.com/Mnexa-AI/e2a/issues/804
func TestClientDocument_DamagedRefused(t *testing.T) {
	t.Parallel()
	const id = "https://app.example.com/client.json"
	document := func(name string) []byte {
		return []byte(`{"client_id":"` + id + `","client_name":"` + name + `","redirect_uris":["https://app.example.com/back"]}`)
	}
	if c, err := parseDocument(id, document("App")); err != nil || c.Name != "App" {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, name := range []string{"A\xffpp", `A\ud800pp`} {
		if c, err := parseDocument(id, document(name)); err == nil {
			t.Errorf("%q is stored as %q", name, c.Name)
		}
	}
}
