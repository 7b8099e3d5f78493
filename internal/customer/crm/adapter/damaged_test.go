package adapter

import "testing"

// A value of an answer that is not Unicode is left out, and the others are kept.
//
// https://github.com/Mnexa-AI/e2a/issues/804
func TestReadRPC_DamagedLeftOut(t *testing.T) {
	t.Parallel()
	var names []string
	if err := readRPC([]byte("{\"result\":[\"Ada\",\"Gr\xfcn\",\"x\\ud800\"]}"), &names); err != nil {
		t.Fatal(err)
	}
	if len(names) != 3 || names[0] != "Ada" || names[1] != "" || names[2] != "" {
		t.Errorf("read %q", names)
	}
}
