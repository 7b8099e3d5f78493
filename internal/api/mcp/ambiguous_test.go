package mcp

import "testing"

// https://github.com/golang/go/issues/14750
func TestMessage_MembersReadOneWay(t *testing.T) {
	t.Parallel()
	const call = `"jsonrpc":"2.0","id":1,"method":"tools/call"`
	for message, want := range map[string]string{
		`{` + call + `,"params":{"name":"me","arguments":{"a":1,"A":2},"other":1}}`: "",
		`{` + call + `,"METHOD":"ping","params":{}}`:                                "METHOD",
		`{` + call + `,"method":"ping"}`:                                            "method",
		`{` + call + `,"params":{"name":"me","Name":"other"}}`:                      "params.Name",
		`[{` + call + `,"Params":{"name":"me"}}]`:                                   "[0].Params",
		`{` + call + `,"params":{"name":"me","arguments":{"a":1,"a":2}}}`:           "", // the tool reports it
		`{"method":`: "",
	} {
		got := ""
		for _, f := range ambiguous([]byte(message)) {
			got += f.Field
		}
		if got != want {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
}
